# SPDX-License-Identifier: Apache-2.0
"""Reorders the ranks of a running program, as DASH does.

`reorder` gives a communicator of the same processes in another order, and
`cart_create` an MPI_Cart_create whose ``reorder`` does something. The names
of all processors are gathered once; rank 0 alone reads the machine, imports
what that takes and computes; everyone else waits for its numbers and loads
nothing but this module. mpi4py is needed only here, and only when called.

A rank that cannot take part says so instead of staying away, so that all
ranks raise the same error and none is left waiting.
"""

from __future__ import annotations

import math
import os
import warnings
from array import array
from typing import TYPE_CHECKING, NamedTuple, cast

from nidmap.placement.errors import LaunchError, UsageError, error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpi4py import MPI

    from nidmap.placement.machine import Machine

    #: Contribution of each rank: its processor, Slurm's name for it, its request.
    Offer = tuple[str, str, "_RankRequest"]
    #: Contribution of a rank that cannot take part: whether the request is wrong, and why.
    Refusal = tuple[bool, str]

#: Names to use in place of the processors' own, comma-separated: world rank r
#: is on the r-th of them, counted round. For trying out many nodes on one.
NAMES = "NIDMAP_PROCESSOR_NAMES"


class _RankRequest(NamedTuple):
    """The request of a rank; all ranks must make the same."""

    pattern: str
    ranks: int
    strategy: str = ""


def reorder(
    comm: MPI.Intracomm,
    dims: Sequence[int] | None = None,
    *,
    periodic: bool = False,
    pattern: str | None = None,
    machine: str | Machine | None = None,
    strategy: str | None = None,
) -> MPI.Intracomm:
    """Return a communicator of the same processes, ranked for the machine that they run on.

    Collective. The result compares as MPI_SIMILAR to `comm`, or MPI_CONGRUENT
    where nothing better than the order it has was found. Where the machine, or
    a processor in it, is not known, only nodes are distinguished, and rank 0
    warns.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The processes; every one of them must call.
    dims : sequence of int or None
        Process grid, ranks row-major as MPI_Cart_create numbers them; its
        product must be ``comm.size``.
    periodic : bool
        Whether the grid wraps around.
    pattern : str or None
        Who talks to whom in place of a grid's neighbours (see
        `nidmap.rankmap.pattern.parse_pattern`), e.g. ``fft:64x64``.
    machine : str, Machine or None
        A machine spec as ``-m`` takes it; only rank 0's counts. None:
        ``$NIDMAP_MACHINE``.
    strategy : str or None
        An ordering's name; None: the best there is, and none where that does
        not help.

    Returns
    -------
    mpi4py.MPI.Intracomm
        To be freed by the caller; `comm` itself stays as it is.

    Raises
    ------
    UsageError
        On every rank alike: neither a grid nor a pattern, one of another size,
        or not the same on all ranks.
    LaunchError
        On every rank alike: a rank that could not take part.

    Examples
    --------
    >>> from mpi4py import MPI  # doctest: +SKIP
    >>> comm = reorder(MPI.COMM_WORLD, dims=(24, 24, 16))  # doctest: +SKIP
    """

    def request() -> _RankRequest:
        if (dims is None) == (pattern is None):
            raise UsageError("reorder needs either dims or a pattern")
        spec = str(pattern) if dims is None else _read_grid(dims, periodic)[0]
        return _RankRequest(spec, comm.Get_size(), strategy or "")

    return _reordered(comm, request, machine)


def cart_create(
    comm: MPI.Intracomm,
    dims: Sequence[int],
    periods: Sequence[bool] | bool = False,
    *,
    machine: str | Machine | None = None,
    strategy: str | None = None,
) -> MPI.Cartcomm:
    """Return a Cartesian communicator whose ranks are placed for their neighbours.

    What MPI_Cart_create promises for ``reorder=True``. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The processes; every one of them must call.
    dims : sequence of int
        Extents, 1 to 4 of them. Where they hold fewer ranks than `comm`, its
        last ones are left out.
    periods : sequence of bool, or bool
        Whether each dimension wraps around. Ranks are placed for wrapping
        where all dimensions do.
    machine : str, Machine or None
        A machine spec as ``-m`` takes it; only rank 0's counts. None:
        ``$NIDMAP_MACHINE``.
    strategy : str or None
        An ordering's name; None: the best there is.

    Returns
    -------
    mpi4py.MPI.Cartcomm
        ``MPI.COMM_NULL`` on ranks that are left out.

    Raises
    ------
    UsageError
        On every rank alike: extents that are none, or too large.
    LaunchError
        On every rank alike: a rank that could not take part.

    Examples
    --------
    >>> from mpi4py import MPI  # doctest: +SKIP
    >>> grid = cart_create(MPI.COMM_WORLD, (24, 24, 16), periods=True)  # doctest: +SKIP
    """
    from mpi4py import MPI

    def request() -> _RankRequest:
        spec, _ = _read_grid(dims, periods)
        return _RankRequest(spec, math.prod(map(int, dims)), strategy or "")

    part = _reordered(comm, request, machine)
    if part == MPI.COMM_NULL:
        return MPI.COMM_NULL  # type: ignore[return-value]  # as MPI_Cart_create does
    try:
        return part.Create_cart(list(dims), _read_grid(dims, periods)[1], reorder=False)
    finally:
        part.Free()


