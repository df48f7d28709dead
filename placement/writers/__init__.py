"""Writers: a machine in, the text of a dump out; one file a format.

What is written in a dump's own format reads back to an equal machine. Where
a format has no word for something that decides which nodes a job may sit on
(a service node, a node that is down), writing is refused, not blurred. The
module of a format has ``write(machine) -> str`` and is imported when it is
asked for.
"""

from __future__ import annotations

from importlib import import_module

from placement.errors import UsageError, printable
from placement.machine import Machine
from placement.readers import BUNDLED as READ

__all__ = ["BUNDLED", "write"]

#: Formats that are only read: they say states and not where a node sits, and sinfo says the same;
#: or labels that mean what a site wants.
READ_ONLY = (
    *("scontrol-nodes", "slurm-json", "pbsnodes", "flux-resources", "job-list"),
    *("kubernetes", "topograph"),
)

#: Every format that is written; its module has ``_`` for ``-``.
BUNDLED = tuple(name for name in READ if name not in READ_ONLY)


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
    >>> from placement.dumps.assemble import assemble
    >>> from placement.readers import read_text
    >>> machine = assemble([read_text("1 0x1 c0-0c0s0n1 compute up batch")])
    >>> print(write(machine, "xtprocadmin"))
       NID    (HEX)    NODENAME     TYPE    STATUS        MODE
         1      0x1  c0-0c0s0n1  compute        up       batch
    <BLANKLINE>
    """
    if format not in BUNDLED:
        known = ", ".join(sorted(BUNDLED))
        raise UsageError(f"no format {printable(format)!r} to write", f"there are {known}")
    module = import_module(f"placement.writers.{format.replace('-', '_')}")
    text: str = module.write(machine)
    return text
