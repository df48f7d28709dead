"""Record who sends how much to whom in a running mpi4py program.

`record` gives a communicator that does what the one it is made of does and
counts the bytes of every message on the way. Nothing is sent for it while the
program runs: each rank counts its own, and one gather at the end writes the
matrix, which ``--pattern matrix:FILE`` reads.

A collective has no pairs of its own. It is counted as the messages of a usual
algorithm (`rankmap.collectives.usual`), so that the matrix says which ranks
gain from being close.

Persistent sends and collectives are counted each time they are started (not
by ``Prequest.Startall``). Barriers carry no bytes. One-sided communication is
not seen, a window being no communicator, nor are partitioned sends and spawned
programs; what Open MPI's own monitoring writes holds one-sided traffic too.
Communicators made from a recorded one are recorded into the same matrix, by
the ranks of the first.
"""

from __future__ import annotations

import atexit
import functools
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from placement.errors import OutputError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpi4py import MPI

    Count = Callable[["_Call"], None]

__all__ = ["Log", "record"]

#: mpi4py's module, once something is recorded.
mpi: Any = None

#: Names that mpi4py's methods give to the message.
_MESSAGE = ("obj", "buf", "sendobj", "sendbuf")

# Of each family the plain methods; nonblocking and persistent ones (`Ibcast`, `Bcast_init`) follow.

#: A message to one rank.
_TO_ONE = "send ssend bsend sendrecv Send Ssend Bsend Rsend Sendrecv Sendrecv_replace"

#: Collectives of one message a rank, by kind: the place of the root behind the method.
_BLOCKS = {
    "bcast": "bcast:1 Bcast:1",
    "reduce": "reduce:2 Reduce:3",
    "gather": "gather:1 Gather:2 Gatherv:2",
    "allgather": "allgather Allgather Allgatherv",
    "allreduce": "allreduce Allreduce",
    "scan": "scan Scan exscan Exscan",
}

#: Collectives that send a part of its own to every rank, from the root to every rank, or to the
#: neighbours in a topology; and those that send all of it to each neighbour.
_PARTS = (
    "alltoall Alltoall Alltoallv Alltoallw Reduce_scatter Reduce_scatter_block "
    "scatter Scatter Scatterv "
    "neighbor_alltoall Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw"
)
_NEIGHBOR_ALL = ("neighbor_allgather", "Neighbor_allgather", "Neighbor_allgatherv")

#: Makers of communicators whose traffic counts too.
_MAKERS = (
    "Dup Clone Dup_with_info Split Split_type Create Create_group Create_cart Create_graph "
    "Create_dist_graph Create_dist_graph_adjacent Sub"
)


class Log:
    """What one rank has sent, by the ranks of the communicator that is recorded.

    Attributes
    ----------
    sent : dict of int to [bytes, messages]
        By the rank that it goes to.
    unmeasured : int
        Messages whose size could not be told; they count as empty.
    """

    def __init__(self) -> None:
        self.sent: dict[int, list[int]] = {}
        self.unmeasured = 0

    def add(self, to: int, many: int, messages: int = 1) -> None:
        """Count a message of so many bytes."""
        entry = self.sent.setdefault(to, [0, 0])
        entry[0] += many
        entry[1] += messages


def record(comm: MPI.Intracomm, path: str | None = None) -> MPI.Intracomm:
    """Return a communicator that does what `comm` does and counts what it sends.

    Collective. The matrix is written once: when the program ends, by the
    communicator's ``save``, or as a context manager at the end of the block.
    Messages of pickled objects (``send``, ``bcast`` …) are pickled once more
    to see their size, buffers (``Send``, ``Bcast`` …) only asked for it.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    path : str or None
        File to write, ``.npz`` (a sparse matrix as scipy saves it) or
        ``.csv`` (from, to, bytes). None: ``nidmap-matrix-<job>.npz`` in the
        working directory, a new name each run.

    Returns
    -------
    mpi4py.MPI.Intracomm
        A communicator on the same context as `comm`, so that messages of one
        meet receives of the other. It has besides ``log`` (a `Log`) and
        ``save(path=None)``, collective, which returns the file's name on
        rank 0 and raises OutputError there where it cannot be written.

    Examples
    --------
    >>> from mpi4py import MPI  # doctest: +SKIP
    >>> comm = record(MPI.COMM_WORLD, "matrix.npz")  # doctest: +SKIP
    >>> comm.sendrecv("x", dest=1, source=1)  # doctest: +SKIP
    """
    global mpi  # the one place that sets it: importing mpi4py starts MPI
    from mpi4py import MPI

    mpi = MPI
    return cast("MPI.Intracomm", _Matrix(comm, path).communicator)


