"""Memory of the nodes: what a rank may take of it, and what the ranks of a node share."""

from __future__ import annotations

from array import array
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from placement.errors import NidmapError
from placement.support.lazy import lazy
from placement.support.quantities import size_text
from workloads.world import MPI, Comm, raise_together

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

__all__ = ["NodeMemory", "available_bytes", "require_fit"]

#: Limit and use of the control group, version 2 and 1.
_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available_bytes() -> int:
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


def require_fit(comm: Comm, need: int, what: str, share: float = 0.9) -> float:
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
                "a smaller size or fewer ranks a node",
            )
    return worst[0]


class NodeMemory:
    """A part of the node's memory for each of its ranks. Collective to make and to close.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Ranks of one or more nodes.
    size : int
        Bytes of this rank's part.

    Attributes
    ----------
    mine : uint8 (size,)
    near : dict of int to uint8 array
        The parts of the node's other ranks, by their rank in `comm`; at least as long as theirs.
    """

    def __init__(self, comm: Comm, size: int) -> None:
        self._node = node = cast("Comm", comm.Split_type(MPI.COMM_TYPE_SHARED))
        self._window = MPI.Win.Allocate_shared(max(size, 8), 1, comm=node)
        self._window.Lock_all(MPI.MODE_NOCHECK)
        self.near: dict[int, NDArray[np.uint8]] = {}
        for at, rank in enumerate(node.allgather(comm.Get_rank())):
            buffer: Any = self._window.Shared_query(at)[0]
            self.near[rank] = np.frombuffer(buffer, np.uint8)
        self.mine = self.near.pop(comm.Get_rank())[:size]

    def close(self) -> None:
        """Free the memory."""
        self.mine = np.empty(0, np.uint8)
        self.near.clear()
        self._window.Unlock_all()
        self._window.Free()
        self._node.Free()
