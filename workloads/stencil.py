# SPDX-License-Identifier: Apache-2.0
"""``nidmap bench stencil``: halo exchange with six neighbours, as in DASH.

Six messages are brought to six neighbours by one MPI_Neighbor_alltoall on a Cartesian
communicator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.support.quantities import exact_size, time_text
from nidmap.placement.support.tables import align_columns
from nidmap.rankmap.grid import dims as dims_of
from nidmap.workloads.options import Common, Sizes, bench_callback, option_with_default
from nidmap.workloads.session import Session
from nidmap.workloads.trials import SEED, read_extents, require_fit, seconds_of
from nidmap.workloads.world import Comm, raise_together

#: No neighbour there: MPI_PROC_NULL's place in our own numbers.
NONE = -1

#: Of each direction (down and up along each axis) the one that leads back.
OPPOSITE = (1, 0, 3, 2, 5, 4)

Bytes = NDArray[np.uint8]


@click.command("stencil")
@option_with_default(
    "--bytes sizes",
    Sizes(),
    "1-2MiB",
    "Message sizes: 8,64,1KiB or 1-2MiB (powers of two).",
    metavar="SIZES",
)
@option_with_default("--dims", str, "auto", "Grid of units: 4x4x2.", metavar="GRID")
@click.option(
    "--periodic", is_flag=True, help="Wrap the grid around: all ranks have six neighbours."
)
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    help="Exchanges over all repetitions. Default: the paper's 10,000, fewer where a rank "
    "would move more than 4 GiB.",
)
@bench_callback
def stencil(
    common: Common,
    sizes: tuple[int, ...],
    dims: str,
    periodic: bool,
    iterations: int | None,
) -> int:
    """Time halo exchanges with six neighbours.

    A repetition is a tenth (1/--repeat) of the iterations; times are of one
    exchange, of the slowest rank.

    \b
    nidmap bench stencil -n 8 --bytes 64KiB
    nidmap bench stencil -n 8 --periodic --bytes 1-64KiB
    srun -n 9216 nidmap bench stencil --dims 24x24x16 -o stencil.csv
    """
    how: dict[str, Any] = {"periodic": periodic}
    given = {"bytes": sizes, "dims": dims, "periodic": periodic, "iterations": iterations}
    with Session(common, "stencil", given) as session:
        for size in sizes:
            if session.over():
                break
            how["iterations"] = per_repetition(iterations, 6 * size, common.repeat)
            made = make_halo(session.comm, bytes=size, dims=dims, **how)
            session.measure(made, bytes=size, dims="x".join(map(str, made.grid)), **how)
            made.close()
    _show_session(session)
    return session.exit_code


def per_repetition(wanted: int | None, moved: int, repeat: int) -> int:
    """Return the number of iterations per repetition.

    `wanted`: in all, as the user says; None means the paper's 10,000, fewer where a rank would
    move more than 4 GiB. `moved`: bytes that a rank moves in one.
    """
    total = wanted or min(10_000, max(1, (4 << 30) // max(moved, 1)))
    return -(-total // repeat)


def _show_session(session: Session) -> None:
    document = session.document()
    rows: list[list[object]] = [["bytes", "best", "median", "worst"]]
    for case in document["cases"]:
        total = case["seconds"]["total"]
        times = [time_text(total[name]) for name in ("best", "median", "worst")]
        rows.append([exact_size(case["bytes"]), *times])
    session.common.show(document, align_columns(rows) if len(rows) > 1 else "")


def grid_of(dims: str, ranks: int) -> tuple[int, int, int]:
    """Return the extents of the grid of units.

    `dims`: ``auto``: the box of least surface; ``4x2x2``; fewer than three extents leave the last
    axes one unit thick.
    """
    if dims == "auto":
        x, y, z = dims_of.balanced_factors(ranks, 3)
        return x, y, z
    extents = read_extents(dims, "grid", "e.g. 4x4x2, or auto")
    if len(extents) > 3 or min(extents) < 1 or math.prod(extents) != ranks:
        shown = "x".join(map(str, extents))
        raise UsageError(
            f"a grid of {shown} units does not match {ranks} rank{'s' * (ranks != 1)}",
            "use up to three extents whose product is the number of ranks, or auto",
        )
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def rank_neighbours(rank: int, grid: Sequence[int], periodic: bool) -> tuple[int, ...]:
    """Return a rank's six neighbours, down and up along each axis; `NONE` for none.

    Ranks are row-major, the last axis fastest, as MPI_Cart_create numbers them.
    """
    neighbours = []
    stride = math.prod(grid)
    for extent in grid:
        stride //= extent
        place = rank // stride % extent
        for way in (-1, 1):
            there = place + way
            inside = 0 <= there < extent
            neighbour = rank + (there % extent - place) * stride
            neighbours.append(neighbour if inside or periodic else NONE)
    return tuple(neighbours)


def make_halo(
    comm: Comm,
    *,
    bytes: int = 1024,  # noqa: A002  # the option's name
    dims: str = "auto",
    periodic: bool = False,
    iterations: int = 100,
) -> Halo:
    """Return a halo exchange with its blocks filled. Collective.

    `comm`: its rank order is the order of the grid, last axis fastest. `bytes`: of each message.
    `dims`: the grid of units: ``4x4x2`` or ``auto``. `periodic`: whether the grid wraps around:
    then each unit has six neighbours. `iterations`: exchanges of one repetition.
    """
    grid = grid_of(dims, comm.Get_size())
    require_fit(comm, 12 * bytes, f"a halo of {exact_size(bytes)} per side")
    return Halo(comm, bytes, grid, periodic, iterations)


class Halo:
    """A repeated exchange of six blocks out and six in. Collective.

    Memory: twelve messages.

    `size`: bytes of a block. `grid`: extents of the grid of units. `periodic`: whether it wraps
    around. `iterations`: exchanges of one repetition.
    """

    def __init__(
        self, comm: Comm, size: int, grid: tuple[int, int, int], periodic: bool, iterations: int
    ) -> None:
        from mpi4py import MPI

        self.comm, self.size, self.grid, self.periodic = comm, size, grid, periodic
        self.iterations = iterations
        rank = comm.Get_rank()
        # Six ranks, `NONE` where there is none
        self.neighbours = rank_neighbours(rank, grid, periodic)
        # out, into: (6, size), blocks by direction: what is sent that way, and what was received
        # from there
        self.out: Bytes = np.stack([_sent_block(rank, way, size) for way in range(6)])
        self.into: Bytes = np.zeros((6, size), np.uint8)
        self._cart = comm.Create_cart(list(grid), [periodic] * 3, reorder=False)
        self._sides = [[side, size, MPI.BYTE] for side in (self.out, self.into)]

    def exchange(self) -> None:
        """Exchange all six blocks."""
        self._cart.Neighbor_alltoall(*self._sides)

    def run(self) -> dict[str, float]:
        """Exchange `iterations` times and return the seconds of one."""
        spent = seconds_of(self.exchange, self.iterations)
        return {"total": spent, "communication": spent}

    def verify(self) -> None:
        """Raise on all ranks if a block is not what the neighbour sent."""
        with raise_together(self.comm):
            for way, rank in enumerate(self.neighbours):
                if rank != NONE and not self._is_right(way, rank):
                    raise NidmapError(f"the block from rank {rank} did not arrive as it was sent")

    def _is_right(self, way: int, rank: int) -> bool:
        """Tell whether the data received from a direction are what was sent this way.

        Where one rank is the neighbour in several directions, MPI does not
        say which of its blocks a neighbour collective brings where.
        """
        ways = [OPPOSITE[other] for other in range(6) if self.neighbours[other] == rank]
        blocks = (_sent_block(rank, w, self.size) for w in ways)
        return any(np.array_equal(self.into[way], block) for block in blocks)

    def close(self) -> None:
        """Free the Cartesian communicator. Collective."""
        self._cart.Free()


def _sent_block(rank: int, way: int, size: int) -> Bytes:
    """Return the bytes that a rank sends in a direction."""
    return np.random.default_rng([SEED, rank, way]).integers(0, 256, size, np.uint8)
