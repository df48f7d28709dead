"""The communicators that `record` gives: mpi4py's own, with a count on each way out.

mpi4py is loaded by the first `Recording` and not before: importing it starts MPI.
"""

from __future__ import annotations

import atexit
import functools
import os
import time
from typing import TYPE_CHECKING, Any

from placement.errors import OutputError, printable
from rankmap.runtime.collectives import Log, steps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Method = Callable[..., Any]

__all__ = ["Recording"]

#: mpi4py's module, once there is a recording.
MPI: Any = None

#: Methods that send a message to one rank; what follows the rank is left alone.
_TO_ONE = {
    "obj": ("send", "ssend", "bsend", "isend", "issend", "ibsend"),
    "buf": (
        "Send", "Ssend", "Bsend", "Rsend", "Isend", "Issend", "Ibsend", "Irsend",
        "Sendrecv_replace", "Isendrecv_replace",
    ),
    "sendobj": ("sendrecv",),
    "sendbuf": ("Sendrecv", "Isendrecv"),
}  # fmt: skip

#: Persistent ones: counted at each Start, as persistent collectives (`Allreduce_init` …) are.
_INIT = ("Send_init", "Ssend_init", "Bsend_init", "Rsend_init")

#: Collectives of one message a rank: kind, name of the message, places of message and root.
_BLOCKS = {
    "bcast": ("bcast", "obj", 1), "Bcast": ("bcast", "buf", 1), "Ibcast": ("bcast", "buf", 1),
    "reduce": ("reduce", "sendobj", 2), "Reduce": ("reduce", "sendbuf", 3),
    "Ireduce": ("reduce", "sendbuf", 3), "gather": ("gather", "sendobj", 1),
    "Gather": ("gather", "sendbuf", 2), "Gatherv": ("gather", "sendbuf", 2),
    "Igather": ("gather", "sendbuf", 2), "Igatherv": ("gather", "sendbuf", 2),
    "allgather": ("allgather", "sendobj", None), "Allgather": ("allgather", "sendbuf", None),
    "Allgatherv": ("allgather", "sendbuf", None), "Iallgather": ("allgather", "sendbuf", None),
    "Iallgatherv": ("allgather", "sendbuf", None), "allreduce": ("allreduce", "sendobj", None),
    "Allreduce": ("allreduce", "sendbuf", None), "Iallreduce": ("allreduce", "sendbuf", None),
    "scan": ("scan", "sendobj", None), "Scan": ("scan", "sendbuf", None),
    "Iscan": ("scan", "sendbuf", None), "exscan": ("scan", "sendobj", None),
    "Exscan": ("scan", "sendbuf", None), "Iexscan": ("scan", "sendbuf", None),
}  # fmt: skip

#: Collectives that send every rank a part of its own.
_PARTS = (
    "alltoall", "Alltoall", "Alltoallv", "Alltoallw", "Ialltoall", "Ialltoallv", "Ialltoallw",
    "Reduce_scatter", "Reduce_scatter_block", "Ireduce_scatter", "Ireduce_scatter_block",
)  # fmt: skip
_ROOT_PARTS = ("scatter", "Scatter", "Scatterv", "Iscatter", "Iscatterv")

#: Collectives with the neighbours of a topology: a part each, or all of it to each.
_NEIGHBOR_PARTS = (
    "neighbor_alltoall", "Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw",
    "Ineighbor_alltoall", "Ineighbor_alltoallv", "Ineighbor_alltoallw",
)  # fmt: skip
_NEIGHBOR_ALL = (
    "neighbor_allgather", "Neighbor_allgather", "Neighbor_allgatherv", "Ineighbor_allgather",
    "Ineighbor_allgatherv",
)  # fmt: skip

#: Makers of communicators whose traffic counts too.
_MAKERS = (
    "Dup", "Clone", "Dup_with_info", "Split", "Split_type", "Create", "Create_group",
    "Create_cart", "Create_graph", "Create_dist_graph", "Create_dist_graph_adjacent", "Sub",
)  # fmt: skip


