# SPDX-License-Identifier: Apache-2.0
"""What the programs of ``nidmap bench`` share: a trial, its phases, and its memory limit.

Phases are timed with the monotonic clock of each rank; nothing is
synchronised in them. A phase that occurs several times is summed.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from nidmap.placement.errors import NidmapError, UsageError, printable
from nidmap.placement.support.quantities import size_text
from nidmap.workloads.world import Comm, raise_together

#: Seed of all data: the same for the same number of ranks, on any machine.
SEED = 0


def read_extents(text: str, what: str, example: str) -> tuple[int, ...]:
    """Parse extents such as ``128x128x64``.

    `what`: what the text is, as the error names it. `example`: the error's hint.
    """
    words = text.lower().split("x")
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        raise UsageError(f"{printable(text)!r} is not a {what}", example)
    return tuple(int(word) for word in words)


class Phases:
    """A stopwatch for a program's phases.

    `names`: phases that are there from the beginning, with no seconds.
    """

    __slots__ = ("seconds",)

    def __init__(self, names: Sequence[str] = ()) -> None:
        # By phase, in the order in which they were first entered
        self.seconds = dict.fromkeys(names, 0.0)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the time spent inside the context to a phase."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - began)

    def add(self, name: str, seconds: float) -> None:
        """Add seconds measured elsewhere to a phase."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def clear(self) -> None:
        """Reset every phase to zero."""
        self.seconds.clear()


def seconds_of(call: Callable[[], object], times: int = 1) -> float:
    """Call something this many times and return the seconds per call."""
    began = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - began) / times


def reduce_over_ranks(comm: Comm, seconds: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return min, mean and max over ranks of the seconds per phase. Collective.

    `seconds`: the same phases in the same order on every rank. The same on every rank.
    """
    from mpi4py import MPI

    mine = array("d", seconds.values())
    low, total, high = (array("d", mine) for _ in range(3))
    for values, op in ((low, MPI.MIN), (total, MPI.SUM), (high, MPI.MAX)):
        comm.Allreduce(mine, values, op=op)
    size = comm.Get_size()
    ends = zip(seconds, low, total, high, strict=True)
    return {name: {"min": a, "mean": b / size, "max": c} for name, a, b, c in ends}


class Trial(Protocol):
    """One program on one communicator, ready to be repeated.

    Made of a communicator and options, which sets up the data (collective over
    `comm`, not timed). It talks on the communicator
    it was given and on none that holds other ranks, so that two orders of the
    same ranks can stand side by side.
    """

    def run(self) -> Mapping[str, float]:
        """Run one timed repetition and return this rank's seconds.

        ``total`` and ``communication``, and the program's own phases besides; the same names in
        the same order on every rank.
        """
        ...

    def verify(self) -> None:
        """Raise a NidmapError on all ranks if the last result is wrong; not timed."""
        ...


#: Limit and use of the control group, version 2 and 1.
_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available_bytes() -> int:
    """Return the bytes still available on this node, by Linux and the control group."""
    room = 1 << 62  # not Linux: nothing is known, so nothing is refused
    with suppress(OSError, KeyError, ValueError), open("/proc/meminfo", encoding="ascii") as stream:
        lines = dict(line.split(":", 1) for line in stream)
        room = int(lines["MemAvailable"].split()[0]) * 1024
    for group in _GROUPS:
        with suppress(OSError, ValueError):  # no such group, or "max"
            limit, used = (int(Path(path).read_text()) for path in group)
            room = min(room, max(limit - used, 0))
    return room


def require_fit(comm: Comm, need: int, what: str, share: float = 0.9) -> None:
    """Refuse on all ranks what exceeds the memory of any rank's node. Collective.

    `need`: bytes that this rank will allocate. `what`: what for, in the error's words. `share`:
    part of the available memory that may be taken.
    """
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    mine, total = array("d", [need]), array("d", [0.0])
    node.Allreduce(mine, total, op=MPI.SUM)
    room = array("d", [available_bytes()])
    node.Bcast(room, root=0)
    ranks = node.Get_size()
    node.Free()
    used, worst = array("d", [total[0] / max(room[0], 1.0)]), array("d", [0.0])
    comm.Allreduce(used, worst, op=MPI.MAX)
    with raise_together(comm):
        if used[0] == worst[0] and worst[0] > share:
            raise NidmapError(
                f"{what} needs {size_text(total[0], 1024)} for {ranks} ranks of a node, "
                f"which has {size_text(room[0], 1024)} free",
                "use a smaller size or fewer ranks per node",
            )