class _Matrix:
    """One matrix in the making, and the communicator whose messages it counts."""

    def __init__(self, comm: Any, path: str | None) -> None:
        self.comm, self.path, self.began = comm, path, time.monotonic()
        self.log = Log()
        self.group = comm.Get_group()
        self.communicator: Any = _record_messages(comm, self)
        atexit.register(self.finish)

    def finish(self) -> None:
        """Write the matrix at the end of the block or of the program, unless that is done."""
        if not mpi.Is_finalized():
            self.save()

    def save(self, path: str | None = None) -> str:
        """Gather what all ranks have sent and write it; collective.

        Raises
        ------
        OutputError
            On every rank, where rank 0 cannot write.
        """
        import numpy as np

        atexit.unregister(self.finish)
        sent = sorted(self.log.sent.items())
        rows = np.array([(to, *many) for to, many in sent], dtype=np.int64).reshape(-1, 3)
        lengths = self.comm.gather(len(rows), root=0)
        table = np.empty((sum(lengths or ()), 3), dtype=np.int64)
        counts = [3 * length for length in lengths or ()]
        self.comm.Gatherv(rows, [table, counts, mpi.INT64_T] if lengths else None, root=0)
        told = ("", "")
        if lengths is not None:
            told = self._write(path, np.repeat(np.arange(len(lengths)), lengths), table)
        name, wrong = self.comm.bcast(told, root=0)
        if wrong:
            raise OutputError(wrong)
        return str(name)

    def _write(self, path: str | None, sender: Any, table: Any) -> tuple[str, str]:
        """Write the matrix on rank 0 and return its name, or what is wrong."""
        from rankmap.launch.allocation import job_id
        from rankmap.recording import Messages, Phase, Recording
        from rankmap.recording.file import save_recording

        job = job_id(os.environ).partition(".")[0]
        mark = f"{job}-" if job.isalnum() else ""
        new = f"nidmap-matrix-{mark}{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.npz"
        chosen = path or self.path or new
        sent = Messages(sender, *table.T)
        messages = int(sent.messages.sum())
        phase = Phase("point-to-point", "mpi4py", messages, messages, sent)
        seconds = time.monotonic() - self.began
        try:
            save_recording(Recording(self.comm.Get_size(), seconds, (phase,), "mpi4py"), chosen)
        except Exception as error:
            reason = getattr(error, "strerror", None) or error
            return "", f"cannot write {printable(chosen)}: {printable(str(reason), 200)}"
        return chosen, ""


class _Recorded:
    """What every recorded communicator has besides mpi4py's own methods."""

    _matrix: _Matrix
    _ranks: Sequence[int]

    @property
    def log(self) -> Log:
        """What this rank has sent so far."""
        return self._matrix.log

    def save(self, path: str | None = None) -> str:
        """Write the matrix; see `record`."""
        return self._matrix.save(path)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self._matrix.finish()

    def _count(self, to: int, many: int, messages: int = 1) -> None:
        """Count a message to a rank of this communicator."""
        if to >= 0 and self._ranks[to] >= 0:
            self.log.add(self._ranks[to], many, messages)

    def _size(self, message: Any, name: str) -> int:
        """Return the bytes of a message to a method; what cannot be measured counts as none."""
        try:
            return _pickled_size(message) if name.islower() else _size_of(message)
        except Exception:
            self.log.unmeasured += 1
            return 0