class Recording:
    """One matrix in the making.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    path : str or None

    Attributes
    ----------
    communicator : mpi4py.MPI.Intracomm
        The recorded one.
    """

    def __init__(self, comm: Any, path: str | None) -> None:
        _load()
        self.comm = comm
        self.path = path
        self.log = Log()
        self.group = comm.Get_group()
        self.size = comm.Get_size()
        self.communicator: Any = recorded(comm, self)
        atexit.register(self.finish)

    def finish(self) -> None:
        """Write the matrix at the end of the block or of the program, unless that is done."""
        if not MPI.Is_finalized():
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
        self.comm.Gatherv(rows, [table, counts, MPI.INT64_T] if lengths else None, root=0)
        told = ("", "")
        if lengths is not None:
            told = self._written(path, np.repeat(np.arange(self.size), lengths), table)
        name, wrong = self.comm.bcast(told, root=0)
        if wrong:
            raise OutputError(wrong)
        return str(name)

    def _written(self, path: str | None, sender: Any, table: Any) -> tuple[str, str]:
        """Write the matrix on rank 0 and return its name, or what is wrong."""
        from rankmap.pattern.matrix_file import write_matrix

        chosen = path or self.path or _new_name()
        try:
            write_matrix(chosen, self.size, sender, table)
        except Exception as error:
            reason = getattr(error, "strerror", None) or error
            return "", f"cannot write {printable(chosen)}: {printable(str(reason), 200)}"
        return chosen, ""


class _Recorded:
    """What every recorded communicator has besides mpi4py's own methods."""

    _recording: Recording
    _ranks: Sequence[int]

    @property
    def log(self) -> Log:
        """What this rank has sent so far."""
        return self._recording.log

    def save(self, path: str | None = None) -> str:
        """Write the matrix; see `rankmap.runtime.record.record`."""
        return self._recording.save(path)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self._recording.finish()

    def _count(self, to: int, many: int, messages: int = 1) -> None:
        """Count a message to a rank of this communicator."""
        if to >= 0 and self._ranks[to] >= 0:
            self._recording.log.add(self._ranks[to], many, messages)

    def _size(self, message: Any, name: str) -> int:
        """Return the bytes of a message to a method; what cannot be measured counts as none."""
        try:
            return pickled_size(message) if name.islower() else size_of(message)
        except Exception:
            self._recording.log.unmeasured += 1
            return 0


def recorded(comm: Any, recording: Recording) -> Any:
    """Return a communicator like `comm` that counts into a recording."""
    made = _class_of(type(comm))(comm)
    group = comm.Get_group()
    try:
        made._ranks = group.Translate_ranks(None, recording.group)
    finally:
        group.Free()
    made._recording = recording
    return made


def _load() -> None:
    global MPI  # the one place that sets it
    from mpi4py import MPI as found  # noqa: N811  # its own name

    MPI = found


_classes: dict[type, type] = {}


def _class_of(base: type) -> type:
    """Return the recorded kind of a class of communicators; made once."""
    if issubclass(base, _Recorded):
        return base
    if base not in _classes:
        methods = {
            name: wrap(getattr(base, name))
            for name, wrap in _wraps().items()
            if hasattr(base, name)
        }
        _classes[base] = type(f"Recorded{base.__name__}", (_Recorded, base), methods)
    return _classes[base]


def _wraps() -> dict[str, Callable[[Method], Method]]:
    """Return how each method is wrapped."""
    wraps: dict[str, Callable[[Method], Method]] = {}
    for word, names in _TO_ONE.items():
        wraps |= {name: _to_one(word) for name in names}
    for name, (kind, word, root) in _BLOCKS.items():
        wraps[name] = _blocks(kind, word, root)
    wraps |= {name: _parts(0, False) for name in _PARTS}
    wraps |= {name: _parts(0, True) for name in _NEIGHBOR_PARTS}
    wraps |= {name: _root_parts(1 if name.islower() else 2) for name in _ROOT_PARTS}
    wraps |= dict.fromkeys(_NEIGHBOR_ALL, _neighbor_all)
    wraps |= {f"{name}_init": _again(name, wrap) for name, wrap in wraps.items()}
    wraps |= dict.fromkeys(_INIT, _started)
    wraps |= dict.fromkeys(_MAKERS, _made)
    return wraps


