"""MP-sort: items that lie on many ranks, sorted by a whole-numbered key with one exchange.

In Python, for data of one's own::

    from workloads.sort import mpsort
    mine = mpsort(particles, key="group")      # this rank's share of the sorted whole

Source: Feng, Straka, Di Matteo, Croft, "MP-sort: Sorting at Scale on Blue
Waters - for a Cosmological Simulation" (2015).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workloads.sort.partition import mpsort

__all__ = ["mpsort"]


def __getattr__(name: str) -> Any:
    """Load `mpsort` when it is asked for: the command's help needs no numpy."""
    if name != "mpsort":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from workloads.sort.partition import mpsort

    return mpsort
