"""What a job sends, as the options of several commands say it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import advanced

__all__ = ["SENDING", "ByteCount", "Param", "sending_options"]

if TYPE_CHECKING:
    from collections.abc import Callable

    Param = click.ParamType[Any]
else:  # not yet generic in older versions of click
    Param = click.ParamType

_SIZE = re.compile(r"(-?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?)\s?(?:([kKMGT])(i?)B?|B)?", re.ASCII)


class ByteCount(Param):
    """A number of bytes: ``8``, ``64kB`` (10^3), ``64KiB`` (2^10), ``1.5MiB`` (2^20).

    Parameters
    ----------
    whole : bool
        True refuses what is not a whole number of bytes, and returns int.

    Examples
    --------
    >>> ByteCount().convert("1.5KiB", None, None), ByteCount(whole=True).convert("64kB", None, None)
    (1536.0, 64000)
    """

    name = "bytes"

    def __init__(self, whole: bool = False) -> None:
        self.whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the bytes as float, or int."""
        match = _SIZE.fullmatch(str(value))
        if match is None:
            return self.fail(f"{value!r} is not a size; use 8, 64kB or 4MiB", param, ctx)
        power = " kMGT".index((match[2] or " ").replace("K", "k"))
        size = float(match[1]) * (1024 if match[3] else 1000) ** power
        if self.whole and not size.is_integer():
            return self.fail(f"{value!r} is not a whole number of bytes", param, ctx)
        return int(size) if self.whole else size


#: The options, each as a `Job` calls it: kind of value, and both
#: columns of the help.
SENDING: dict[str, tuple[Any, str, str]] = {
    "bytes": (ByteCount(), "B",
        "Bytes per message (64KiB); a factor for graph:, matrix:, training:."),
    "algorithm": (str, "A",
        "Of collectives: library (default: the MPI's choice), pairwise, bruck, openmpi …"),
    "background": (str, "FILE|slurm",
        "Other jobs: one node list per line, or slurm: its running jobs."),
}  # fmt: skip


def sending_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what a job sends; None where one is not given."""
    for word, (kind, metavar, text) in reversed(SENDING.items()):
        declare = click.option if word == "bytes" else advanced
        command = declare(f"--{word}", type=kind, metavar=metavar, help=text)(command)
    return command