def _argument(args: tuple[Any, ...], words: dict[str, Any], at: int, *names: str) -> Any:
    """Return an argument by its place or one of its names."""
    if len(args) > at:
        return args[at]
    return next((words[name] for name in names if name in words), None)


def _to_one(word: str) -> Callable[[Method], Method]:
    def wrap(method: Method) -> Method:
        def sending(self: Any, *args: Any, **words: Any) -> Any:
            to = _argument(args, words, 1, "dest")
            self._count(to, self._size(_argument(args, words, 0, word), method.__name__))
            return method(self, *args, **words)

        return _like(sending, method)

    return wrap


def _blocks(kind: str, word: str, root_at: int | None) -> Callable[[Method], Method]:
    """Wrap a collective in which every rank has one block; measured only where it is sent on."""

    def wrap(method: Method) -> Method:
        def together(self: Any, *args: Any, **words: Any) -> Any:
            root = 0 if root_at is None else _argument(args, words, root_at, "root") or 0
            found = method(self, *args, **words)
            whom = steps(kind, self.Get_size(), self.Get_rank(), root)
            if whom:
                block = _argument(args, words, 0, word)
                if block is None and method.__name__ == "bcast":
                    block = found
                if block is MPI.IN_PLACE:
                    block = _argument(args, words, 1, "recvbuf")
                many = self._size(block, method.__name__)
                for to, times in whom:
                    self._count(to, many * times, times)
            return found

        return _like(together, method)

    return wrap


def _parts(at: int, neighbors: bool) -> Callable[[Method], Method]:
    """Wrap a collective that sends every rank, or every neighbour, a part of its own."""

    def wrap(method: Method) -> Method:
        def together(self: Any, *args: Any, **words: Any) -> Any:
            message = _argument(args, words, at, "sendbuf", "sendobj")
            if message is MPI.IN_PLACE:
                message = _argument(args, words, at + 1, "recvbuf")
            whom = list(self.outedges if neighbors else range(self.Get_size()))
            counts = _argument(args, words, 2, "recvcounts") if "educe" in method.__name__ else None
            _count_parts(self, whom, message, method.__name__, counts)
            return method(self, *args, **words)

        return _like(together, method)

    return wrap


def _root_parts(root_at: int) -> Callable[[Method], Method]:
    """Wrap a scatter: the root sends every rank a part."""

    def wrap(method: Method) -> Method:
        def together(self: Any, *args: Any, **words: Any) -> Any:
            root = _argument(args, words, root_at, "root") or 0
            if self.Get_rank() == root:
                message = _argument(args, words, 0, "sendbuf", "sendobj")
                _count_parts(self, list(range(self.Get_size())), message, method.__name__, None)
            return method(self, *args, **words)

        return _like(together, method)

    return wrap


def _count_parts(comm: Any, whom: list[int], message: Any, name: str, counts: Any) -> None:
    me = comm.Get_rank()
    try:
        parts = parts_of(message, len(whom), name.islower(), counts)
    except Exception:
        comm.log.unmeasured += 1
        return
    for to, many in zip(whom, parts, strict=False):
        if to != me:
            comm._count(to, many)


def _neighbor_all(method: Method) -> Method:
    def together(self: Any, *args: Any, **words: Any) -> Any:
        many = self._size(_argument(args, words, 0, "sendbuf", "sendobj"), method.__name__)
        for to in self.outedges:
            if to != self.Get_rank():
                self._count(to, many)
        return method(self, *args, **words)

    return _like(together, method)


def _started(method: Method) -> Method:
    """Wrap a persistent send: it is counted at each Start."""

    def ready(self: Any, *args: Any, **words: Any) -> Any:
        to = _argument(args, words, 1, "dest")
        many = self._size(_argument(args, words, 0, "buf"), method.__name__)
        request = _counted()(method(self, *args, **words))
        request.counts = lambda: self._count(to, many)
        return request

    return _like(ready, method)


