"""Memory of the nodes: what a rank may take, and a refusal before anything is allocated."""

from __future__ import annotations

from array import array
from contextlib import suppress
from pathlib import Path

from placement.errors import NidmapError
from placement.support.quantities import size_text
from workloads.world import MPI, Comm, together

__all__ = ["available", "fits"]

#: Limit and use of the control group, version 2 and 1.
_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available() -> int:
    """Return the bytes that this node can still give, as Linux and the control group say."""
    room = 1 << 62  # no Linux: nothing is known, nothing refused
    with suppress(OSError, KeyError, ValueError), open("/proc/meminfo", encoding="ascii") as stream:
        lines = dict(line.split(":", 1) for line in stream)
        room = int(lines["MemAvailable"].split()[0]) * 1024
    for group in _GROUPS:
        with suppress(OSError, ValueError):  # no such group, or "max"
            limit, used = (int(Path(path).read_text()) for path in group)
            room = min(room, max(limit - used, 0))
    return room


def fits(comm: Comm, need: int, what: str, share: float = 0.9) -> float:
    """Refuse on all ranks what does not fit the memory of some rank's node. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    need : int
        Bytes that this rank will allocate.
    what : str
        What for, in the error's words.
    share : float
        Part of the available memory that may be taken.

    Returns
    -------
    float
        Largest part of a node's available memory that is needed, 0 to `share`.

    Raises
    ------
    NidmapError
        On every rank alike.
    """
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    mine, total = array("d", [need]), array("d", [0.0])
    node.Allreduce(mine, total, op=MPI.SUM)
    room = array("d", [available()])
    node.Bcast(room, root=0)
    ranks = node.Get_size()
    node.Free()
    used, worst = array("d", [total[0] / max(room[0], 1.0)]), array("d", [0.0])
    comm.Allreduce(used, worst, op=MPI.MAX)
    with together(comm):
        if used[0] == worst[0] and worst[0] > share:
            raise NidmapError(
                f"{what} needs {size_text(total[0], 1024)} for {ranks} ranks of a node, "
                f"which has {size_text(room[0], 1024)} free",
                "a smaller size or fewer ranks a node",
            )
    return worst[0]
