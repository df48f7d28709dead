"""Emitters: a plan written down, one function a format; they only translate.

An emitter gets an `Emission`, which holds all it may need as plain values,
and returns text. It asks no topology and runs no command.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from placement.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement.nodelist import NodeList

__all__ = ["FORMATS", "Emission", "emit", "emitter"]


@dataclass(frozen=True, slots=True)
class Emission:
    """What an emitter may use.

    Attributes
    ----------
    nodes : NodeList
        The chosen nodes in the planner's order.
    nids : tuple of int
        Their NIDs, in the same order.
    cnames : tuple of str
        Their cnames or xnames; empty strings where the machine has none.
    ppn : int or None
        Ranks a node; None where the user gave none.
    scheduler : str
        What the site runs: ``slurm``, ``pbs``, ``alps``; '' unknown.
    slack : int
        Nodes in the list beyond those that the job will use.
    outside : NodeList or None
        Compute nodes outside the plan's groups, for the ``exclude`` form.
    switches : int
        Slurm leaf switches that the plan touches.
    remarks : tuple of str
        Lines for a header's comments.
    inside : str
        Command that chooses the nodes inside the job (with slack).
    document : dict
        The JSON document.
    """

    nodes: NodeList
    nids: tuple[int, ...]
    cnames: tuple[str, ...]
    ppn: int | None = None
    scheduler: str = ""
    slack: int = 0
    outside: NodeList | None = None
    switches: int = 0
    remarks: tuple[str, ...] = ()
    inside: str = ""
    document: dict[str, Any] = field(default_factory=dict)


FORMATS: dict[str, Callable[[Emission], str]] = {}


def emitter(name: str) -> Callable[[Callable[[Emission], str]], Callable[[Emission], str]]:
    """Register the decorated function as the emitter of format `name`."""

    def register(function: Callable[[Emission], str]) -> Callable[[Emission], str]:
        FORMATS[name] = function
        return function

    return register


def emit(emission: Emission, name: str) -> str:
    """Return the plan as text in the format `name`.

    Raises
    ------
    UsageError
        Unknown format, or one that the site's scheduler does not take.
    """
    from placement.emit import headers, lists  # noqa: F401  # they register themselves

    if name not in FORMATS:
        raise UsageError(f"no format {name!r}", f"there are {', '.join(sorted(FORMATS))}")
    return FORMATS[name](emission)
