"""One all-to-all on a communicator: equal blocks, or blocks of any size."""

from __future__ import annotations

import random
from array import array
from functools import partial
from itertools import accumulate

from placement.errors import NidmapError, UsageError
from placement.support.quantities import exact_size
from workloads.memory import fits
from workloads.phases import seconds_of
from workloads.words import check_word
from workloads.world import Comm, together

__all__ = ["KINDS", "AllToAll", "calls", "pattern", "trial"]

#: Which call of MPI.
KINDS = ("alltoall", "alltoallv")

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
    kind : {"alltoall", "alltoallv"}
    spread : float
        For alltoallv: blocks are between ``(1 - spread)`` and ``(1 + spread)``
        times `bytes`, drawn by the seed; 0 to 1.
    inner : int
        Calls in one timed repetition; 0: as many as move 64 KiB a pair, at
        most 64.
    seed : int

    Raises
    ------
    UsageError, NidmapError
        On all ranks alike: sizes that make no sense, or do not fit.

    Attributes
    ----------
    comm : mpi4py.MPI.Intracomm
    inner : int
        Calls in one timed repetition.
    sent : int
        Bytes that this rank sends to others in one call.
    """

    def __init__(
        self,
        comm: Comm,
        *,
        bytes: int = 65536,  # noqa: A002  # the option's name
        kind: str = "alltoall",
        spread: float = 0.0,
        inner: int = 0,
        seed: int = 0,
    ) -> None:
        with together(comm):
            if bytes < 0 or inner < 0 or not 0 <= spread <= 1:
                raise UsageError("bytes and inner are at least 0, spread between 0 and 1")
            check_word("kind of all-to-all", kind, KINDS)
            if spread and kind == "alltoall":
                raise UsageError("blocks of different sizes need alltoallv")
        self.comm, self.kind, self.inner = comm, kind, inner or calls(bytes)
        rank, ranks = comm.Get_rank(), range(comm.Get_size())
        self._out = [_block_bytes(bytes, spread, seed, rank, other) for other in ranks]
        self._in = [_block_bytes(bytes, spread, seed, other, rank) for other in ranks]
        fits(comm, sum(self._out) + sum(self._in), f"an all-to-all of {exact_size(bytes)} a pair")
        with together(comm):
            blocks = (_block(rank, other, count) for other, count in enumerate(self._out))
            self._send = bytearray().join(blocks)
            self._recv = bytearray(sum(self._in))
        self.sent = sum(self._out) - self._out[rank]

    def run(self) -> dict[str, float]:
        """Call it `inner` times and return the seconds of one call."""
        from mpi4py import MPI

        if self.kind == "alltoall":
            # Blocks are equal: the count is the buffer's share, which mpi4py divides itself.
            out, into = [self._send, MPI.BYTE], [self._recv, MPI.BYTE]
            spent = seconds_of(partial(self.comm.Alltoall, out, into), self.inner)
        else:
            sent, got = (
                [buffer, (counts, list(accumulate([0, *counts[:-1]]))), MPI.BYTE]
                for buffer, counts in ((self._send, self._out), (self._recv, self._in))
            )
            spent = seconds_of(partial(self.comm.Alltoallv, sent, got), self.inner)
        return {"total": spent, "communication": spent}

    def verify(self) -> None:
        """Raise on all ranks where a block is not what its sender filled it with."""
        rank, seen = self.comm.Get_rank(), memoryview(self._recv)
        with together(self.comm):
            at = 0
            for other, count in enumerate(self._in):
                if seen[at : at + count] != _block(other, rank, count):
                    raise NidmapError(f"the block from rank {other} did not arrive as it was sent")
                at += count


trial = AllToAll


def _block_bytes(size: int, spread: float, seed: int, source: int, target: int) -> int:
    """Return the bytes of the block from one rank to another, the same on both."""
    if not spread:
        return size
    draw = random.Random(f"{seed} {source} {target}").random()  # noqa: S311  # data, no secrets
    return round(size * (1 + spread * (2 * draw - 1)))


def _block(source: int, target: int, count: int) -> bytes:
    """Return the bytes that one rank sends another: both ranks, over and over."""
    word = array("q", [source * 1_000_003 + target + 1]).tobytes()
    return (word * (count // len(word) + 1))[:count]
