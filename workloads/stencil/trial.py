"""One halo exchange on a communicator, ready to be repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import NidmapError, UsageError
from placement.support.quantities import exact_size
from workloads.memory import fits
from workloads.phases import seconds_of
from workloads.stencil.grid import NONE, OPPOSITE, grid_of
from workloads.stencil.halo import METHODS, Halo
from workloads.words import check_word
from workloads.world import same, together

if TYPE_CHECKING:
    from mpi4py import MPI
    from numpy.typing import NDArray


__all__ = ["Stencil", "pattern", "trial"]


def trial(
    comm: MPI.Intracomm,
    *,
    bytes: int = 1024,  # noqa: A002  # the option's name
    dims: str = "auto",
    periodic: bool = False,
    method: str = "put",
    iterations: int = 100,
    shm: bool = True,
    seed: int = 0,
) -> Stencil:
    """Return a halo exchange, its blocks filled. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Its rank order is the order of the grid, last axis fastest.
    bytes : int
        Of each message.
    dims : str
        The grid of units: ``4x4x2`` or ``auto``.
    periodic : bool
        Whether the grid wraps around: then each unit has six neighbours.
    method : str
        One of `workloads.stencil.halo.METHODS`.
    iterations : int
        Exchanges of one repetition.
    shm : bool
        Whether puts to units on the same node write into their memory. The
        paper has this off, to see the network alone; what an MPI does by
        itself inside a node is its own affair (MPICH: MPIR_CVAR_NOLOCAL=1).
    seed : int

    Raises
    ------
    UsageError, NidmapError
        On all ranks alike: a grid that does not fit the ranks, sizes that
        make no sense or do not fit the memory, arguments that differ.
    """
    with together(comm):
        if bytes < 0 or iterations < 1:
            raise UsageError("bytes must be at least 0, iterations at least 1")
        check_word("way to exchange", method, METHODS)
        grid = grid_of(dims, comm.Get_size())
    given = {"bytes": bytes, "dims": grid, "periodic": periodic, "method": method}
    same(comm, **given, iterations=iterations, shm=shm, seed=seed)
    fits(comm, 12 * bytes, f"a halo of {exact_size(bytes)} a side")
    made = METHODS[method](comm, bytes, grid=grid, periodic=periodic, shared=shm)
    return Stencil(made, grid, iterations, seed)


def pattern(ranks: int, dims: str = "auto", periodic: bool = False) -> str:
    """Return who talks to whom, as `rankmap.pattern` names it.

    Examples
    --------
    >>> pattern(24), pattern(8, "2x2x2", periodic=True)
    ('stencil:4x3x2', 'stencil:2x2x2,periodic')
    """
    grid = "x".join(map(str, grid_of(dims, ranks)))
    return f"stencil:{grid}{',periodic' if periodic else ''}"


class Stencil:
    """A halo exchange over and over.

    Memory: twelve messages.

    Attributes
    ----------
    grid : tuple of int
    iterations : int
        Exchanges of one repetition.
    """

    def __init__(self, made: Halo, grid: tuple[int, int, int], iterations: int, seed: int) -> None:
        self.grid, self.iterations = grid, iterations
        self._halo, self._seed = made, seed
        comm = made.comm
        for way in range(6):
            made.out[way] = _block(seed, comm.Get_rank(), way, made.out.shape[1])

    def run(self) -> dict[str, float]:
        """Exchange `iterations` times and return the seconds of one."""
        spent = seconds_of(self._halo.exchange, self.iterations)
        return {"total": spent, "communication": spent}

    def verify(self) -> None:
        """Raise on all ranks where a block is not what the neighbour sent."""
        made = self._halo
        made.settle()
        with together(made.comm):
            for way, rank in enumerate(made.neighbours):
                if rank != NONE and not self._right(way, rank):
                    raise NidmapError(f"the block from rank {rank} did not arrive as it was sent")

    def _right(self, way: int, rank: int) -> bool:
        """Tell whether what came from a direction is what was sent this way.

        Where one rank is the neighbour in several directions, MPI does not
        say which of its blocks a neighbour collective brings where.
        """
        made = self._halo
        ways = [OPPOSITE[way]]
        if made.loose:
            ways = [OPPOSITE[other] for other in range(6) if made.neighbours[other] == rank]
        size = made.into.shape[1]
        return any(np.array_equal(made.into[way], _block(self._seed, rank, w, size)) for w in ways)

    def close(self) -> None:
        """Free what MPI keeps. Collective."""
        self._halo.close()


def _block(seed: int, rank: int, way: int, size: int) -> NDArray[np.uint8]:
    """Return the bytes that a rank sends in a direction."""
    return np.random.default_rng([seed, rank, way]).integers(0, 256, size, np.uint8)