def _read_grid(dims: Sequence[int], periods: Sequence[bool] | bool) -> tuple[str, list[bool]]:
    """Return the pattern of a grid's neighbours, and whether each dimension wraps around.

    Nothing is imported that would check it.
    """
    extents = [int(extent) for extent in dims]
    if not extents or min(extents) < 1:
        raise UsageError(f"{tuple(extents)} is not a process grid")
    of_dims = [periods] * len(dims) if isinstance(periods, bool | int) else periods
    wraps = [*map(bool, of_dims)]
    if len(wraps) != len(extents):
        raise UsageError(f"{len(wraps)} periods for {len(extents)} dimensions")
    return f"stencil:{'x'.join(map(str, extents))}" + (",periodic" if all(wraps) else ""), wraps


def _reordered(
    comm: MPI.Intracomm, request: Callable[[], _RankRequest], machine: str | Machine | None
) -> MPI.Intracomm:
    """Return a communicator in the order that rank 0 computes, equal on all ranks."""
    offers = comm.gather(_make_offer(comm, request), root=0)
    outcome: tuple[array[int], str, Refusal | None] | None = None
    if comm.Get_rank() == 0:
        try:
            outcome = (*_answer_offers(offers or [], comm.Get_size(), machine), None)
        except BaseException as error:
            outcome = array("q"), "", _pack_refusal(error)
            if not isinstance(error, Exception):  # whatever ends rank 0 ends the others too
                comm.bcast(outcome, root=0)
                raise
    ranks, talk, refusal = comm.bcast(outcome, root=0)
    if refusal:
        raise UsageError(refusal[1]) if refusal[0] else LaunchError(refusal[1])
    if talk and comm.Get_rank() == 0:
        warnings.warn(talk, RuntimeWarning, stacklevel=3)
    group = comm.Get_group()
    wanted = group.Incl(ranks.tolist())
    try:
        return cast("MPI.Intracomm", comm.Create(wanted))
    finally:
        wanted.Free()
        group.Free()


def _make_offer(comm: MPI.Intracomm, request: Callable[[], _RankRequest]) -> Offer | Refusal:
    """Return this rank's contribution, or why it cannot take part."""
    from mpi4py import MPI

    try:
        names = [name.strip() for name in os.environ.get(NAMES, "").split(",") if name.strip()]
        if names:
            name = names[MPI.COMM_WORLD.Get_rank() % len(names)]
            return name, name, request()
        return MPI.Get_processor_name(), os.environ.get("SLURMD_NODENAME", ""), request()
    except Exception as error:
        return _pack_refusal(error)


def _answer_offers(
    offers: Sequence[Offer | Refusal], size: int, machine: str | Machine | None
) -> tuple[array[int], str]:
    """On rank 0, return the old rank of each new one, and a warning."""
    from nidmap.rankmap import predict
    from nidmap.rankmap.runtime import rerank

    brought: list[Offer] = []
    for rank, offer in enumerate(offers):
        if len(offer) == 2:
            usage, wrong = offer
            raise UsageError(wrong) if usage else LaunchError(f"rank {rank}: {wrong}")
        brought.append(offer)
    wanted = brought[0][2]
    for rank, (_, _, other) in enumerate(brought):
        if other != wanted:
            difference = f"rank {rank} asks for {other.pattern}, rank 0 for {wanted.pattern}"
            raise UsageError(f"all ranks must ask for the same: {difference}")
    if wanted.ranks > size:
        raise UsageError(f"{wanted.pattern} has {wanted.ranks} ranks, the communicator has {size}")
    hosts = [(processor, node) for processor, node, _ in brought[: wanted.ranks]]
    reranked = rerank.rerank(hosts, predict.Job(wanted.pattern), machine, wanted.strategy)
    return array("q", reranked.ranks.tolist()), reranked.warning


def _pack_refusal(error: BaseException) -> Refusal:
    return isinstance(error, UsageError), error_text(error)