class _Call(NamedTuple):
    """A call of a communicator's method: the plain method's name, and what it returned."""

    comm: Any
    name: str
    args: tuple[Any, ...]
    words: dict[str, Any]
    found: Any = None

    def argument(self, at: int, *names: str) -> Any:
        """Return an argument by its place or one of its names."""
        if len(self.args) > at:
            return self.args[at]
        return next((self.words[name] for name in names if name in self.words), None)

    @property
    def message(self) -> Any:
        """What is sent."""
        found = self.argument(0, *_MESSAGE)
        return self.argument(1, "recvbuf") if found is mpi.IN_PLACE else found


def _record_messages(comm: Any, matrix: _Matrix) -> Any:
    """Return a communicator like `comm` that counts into a matrix."""
    base: Any = type(comm)
    found = _class_of(base)(comm)
    group = comm.Get_group()
    try:
        found._ranks = group.Translate_ranks(None, matrix.group)
    finally:
        group.Free()
    found._matrix = matrix
    return found


@functools.cache
def _class_of(base: type) -> type:
    """Return the recorded kind of a class of communicators; made once."""
    if issubclass(base, _Recorded):
        return base
    methods: dict[str, Any] = {}
    for name, count in _counts().items():
        started = f"{'I' if name[0].isupper() else 'i'}{name.lower()}"
        for each in (name, started):
            if hasattr(base, each):
                methods[each] = _counting(getattr(base, each), name, count)
        if hasattr(base, f"{name}_init"):
            methods[f"{name}_init"] = _counting_starts(getattr(base, f"{name}_init"), name, count)
    makers = (name for name in _MAKERS.split() if hasattr(base, name))
    methods |= {name: _recording_too(getattr(base, name)) for name in makers}
    return type(f"Recorded{base.__name__}", (_Recorded, base), methods)


def _counts() -> dict[str, Count]:
    """Return how each method's messages are counted."""
    counts: dict[str, Count] = dict.fromkeys((*_TO_ONE.split(), *_NEIGHBOR_ALL), _count_message)
    for kind, methods in _BLOCKS.items():
        for word in methods.split():
            name, _, root_at = word.partition(":")
            counts[name] = functools.partial(_count_block, kind, int(root_at or -1))
    return counts | dict.fromkeys(_PARTS.split(), _count_parts)


def _counting(method: Callable[..., Any], name: str, count: Count) -> Callable[..., Any]:
    """Wrap a method: what it sends is counted when it has returned."""

    @functools.wraps(method)
    def count_call(self: Any, *args: Any, **words: Any) -> Any:
        found = method(self, *args, **words)
        count(_Call(self, name, args, words, found))
        return found

    return count_call


def _counting_starts(method: Callable[..., Any], name: str, count: Count) -> Callable[..., Any]:
    """Wrap the maker of a persistent request: its message is counted at each Start."""

    @functools.wraps(method)
    def ready(self: Any, *args: Any, **words: Any) -> Any:
        request = _counted_request()(method(self, *args, **words))
        request.counts = lambda: count(_Call(self, name, args, words))
        return request

    return ready


@functools.cache
def _counted_request() -> type:
    """Return a kind of persistent request that counts its message each time it is started."""

    def start(self: Any) -> None:
        self.counts()
        mpi.Prequest.Start(self)

    return type("CountedPrequest", (mpi.Prequest,), {"Start": start})


