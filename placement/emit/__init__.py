"""Emitters: a plan written down, one function a format; they only translate.

An emitter gets an `Emission`, which holds all it may need as plain values,
and returns text. It asks no topology and runs no command.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from placement.errors import UsageError

if TYPE_CHECKING:
    from placement.emit.job import Emission

__all__ = ["FORMATS", "emit"]

#: The module of each format's function, which has the format's name.
FORMATS = {
    "nodelist": "lists",
    "lines": "lists",
    "nids": "lists",
    "cnames": "lists",
    "hostfile": "lists",
    "sbatch": "job",
    "aprun": "job",
    "pbs": "job",
    "json": "lists",
    "exclude": "job",
    "switches": "job",
    "affinity": "job",
}


def emit(emission: Emission, name: str) -> str:
    """Return the plan as text in the format `name`.

    Raises
    ------
    UsageError
        Unknown format, or one that the site's scheduler does not take.
    """
    if name not in FORMATS:
        raise UsageError(f"no format {name!r}", f"there are {', '.join(sorted(FORMATS))}")
    module = import_module(f"{__name__}.{FORMATS[name]}")
    text: str = getattr(module, name)(emission)
    return text
