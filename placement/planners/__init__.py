"""Planners: ``(Machine, Request) -> rows``, one file a strategy.

A planner is a pure function from a machine and a request to the rows of the
machine it chooses, in the order in which the job's slots should stand on
them. It is registered by the decorator `planner` and found by name with
`find`; other distributions add theirs under the entry point group
``nidmap.planners``. Rows, not names: at a hundred thousand nodes a planner
that handles strings spends its time on strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.request import Request

    Planner = Callable[[Machine, Request], NDArray[np.int64]]

__all__ = ["find", "names", "planner"]

#: Where each bundled planner lives: imported only when it is asked for.
BUNDLED = {
    "blades": "blades",
    "blades-linked": "blades_linked",
    "compact": "compact",
    "hilbert": "curve",
    "hilbert-groups": "curve",
    "level-spread": "level_spread",
    "morton": "curve",
    "morton-groups": "curve",
    "random": "lots",
    "slurm-dragonfly": "slurm_dragonfly",
    "slurm-none": "slurm_none",
    "slurm-tree": "slurm_tree",
    "spread": "spread",
}

_registered: dict[str, Planner] = {}


def planner(name: str) -> Callable[[Planner], Planner]:
    """Register the decorated function as the planner `name`."""

    def register(function: Planner) -> Planner:
        _registered[name] = function
        return function

    return register


def names() -> list[str]:
    """Return the names of all planners, those of other distributions included."""
    from importlib.metadata import entry_points

    return sorted(BUNDLED | {e.name: "" for e in entry_points(group="nidmap.planners")})


def find(name: str) -> Planner:
    """Return the planner called `name`.

    Raises
    ------
    UsageError
        Where there is none; the message names those there are.
    """
    if name not in _registered:
        _load(name)
    return _registered[name]


def _load(name: str) -> None:
    from importlib import import_module

    if name in BUNDLED:
        import_module(f"placement.planners.{BUNDLED[name]}")
        return
    from importlib.metadata import entry_points

    found = entry_points(group="nidmap.planners", name=name)
    if not found:
        raise UsageError(f"no strategy {name!r}", f"there are {', '.join(names())}")
    _registered[name] = next(iter(found)).load()