def _recording_too(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a maker of communicators: what it makes is recorded too."""

    @functools.wraps(method)
    def making(self: Any, *args: Any, **words: Any) -> Any:
        found = method(self, *args, **words)
        if found == mpi.COMM_NULL:
            return found
        if isinstance(found, _Recorded):  # mpi4py makes new ones in the class of the old
            base = next(c for c in type(found).__mro__ if c.__module__.startswith("mpi4py"))
            found = base(found)
        return _record_messages(found, self._matrix)

    return making


def _count_message(call: _Call) -> None:
    """Count a message to one rank, or to each neighbour but the rank itself."""
    comm, whom = call.comm, [call.argument(1, "dest")]
    if call.name in _NEIGHBOR_ALL:
        whom = [to for to in comm.outedges if to != comm.Get_rank()]
    many = comm._size(call.message, call.name)
    for to in whom:
        comm._count(to, many)


def _count_block(kind: str, root_at: int, call: _Call) -> None:
    """Count a collective in which every rank has one block; measured only where it is sent on."""
    from rankmap.collectives.usual import steps

    comm, root = call.comm, call.argument(root_at, "root") or 0 if root_at >= 0 else 0
    whom = steps(kind, comm.Get_size(), comm.Get_rank(), root)
    if whom:
        received = call.name == "bcast" and call.message is None
        many = comm._size(call.found if received else call.message, call.name)
        for to, times in whom:
            comm._count(to, many * times, times)


def _count_parts(call: _Call) -> None:
    """Count a collective that sends every rank, or every neighbour, a part of its own."""
    comm, name = call.comm, call.name
    if name.lower().startswith("scatter"):
        root = call.argument(1 if name.islower() else 2, "root") or 0
        if comm.Get_rank() != root:
            return
    ranks = comm.outedges if name.lower().startswith("neighbor") else range(comm.Get_size())
    counts = call.argument(2, "recvcounts") if name.startswith("Reduce") else None
    try:
        parts = _parts_of(call.message, len(ranks), name.islower(), counts)
    except Exception:
        comm.log.unmeasured += 1
        return
    for to, many in zip(ranks, parts, strict=False):
        if to != comm.Get_rank():
            comm._count(to, many)


def _pickled_size(message: Any) -> int:
    """Return the bytes of an object: those of a buffer, else pickled once more to see."""
    try:
        return _bytes(message)
    except TypeError:
        return len(mpi.pickle.dumps(message))


def _size_of(message: Any) -> int:
    """Return the bytes of a buffer as mpi4py takes it: alone, or with counts and a type."""
    if message is None:
        return 0
    if not isinstance(message, list | tuple):
        return _bytes(message)
    unit, counts = _spec(message)
    if counts is None:
        return _bytes(message[0])
    first = counts if _is_number(counts) else counts[0]
    return (int(first) if _is_number(first) else sum(map(int, first))) * int(unit)


def _parts_of(message: Any, many: int, pickled: bool, counts: Any = None) -> list[int]:
    """Return the bytes of each of `many` parts of a message."""
    if message is None or not many:
        return [0] * many
    if pickled:
        return [_pickled_size(part) for part in message]
    spec = isinstance(message, list | tuple)
    unit, given = _spec(message) if spec else (_unit(message), None)
    given = counts if counts is not None else given
    if isinstance(unit, list) and given is not None:
        return [int(c) * u for c, u in zip(given, unit, strict=False)]
    if given is None or isinstance(given, int):
        total = (given * unit) if given is not None else _bytes(message[0] if spec else message)
        return [total // many] * many
    return [int(count) * unit for count in _flat(given)]


def _spec(message: Sequence[Any]) -> tuple[Any, Any]:
    """Return the size of an item (or of each part's items) and the counts, None for all."""
    last = message[-1] if len(message) > 1 else None
    if isinstance(last, str):
        last = mpi.Datatype.fromcode(last)
    if isinstance(last, mpi.Datatype):
        return last.Get_size(), message[1] if len(message) > 2 else None
    if isinstance(last, list | tuple) and last and isinstance(last[0], mpi.Datatype):
        return [kind.Get_size() for kind in last], _flat(message[1])
    return _unit(message[0]), message[1] if len(message) > 1 else None


def _flat(counts: Any) -> Any:
    """Return counts without the displacements behind them."""
    return counts[0] if len(counts) and not _is_number(counts[0]) else counts


def _is_number(value: Any) -> bool:
    return hasattr(value, "__index__")


def _unit(buffer: Any) -> int:
    found = getattr(buffer, "itemsize", None)
    return int(found) if found is not None else memoryview(buffer).itemsize


def _bytes(buffer: Any) -> int:
    """Return the bytes of a buffer.

    Raises
    ------
    TypeError
        Where it is none.
    """
    found = getattr(buffer, "nbytes", None)
    return int(found) if isinstance(found, int) else memoryview(buffer).nbytes
