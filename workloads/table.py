"""Plain text tables, as a terminal and a log take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.commands.tables import aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["bandwidth_text", "bytes_text", "seconds_text", "table"]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table: the first column to the left, the others to the right.

    Examples
    --------
    >>> print(table(["phase", "best"], [["total", "1.2 s"], ["x", "3 ms"]]), end="")
    phase   best
    total  1.2 s
    x       3 ms
    """
    return aligned([head, *rows])


def seconds_text(seconds: float) -> str:
    """Return seconds with three figures and a unit.

    Examples
    --------
    >>> seconds_text(0.00123), seconds_text(12.5), seconds_text(2e-6)
    ('1.23 ms', '12.5 s', '2 µs')
    """
    if not seconds:
        return "0 s"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def bytes_text(count: float) -> str:
    """Return a number of bytes exactly, in the largest unit that divides it.

    Examples
    --------
    >>> bytes_text(8), bytes_text(65536), bytes_text(1500), bytes_text(500_000_000_000)
    ('8 B', '64 KiB', '1500 B', '500 GB')
    """
    whole = int(count)
    for base, units in ((1024, ("KiB", "MiB", "GiB", "TiB")), (1000, ("kB", "MB", "GB", "TB"))):
        for power in range(len(units), 0, -1):
            size = base**power
            if whole and whole % size == 0 and (whole // size < base or power == len(units)):
                return f"{whole // size} {units[power - 1]}"
    return f"{whole} B"


def bandwidth_text(rate: float) -> str:
    """Return bytes a second in kB/s, MB/s or GB/s (10^3, 10^6, 10^9).

    Examples
    --------
    >>> bandwidth_text(2.5e9), bandwidth_text(3e6), bandwidth_text(1470.0), bandwidth_text(0)
    ('2.5 GB/s', '3 MB/s', '1.47 kB/s', '0 kB/s')
    """
    for scale, unit in ((1e9, "GB/s"), (1e6, "MB/s")):
        if rate >= scale:
            return f"{rate / scale:.3g} {unit}"
    return f"{rate / 1e3:.3g} kB/s"
