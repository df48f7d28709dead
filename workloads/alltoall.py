# SPDX-License-Identifier: Apache-2.0
"""``nidmap bench alltoall``: bandwidth by message size, per process and node (as mpiBench)."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from nidmap.placement.errors import NidmapError
from nidmap.placement.support.quantities import exact_size, rate_text, time_text
from nidmap.placement.support.tables import align_columns
from nidmap.workloads.options import Common, Sizes, bench_callback, option_with_default
from nidmap.workloads.session import Session
from nidmap.workloads.trials import require_fit, seconds_of
from nidmap.workloads.world import Comm, raise_together, rank_place

#: Minimum bytes per pair in a timed repetition, so that clocks can resolve it.
_ENOUGH = 1 << 16


@click.command("alltoall")
@option_with_default(
    "--bytes sizes",
    Sizes(),
    "8-4MiB",
    "Payload of each ordered pair: 8,64,1KiB or 8-4MiB (powers of two).",
)
@bench_callback
def alltoall(common: Common, sizes: tuple[int, ...]) -> int:
    """Measure all-to-all bandwidth by message size, per process and per node.

    Per process: bytes that it sends to other ranks, over the time of the slowest rank
    (median of the repetitions). Per node: that of its ranks together; off node: what of
    it leaves the node.

    \b
    nidmap bench alltoall -n 4
    nidmap bench alltoall -n 4 --bytes 1,1KiB-64KiB --json
    srun -N 64 --ntasks-per-node 32 nidmap bench alltoall --bytes 1MiB -o a2a.csv
    """
    with Session(common, "alltoall", {"sizes": list(sizes)}) as session:
        comm, ranks = session.comm, session.comm.Get_size()
        place = rank_place(comm)
        job = {"ppn": place.most, "ranks": ranks, "nodes": place.nodes}
        from mpi4py import MPI

        job["off_node"] = comm.allreduce(place.ranks * (ranks - place.ranks), MPI.MAX)
        for size in sizes:
            if session.over():
                break
            trial = AllToAll(comm, bytes=size)
            session.measure(trial, bytes=size, **job, inner=trial.inner)
    _show_session(session)
    return session.exit_code


def bandwidths(case: Mapping[str, Any], seconds: float) -> dict[str, float]:
    """Return the bytes per second of one case.

    `case`: ``bytes`` of a pair, ``ranks``, ``ppn``, and ``off_node``: most ordered pairs between
    a node and the others. `seconds`: of the slowest rank. ``process``: what a process sends to
    all others; ``node``: that of the fullest node's processes together; ``off_node``: what leaves
    it.
    """
    process = case["bytes"] * (case["ranks"] - 1) / seconds
    return {
        "process": process,
        "node": process * case["ppn"],
        "off_node": case["bytes"] * case["off_node"] / seconds,
    }


def _show_session(session: Session) -> None:
    document, rows = session.document(), []
    for case, result in zip(document["cases"], session.finished, strict=True):
        case["bandwidth"] = rate = bandwidths(case, result.median())
        times = [time_text(result.best()), time_text(result.median())]
        what = [exact_size(case["bytes"]), case["ppn"], case["ranks"]]
        rows.append([*what, *times, *map(rate_text, rate.values())])
    head = ["bytes", "ppn", "ranks", "best", "median", "process", "node", "off node"]
    session.common.show(document, align_columns([head, *rows]))


def calls(bytes: int) -> int:  # noqa: A002  # the option's name
    """Return how many calls make up one timed repetition."""
    return max(1, min(64, _ENOUGH // max(bytes, 1)))


class AllToAll:
    """Blocks from every rank to every rank, and their expected contents. Collective.

    Memory: twice the local blocks, ``2 * size * bytes``.

    `bytes`: payload of each ordered pair of ranks. `inner`: calls in one timed repetition; 0: as
    many as move 64 KiB per pair, at most 64. `inner`: calls in one timed repetition.
    """

    def __init__(self, comm: Comm, *, bytes: int, inner: int = 0) -> None:  # noqa: A002  # the option
        self.comm, self.size, self.inner = comm, bytes, inner or calls(bytes)
        rank, ranks = comm.Get_rank(), comm.Get_size()
        require_fit(comm, 2 * ranks * bytes, f"an all-to-all of {exact_size(bytes)} per pair")
        with raise_together(comm):
            self._send = bytearray().join(_make_block(rank, other, bytes) for other in range(ranks))
            self._recv = bytearray(ranks * bytes)

    def run(self) -> dict[str, float]:
        """Call MPI `inner` times and return the seconds per call."""
        # The count is the buffer's share, which mpi4py divides itself.
        from mpi4py import MPI

        exchange = partial(self.comm.Alltoall, [self._send, MPI.BYTE], [self._recv, MPI.BYTE])
        spent = seconds_of(exchange, self.inner)
        return {"total": spent, "communication": spent}

    def verify(self) -> None:
        """Raise on all ranks if a block differs from what its sender wrote into it."""
        rank, received, size = self.comm.Get_rank(), memoryview(self._recv), self.size
        with raise_together(self.comm):
            for other in range(self.comm.Get_size()):
                if received[other * size : (other + 1) * size] != _make_block(other, rank, size):
                    raise NidmapError(f"the block from rank {other} did not arrive as it was sent")


def _make_block(source: int, target: int, count: int) -> bytes:
    """Return the bytes that one rank sends another: both rank numbers, repeated."""
    word = array("q", [source * 1_000_003 + target + 1]).tobytes()
    return (word * (count // len(word) + 1))[:count]