def _again(name: str, wrap: Callable[[Method], Method]) -> Callable[[Method], Method]:
    """Wrap a persistent collective: it is counted at each Start as `name` would be."""

    def nothing(self: Any, *args: Any, **words: Any) -> None:
        """Do nothing: only what is wrapped around it counts."""

    nothing.__name__ = name
    counting = wrap(nothing)

    def wrap_init(method: Method) -> Method:
        def ready(self: Any, *args: Any, **words: Any) -> Any:
            request = _counted()(method(self, *args, **words))
            request.counts = lambda: counting(self, *args, **words)
            return request

        return _like(ready, method)

    return wrap_init


@functools.cache
def _counted() -> type:
    """Return a kind of persistent request that counts its message each time it is started."""

    def start(self: Any) -> None:
        self.counts()
        MPI.Prequest.Start(self)

    return type("CountedPrequest", (MPI.Prequest,), {"Start": start})


def _made(method: Method) -> Method:
    """Wrap a maker of communicators: what it makes is recorded too."""

    def making(self: Any, *args: Any, **words: Any) -> Any:
        found = method(self, *args, **words)
        return found if found == MPI.COMM_NULL else recorded(_plain(found), self._recording)

    return _like(making, method)


def _plain(comm: Any) -> Any:
    """Return a communicator in mpi4py's own class; it makes new ones in the class of the old."""
    if not isinstance(comm, _Recorded):
        return comm
    base = next(c for c in type(comm).__mro__ if c.__module__.startswith("mpi4py"))
    return base(comm)


def _like(wrapped: Method, method: Method) -> Method:
    wrapped.__name__, wrapped.__doc__ = method.__name__, method.__doc__
    return wrapped


def pickled_size(message: Any) -> int:
    """Return the bytes of an object: those of a buffer, else pickled once more to see."""
    try:
        return _bytes(message)
    except TypeError:
        return len(MPI.pickle.dumps(message))


def size_of(message: Any) -> int:
    """Return the bytes of a buffer as mpi4py takes it: alone, or with counts and a type."""
    if message is None:
        return 0
    if not isinstance(message, list | tuple):
        return _bytes(message)
    unit, counts = _spec(message)
    return _bytes(message[0]) if counts is None else _total(counts, unit)


def parts_of(message: Any, many: int, pickled: bool, counts: Any = None) -> list[int]:
    """Return the bytes of each of `many` parts of a message."""
    if message is None or not many:
        return [0] * many
    if pickled:
        return [pickled_size(part) for part in message]
    spec = isinstance(message, list | tuple)
    unit, given = _spec(message) if spec else (_unit(message), None)
    given = counts if counts is not None else given
    if isinstance(unit, list) and given is not None:
        return [int(c) * u for c, u in zip(given, unit, strict=False)]
    if given is None or isinstance(given, int):
        total = (given * unit) if given is not None else _bytes(message[0] if spec else message)
        return [total // many] * many
    listed = given[0] if len(given) and not _is_number(given[0]) else given
    return [int(count) * unit for count in listed]


def _spec(message: Sequence[Any]) -> tuple[Any, Any]:
    """Return the size of an item (or of each part's items) and the counts, None for all."""
    last = message[-1] if len(message) > 1 else None
    if isinstance(last, MPI.Datatype):
        return last.Get_size(), message[1] if len(message) > 2 else None
    if isinstance(last, str):
        code = MPI.Datatype.fromcode(last)
        return code.Get_size(), message[1] if len(message) > 2 else None
    if isinstance(last, list | tuple) and last and isinstance(last[0], MPI.Datatype):
        counts = message[1]
        counts = counts[0] if len(counts) and not _is_number(counts[0]) else counts
        return [kind.Get_size() for kind in last], counts
    return _unit(message[0]), message[1] if len(message) > 1 else None


def _total(counts: Any, unit: Any) -> int:
    if _is_number(counts):
        return int(counts) * int(unit)
    first = counts[0]
    return int(first if _is_number(first) else sum(int(c) for c in first)) * int(unit)


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


def _new_name() -> str:
    """Return a file name that no other run takes."""
    job = os.environ.get("SLURM_JOB_ID") or os.environ.get("PBS_JOBID", "").partition(".")[0]
    mark = f"{job}-" if job.isalnum() else ""
    return f"nidmap-matrix-{mark}{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.npz"
