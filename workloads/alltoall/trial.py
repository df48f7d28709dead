"""One all-to-all of equal blocks on a communicator."""

from __future__ import annotations

from array import array
from functools import partial

from placement.errors import NidmapError, UsageError
from placement.support.quantities import exact_size
from workloads.memory import require_fit
from workloads.phases import seconds_of
from workloads.world import MPI, Comm, raise_together

__all__ = ["AllToAll", "calls", "pattern", "trial"]

#: Bytes a pair that are moved at least in one timed repetition, so that clocks can tell it.
_ENOUGH = 1 << 16


def pattern(ranks: int) -> str:
    """Return who talks to whom: everybody to everybody."""
    return "alltoall"


def calls(bytes: int) -> int:  # noqa: A002  # the option's name
    """Return how many calls one timed repetition holds.

    Examples
    --------
    >>> calls(8), calls(16384), calls(1 << 22)
    (64, 4, 1)
    """
    return max(1, min(64, _ENOUGH // max(bytes, 1)))


class AllToAll:
    """Blocks from every rank to every rank, and what each should hold. Collective.

    Memory: twice the local blocks, ``2 * size * bytes``.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    bytes : int
        Payload of each ordered pair of ranks.
    inner : int
        Calls in one timed repetition; 0: as many as move 64 KiB a pair, at
        most 64.
    seed : int
        Nothing here is drawn; for the sake of `workloads.phases.Trial`.

    Raises
    ------
    UsageError, NidmapError
        On all ranks alike: sizes that make no sense, or do not fit.

    Attributes
    ----------
    comm : mpi4py.MPI.Intracomm
    inner : int
        Calls in one timed repetition.
    """

    def __init__(
        self,
        comm: Comm,
        *,
        bytes: int = 65536,  # noqa: A002  # the option's name
        inner: int = 0,
        seed: int = 0,
    ) -> None:
        with raise_together(comm):
            if bytes < 0 or inner < 0:
                raise UsageError("bytes and inner are at least 0")
        self.comm, self.size, self.inner = comm, bytes, inner or calls(bytes)
        rank, ranks = comm.Get_rank(), comm.Get_size()
        require_fit(comm, 2 * ranks * bytes, f"an all-to-all of {exact_size(bytes)} a pair")
        with raise_together(comm):
            self._send = bytearray().join(_make_block(rank, other, bytes) for other in range(ranks))
            self._recv = bytearray(ranks * bytes)

    def run(self) -> dict[str, float]:
        """Call it `inner` times and return the seconds of one call."""
        # The count is the buffer's share, which mpi4py divides itself.
        exchange = partial(self.comm.Alltoall, [self._send, MPI.BYTE], [self._recv, MPI.BYTE])
        spent = seconds_of(exchange, self.inner)
        return {"total": spent, "communication": spent}

    def verify(self) -> None:
        """Raise on all ranks where a block is not what its sender filled it with."""
        rank, received, size = self.comm.Get_rank(), memoryview(self._recv), self.size
        with raise_together(self.comm):
            for other in range(self.comm.Get_size()):
                if received[other * size : (other + 1) * size] != _make_block(other, rank, size):
                    raise NidmapError(f"the block from rank {other} did not arrive as it was sent")


trial = AllToAll


def _make_block(source: int, target: int, count: int) -> bytes:
    """Return the bytes that one rank sends another: both ranks, over and over."""
    word = array("q", [source * 1_000_003 + target + 1]).tobytes()
    return (word * (count // len(word) + 1))[:count]
