"""Writers: a machine in, the text of a dump out; one file a format.

Slurm's two topology files are written, which a site makes of what it knows of
its cables; what is written reads back to an equal machine. The module of a
format has ``write(machine) -> str`` and is imported when it is asked for.
"""

from __future__ import annotations

from importlib import import_module

from placement.errors import UsageError
from placement.machine import Machine

__all__ = ["BUNDLED", "write"]

#: Every format that is written; its module has ``_`` for ``-``.
BUNDLED = ("topology-conf", "topology-yaml")


def write(machine: Machine, format: str) -> str:  # noqa: A002 - it is what the option is called
    """Return a machine as the text of a dump.

    Parameters
    ----------
    machine : Machine
    format : str
        One of `BUNDLED`.

    Returns
    -------
    str
        Ends with a newline.

    Raises
    ------
    UsageError
        Where there is no such format, or it cannot say what the machine is.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> print(write(parse_spec("tree:2x2"), "topology-conf"), end="")
    SwitchName=level1-0 Nodes=nid[00000-00001]
    SwitchName=level1-1 Nodes=nid[00002-00003]
    SwitchName=root Switches=level1-[0-1]
    """
    if format not in BUNDLED:
        known = ", ".join(sorted(BUNDLED))
        raise UsageError(f"no format {format!r} to write", f"there are {known}")
    module = import_module(f"placement.writers.{format.replace('-', '_')}")
    text: str = module.write(machine)
    return text
