"""The three measurements of ``nidmap bench stencil``: halos, levels, copies.

As section 3.3 of "Effective use of the PGAS Paradigm" has it: what lies on this
unit or on its node is copied by loads and stores out of shared windows, without
MPI; what lies elsewhere in chunks of a size that is tuned, all on their way at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from placement.errors import NidmapError
from placement.machine import Machine
from placement.support.array_types import Floats
from placement.support.lazy import lazy
from placement.support.quantities import exact_size
from workloads.fft.local import chunks
from workloads.memory import NodeMemory, fits
from workloads.options import named_machine
from workloads.phases import seconds_of
from workloads.session import Session
from workloads.stencil.trial import trial
from workloads.world import MPI, Comm, decide_on_root, processor, together

__all__ = ["Blocks", "copies", "halos", "levels", "meeting_levels", "partners", "per_repetition"]


_ITEM = 8


class Blocks:
    """So many float64 on each unit. Collective to make and to close.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    count : int
        Numbers of a block.

    Attributes
    ----------
    local : float64 (count,)
        This unit's block.
    node : list of int
        The other units of this node.
    chunk : int
        Bytes of a transfer by MPI.

    Raises
    ------
    NidmapError
        On every unit alike: too little memory.
    """

    def __init__(self, comm: Comm, count: int) -> None:
        size = count * _ITEM
        fits(comm, size, f"a block of {exact_size(size)} a unit")
        self.comm, self.chunk = comm, 1 << 20
        self._memory = NodeMemory(comm, size)
        self.local: Floats = self._memory.mine.view(np.float64)
        self.node = list(self._memory.near)
        self._window = MPI.Win.Create(self._memory.mine, 1, comm=comm)
        self._window.Lock_all(MPI.MODE_NOCHECK)

    def sync(self) -> None:
        """Make what all units wrote into their blocks visible to all. Collective."""
        for barrier in (self.comm.Barrier, lambda: None):
            self._memory.sync()
            self._window.Sync()
            barrier()

    def load(self, unit: int, out: Floats) -> None:
        """Copy the first numbers of a block on this node by loads and stores."""
        near = self._memory.near.get(unit)
        block = self.local if near is None else near.view(np.float64)
        np.copyto(out, block[: len(out)])

    def get(self, unit: int, out: Floats) -> None:
        """Copy the first numbers of a block through MPI, chunk by chunk, all at once."""
        raw = out.view(np.uint8)
        parts = chunks(len(raw), 1, self.chunk)
        requests = [self._window.Rget(raw[part], unit, part.start) for part in parts]
        MPI.Request.Waitall(requests)

    def tune(self, unit: int, most: int = 1 << 23) -> None:
        """Find the size of chunks with which a block comes fastest, and keep it.

        Parameters
        ----------
        unit : int
        most : int
            Bytes that are copied, as far as a block has them.
        """
        out = np.empty(min(len(self.local), most // _ITEM))
        times: dict[int, float] = {}
        for power in range(14, 25, 2):
            self.chunk = 1 << power
            times[self.chunk] = min(seconds_of(partial(self.get, unit, out)) for _ in range(3))
        self.chunk = min(times, key=times.__getitem__)

    def close(self) -> None:
        """Free the windows. Collective."""
        self.comm.Barrier()
        self.local = np.empty(0)
        self._window.Unlock_all()
        self._window.Free()
        self._memory.close()


lookup, distances = lazy("placement.lookup"), lazy("rankmap.score.distance")


#: Bytes that a rank moves at most in all iterations of a size, unless they are asked for.
_ENOUGH = 4 << 30

#: Iterations of the paper.
_PAPER = 10_000


#: Ranks of each level that rank 0 is timed against.
PARTNERS = 2


def halos(
    session: Session, sizes: Sequence[int], methods: Sequence[str], options: dict[str, Any]
) -> None:
    """Time the halo exchange, size by size and way by way."""
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
    session: Session, sizes: Sequence[int], specs: tuple[str, ...], options: dict[str, Any]
) -> None:
    """Time one message from rank 0 to a partner, level by level and size by size."""
    comm = session.comm
    for level, other in _partners(comm, specs):
        joins = comm.Get_rank() in (0, other)
        part = session.part(joins)
        for size in sizes:
            if session.over():
                break
            count = per_repetition(options["iterations"], size, session.common.repeat)
            made = Message(part, size, count) if joins else None
            session.measure(made, comm=part, bytes=size, level=level, partner=other)
            if made is not None:
                made.close()
        part.Free()


def _partners(comm: Comm, specs: tuple[str, ...]) -> Sequence[tuple[str, int]]:
    """Return whom rank 0 is timed against; the same on all ranks. Collective."""
    said = comm.gather((processor(comm), bound_socket()), root=0) or []

    def choose() -> list[tuple[str, int]]:
        hosts, sockets = zip(*said, strict=True)
        return partners(meeting_levels(hosts, sockets, named_machine(specs)), PARTNERS)

    return decide_on_root(comm, choose)


def bound_socket() -> int:
    """Return the socket that this process is bound to, -1 where it may run on several."""
    found = set()
    for core in os.sched_getaffinity(0):
        try:
            path = f"/sys/devices/system/cpu/cpu{core}/topology/physical_package_id"
            with open(path, encoding="ascii") as stream:
                found.add(int(stream.read()))
        except (OSError, ValueError):
            return -1
    return found.pop() if len(found) == 1 else -1


def meeting_levels(
    hosts: Sequence[str], sockets: Sequence[int], machine: Machine | None = None
) -> list[str]:
    """Return the level at which each rank meets rank 0.

    ``socket`` and ``node`` inside a node (Figure 6's UMA and NUMA; ``node``
    also where the sockets are not known), then the machine's own levels
    (``blade``, ``chassis``, ``group``, ``system``; on a torus the hops);
    without a machine ``network``.

    Parameters
    ----------
    hosts : sequence of str
        Node of each rank.
    sockets : sequence of int
        Socket of each rank, -1 where that is not known.
    machine : Machine or None

    Raises
    ------
    ParseError
        A host that the machine does not have.

    Examples
    --------
    >>> meeting_levels(["a", "a", "b"], [0, 1, 0])
    ['self', 'node', 'network']
    >>> import nidmap
    >>> tree = nidmap.load_machine("tree:2x2x2")
    >>> meeting_levels([f"nid0000{k}" for k in (0, 0, 1, 2, 4)], [0] * 5, tree)
    ['self', 'socket', 'level1', 'level2', 'system']
    """
    near = ["socket" if socket == sockets[0] != -1 else "node" for socket in sockets]
    found = [
        near[rank] if hosts[rank] == hosts[0] else level
        for rank, level in enumerate(_network_levels(hosts, machine))
    ]
    return ["self", *found[1:]]


def _network_levels(hosts: Sequence[str], machine: Machine | None) -> list[str]:
    """Return the level of the network at which each rank's node meets rank 0's."""
    if machine is None:
        return ["network"] * len(hosts)
    names, at = np.unique(hosts, return_inverse=True)
    rows = lookup.rows_of(machine, names.tolist(), "the job's nodes")[at]
    distance = distances.machine_distance(machine)
    first = np.full(len(rows), rows[0])
    if distance.coords is not None:
        return [f"{hops} hop{'s' * (hops != 1)}" for hops in distance.hops(first, rows).tolist()]
    words = ("node", *distance.names)
    return [words[level] for level in distance.level(first, rows).tolist()]


def partners(found: Sequence[str], most: int) -> list[tuple[str, int]]:
    """Return ranks to be timed against rank 0: up to so many a level, nearest levels first.

    Examples
    --------
    >>> partners(["self", "node", "node", "network"], 1)
    [('node', 1), ('network', 3)]
    """
    chosen: list[tuple[str, int]] = []
    for level in dict.fromkeys(found):
        ranks = [rank for rank, name in enumerate(found) if name == level]
        step = max(1, len(ranks) // most)
        chosen += [(level, rank) for rank in ranks[::step][:most] if level != "self"]
    return sorted(chosen, key=lambda entry: (_depth(entry[0]), entry[1]))


def _depth(level: str) -> tuple[int, str]:
    order = ("socket", "node", "blade", "switch", "leaf", "chassis", "group", "network", "system")
    if level in order:
        return 10 * order.index(level), level
    digits = "".join(c for c in level if c.isdigit())
    return 15 + int(digits or 0), level


def copies(session: Session, sizes: Sequence[int], options: dict[str, Any]) -> None:
    """Time copies of this unit's, a near unit's and a far unit's memory."""
    comm = session.comm
    count = max(1, -(-max(sizes) // _ITEM))
    blocks = Blocks(comm, count)
    blocks.local[...] = np.arange(count) + comm.Get_rank() * count
    blocks.sync()
    if session.root and comm.Get_size() > 1:
        blocks.tune(comm.Get_size() - 1)
    comm.Barrier()
    sources = decide_on_root(comm, lambda: _sources(blocks, not options["no_shm"]))
    for (where, unit), size in product(sources, sizes):
        if session.over():
            break
        items = max(1, size // _ITEM)
        runs = min(100, per_repetition(options["iterations"], size, session.common.repeat))
        out = np.zeros(items if session.root else 0)
        copy: Callable[[], object] | None = None
        if session.root and where == "plain":  # the reference of Figures 1 and 2 (std::copy)
            copy = partial(np.copyto, out, np.arange(items, dtype=np.float64))
        elif session.root:
            way = blocks.load if where in ("local", "node") else blocks.get
            copy = partial(way, unit, out)
        copying = Copying(comm, copy, out, unit * count, runs)
        session.measure(copying, bytes=items * _ITEM, where=where, unit=unit, chunk=blocks.chunk)
    blocks.close()


def _sources(blocks: Blocks, shared: bool) -> list[tuple[str, int]]:
    """Return what rank 0 copies: its name and the unit that holds it."""
    near = blocks.node[:1]
    far = [unit for unit in range(1, blocks.comm.Get_size()) if unit not in blocks.node][:1]
    sources = [("plain", 0), ("local", 0)]
    sources += [("node", unit) for unit in near if shared]
    return sources + [("get", unit) for unit in near] + [("remote", unit) for unit in far]


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


class Message:
    """One blocking put from rank 0 to rank 1 of a pair, over and over: Figure 6's latency.

    It is done when it is in the other's memory.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Two ranks.
    size : int
        Bytes.
    iterations : int
        Messages of one repetition.
    """

    def __init__(self, comm: Comm, size: int, iterations: int) -> None:
        self.comm, self._size, self._iterations = comm, size, iterations
        self._message = [np.full(size, 7, np.uint8), size, MPI.BYTE]
        self._window = MPI.Win.Allocate(max(size, 1), 1, comm=comm)
        self._window.Lock_all(MPI.MODE_NOCHECK)

    def run(self) -> dict[str, float]:
        """Send `iterations` times and return the seconds of one."""
        spent = 0.0
        if self.comm.Get_rank() == 0:
            spent = seconds_of(self._put, self._iterations)
        self.comm.Barrier()  # the other waits inside, where its MPI can help
        return {"total": spent, "communication": spent}

    def _put(self) -> None:
        self._window.Put(self._message, 1)
        self._window.Flush(1)

    def verify(self) -> None:
        """Raise on both ranks where the message did not arrive. Collective."""
        self._window.Flush_all()
        self.comm.Barrier()
        self._window.Sync()
        memory: Any = self._window.tomemory()
        arrived = np.frombuffer(memory, np.uint8)[: self._size]
        with together(self.comm):
            if self.comm.Get_rank() and not (arrived == 7).all():
                raise NidmapError("the message did not arrive as it was sent")

    def close(self) -> None:
        """Free the window. Collective."""
        self._window.Unlock_all()
        self._window.Free()


@dataclass(frozen=True, slots=True)
class Copying:
    """A copy over and over on the ranks that make it, while the others wait inside MPI.

    Attributes
    ----------
    comm : mpi4py.MPI.Intracomm
    copy : callable or None
        Makes the copy; None: this rank waits.
    out : float64 (n,)
        What is copied into; none where this rank waits.
    start : int
        The value that its first element is to have; each next one is larger by 1.
    iterations : int
        Copies of one repetition.
    """

    comm: Comm
    copy: Callable[[], object] | None
    out: Floats
    start: int
    iterations: int

    def run(self) -> dict[str, float]:
        """Copy `iterations` times and return the seconds of one; 0 where this rank waits."""
        spent = seconds_of(self.copy, self.iterations) if self.copy else 0.0
        self.comm.Barrier()
        return {"total": spent}

    def verify(self) -> None:
        """Raise on all ranks where a copy is not what was copied."""
        with together(self.comm):
            expected = np.arange(self.start, self.start + len(self.out), dtype=np.float64)
            if not np.array_equal(self.out, expected):
                raise NidmapError("the copy is not what was copied")
