"""The three measurements of ``nidmap bench stencil``: halos, levels, copies."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, cast

from workloads.options import named_machine
from workloads.world import processor, together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi4py import MPI

    from workloads.session import Session
    from workloads.stencil.blocks import Blocks

__all__ = ["copies", "halos", "levels", "per_repetition"]

_ITEM = 8

#: Bytes that a rank moves at most in all iterations of a size, unless they are asked for.
_ENOUGH = 4 << 30

#: Iterations of the paper.
_PAPER = 10_000


def halos(
    session: Session, sizes: Sequence[int], methods: Sequence[str], options: dict[str, Any]
) -> None:
    """Time the halo exchange, size by size and way by way."""
    from workloads.stencil.trial import trial

    for size, method in product(sizes, methods):
        if session.over():
            return
        count = per_repetition(options["iterations"], 6 * size, session.common.repeat)
        how = {"periodic": options["periodic"], "shm": not options["no_shm"], "iterations": count}
        seed = session.common.seed
        made = trial(
            session.comm, bytes=size, dims=options["dims"], method=method, seed=seed, **how
        )
        dims = "x".join(map(str, made.grid))
        session.measure(made, bytes=size, method=method, dims=dims, **how)
        made.close()


def levels(
    session: Session,
    sizes: Sequence[int],
    method: str,
    specs: tuple[str, ...],
    options: dict[str, Any],
) -> None:
    """Time one message from rank 0 to a partner, level by level and size by size."""
    from workloads.stencil.single import Message

    comm = session.comm
    way = "sendrecv" if method == "sendrecv" else "put"
    for level, other in _partners(comm, specs, options["partners"]):
        joins = comm.Get_rank() in (0, other)
        part = session.part(joins)
        for size in sizes:
            if session.over():
                break
            count = per_repetition(options["iterations"], size, session.common.repeat)
            made = Message(part, size, way, count) if joins else None
            session.measure(made, comm=part, bytes=size, level=level, partner=other, method=way)
            if made is not None:
                made.close()
        part.Free()


def _partners(comm: MPI.Intracomm, specs: tuple[str, ...], most: int) -> Sequence[tuple[str, int]]:
    """Return whom rank 0 is timed against; the same on all ranks. Collective."""
    from workloads.stencil import pairs

    said = comm.gather((processor(comm), pairs.socket()), root=0)
    chosen: list[tuple[str, int]] = []
    with together(comm):
        if said is not None:
            hosts, sockets = zip(*said, strict=True)
            chosen = pairs.partners(pairs.levels(hosts, sockets, named_machine(specs)), most)
    return cast("Sequence[tuple[str, int]]", comm.bcast(chosen, root=0))


def copies(session: Session, sizes: Sequence[int], options: dict[str, Any]) -> None:
    """Time copies of this unit's, a near unit's and a far unit's memory, and of all units'."""
    import numpy as np

    from workloads.stencil.blocks import Blocks
    from workloads.stencil.single import Fetch, Plain

    comm = session.comm
    each = max(1, -(-max(sizes) // _ITEM))
    made = {}
    for shared in (False,) if options["no_shm"] else (True, False):
        made[shared] = blocks = Blocks(comm, (each * comm.Get_size(),), shared=shared)
        blocks.local[...] = np.arange(blocks.region[0].start, blocks.region[0].stop)
        blocks.sync()
    chunk = options["chunk"] or _tuned_chunk(made[False])
    for blocks in made.values():
        blocks.chunk = chunk
    for where, shared, unit in _sources(comm, made):
        for size in sizes:
            if session.over():
                break
            count = max(1, size // _ITEM)
            runs = min(100, per_repetition(options["iterations"], size, session.common.repeat))
            start = unit * each if where != "span" else each - min(each, count // 2 + 1)
            plain = where == "plain"
            copy = Plain(count, runs) if plain else Fetch(made[shared], start, count, runs)
            session.measure(copy, bytes=count * _ITEM, where=where, unit=unit, chunk=chunk)
    for blocks in made.values():
        blocks.close()


def _sources(comm: MPI.Intracomm, made: dict[bool, Blocks]) -> list[tuple[str, bool, int]]:
    """Return what is copied: its name, by shared windows or not, the unit. Collective."""
    found: list[tuple[str, bool, int]] = [("plain", False, 0), ("local", False, 0)]
    if comm.Get_rank() == 0:
        shares = made[True].split((slice(None),)) if True in made else []
        node = [share.unit for share in shares if share.where == "node"]
        far = [share.unit for share in shares if share.where == "remote"]
        found += [("node", True, node[0])] if node else []
        found += [("remote", False, far[0])] if far else []
        if comm.Get_size() > 1:
            found += [("get", False, node[0] if node else 1)] if node or not shares else []
            found += [("span", True in made, 0)]
    return cast("list[tuple[str, bool, int]]", comm.bcast(found, root=0))


def _tuned_chunk(blocks: Blocks) -> int:
    """Return the bytes of a transfer that rank 0 finds best. Collective."""
    comm = blocks.comm
    if comm.Get_size() > 1 and comm.Get_rank() == 0:
        blocks.tune(comm.Get_size() - 1)
    comm.Barrier()
    return int(comm.bcast(blocks.chunk, root=0))


def per_repetition(asked: int | None, moved: int, repeat: int) -> int:
    """Return the iterations of one repetition.

    Parameters
    ----------
    asked : int or None
        In all, as the user asked; None: the paper's 10,000 or fewer.
    moved : int
        Bytes that a rank moves in one.
    repeat : int

    Examples
    --------
    >>> per_repetition(None, 6, 10), per_repetition(None, 6 << 21, 10), per_repetition(25, 6, 10)
    (1000, 35, 3)
    """
    total = asked or min(_PAPER, max(1, _ENOUGH // max(moved, 1)))
    return -(-total // repeat)
