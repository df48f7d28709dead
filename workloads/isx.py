# SPDX-License-Identifier: Apache-2.0
"""``nidmap bench isx``: a bucket sort with five stages, and variants of its exchange.

Generator: numpy's PCG64DXSM seeded by (seed, rank), so that a number of ranks
has the same keys on any machine.

The order in which a rank turns to the others decides whether the network
sees an in-cast: in `naive` all turn to rank 0 first, then to 1, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, cast

import click
import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.support.array_types import Array, Ints
from nidmap.placement.support.quantities import rate_text
from nidmap.placement.support.tables import align_columns
from nidmap.workloads.options import Common, Number, Words, bench_callback, option_with_default
from nidmap.workloads.session import Case, Repetitions, Session, phase_table
from nidmap.workloads.sort.data import hash_sums
from nidmap.workloads.sort.trial import SortTrial
from nidmap.workloads.trials import SEED, Phases, require_fit
from nidmap.workloads.world import Comm, raise_together, rank_place

GENERATOR = "numpy PCG64DXSM, SeedSequence((seed, rank))"

#: The paper's five stages; the first is not in the total.
STAGES = ("KeyGeneration", "LocalBucketing", "AssignBuckets", "KeyExchange", "LocalSort")

#: alltoallv is MPI's own, the paper's two-sided arm; the others put keys into the other ranks'
#: memory one after the other, as its OpenSHMEM program does.
SCHEMES = ("alltoallv", "naive", "round-robin", "random")

#: From this many keys on loops are compiled: loading the compiler takes half a second per process.
COMPILED = 1 << 16


@click.command("isx")
@option_with_default(
    "--mode",
    ["strong", "weak", "weak_iso"],
    "weak",
    "strong: --keys over all ranks; weak: per rank; weak_iso: and buckets of equal width.",
)
@option_with_default("--keys", Number(), "2^20", "Keys over all ranks (strong) or per rank.")
@option_with_default("--dtype", ["i4", "u8"], "i4", "Signed 32-bit or unsigned 64-bit keys.")
@option_with_default(
    "--exchange schemes",
    Words(SCHEMES),
    "alltoallv",
    "alltoallv, or puts in the order naive (in-cast), round-robin, random; several with commas, "
    "or all.",
)
@bench_callback(repeat=20)
def isx(common: Common, schemes: tuple[str, ...], **options: Any) -> int:
    """Sort keys into one bucket per rank (ISx), timed by the paper's five stages.

    Several schemes are interleaved in one job: every iteration runs each once.
    The generation of keys is timed but not in the total. Bandwidth is what a
    node sends in the exchange divided by the slowest rank's seconds: best, mean and
    worst iteration.

    \b
    nidmap bench isx -n 4 --keys 2^22
    nidmap bench isx -n 4 --mode weak_iso --exchange all
    srun -n 12288 nidmap bench isx --keys 2^27 --exchange round-robin,random -o isx.csv
    """
    with Session(common, "isx", {**options, "exchange": list(schemes)}) as session:
        made = Isx(session.comm, **options)
        cases = [
            Case(Variant(made, scheme), {**options, "exchange": scheme}, session.comm)
            for scheme in schemes
        ]
        session.interleave(cases)
        node_bytes = made.traffic()
        made.free()
    _show_session(session, made.problem, node_bytes)
    return session.exit_code


def _exchange_rates(result: Repetitions, size: float) -> dict[str, float]:
    """Return a node's bytes per second in the exchange: worst, mean and best iteration."""
    rates = [size / max(entry["max"], 1e-9) for entry in result.phases["KeyExchange"]]
    return {"worst": min(rates), "mean": sum(rates) / len(rates), "best": max(rates)}


def _show_session(session: Session, problem: BucketSort, node_bytes: NodeBytes) -> None:
    document = session.document()
    document |= {
        "generator": GENERATOR,
        "problem": asdict(problem),
        "node_bytes": asdict(node_bytes),
    }
    digit = f"shift by {problem.shift}" if problem.shift is not None else "division"
    text = [
        f"{problem.mode}: {problem.keys} keys below {problem.max_key}, {problem.ranks} buckets of "
        f"{problem.width} by {digit}\n"
        f"a node sends {node_bytes.ranks / 1e6:.3f} MB to other ranks,"
        f" {node_bytes.off_node / 1e6:.3f} MB to other nodes\n"
    ]
    rows = []
    for case, result in zip(document["cases"], session.finished, strict=True):
        case["bandwidth"] = {
            name: _exchange_rates(result, count) for name, count in asdict(node_bytes).items()
        }
        text.append(phase_table(result, case["exchange"]))
        rates = [
            rate_text(rate) if getattr(node_bytes, name) else "-"
            for name, rates in case["bandwidth"].items()
            for rate in rates.values()
        ]
        rows.append([case["exchange"], *rates])
    head = ["a node sends", "worst", "mean", "best", "off: worst", "mean", "best"]
    text += [align_columns([head, *rows])] if rows else []
    session.common.show(document, "\n".join(text))


@dataclass(frozen=True, slots=True)
class BucketSort:
    """A bucket sort with one bucket per rank."""

    mode: str
    ranks: int
    keys: int  # over all ranks
    dtype: str  # ``i4`` or ``u8``
    max_key: int  # keys are below it
    width: int  # keys that one bucket is for
    shift: int | None  # its logarithm where buckets are found by a shift, None by division

    @property
    def itemsize(self) -> int:
        """Bytes of a key."""
        return np.dtype(self.dtype).itemsize

    def count(self, rank: int) -> int:
        """Return how many keys a rank generates; they add up to `keys` exactly."""
        return self.keys * (rank + 1) // self.ranks - self.keys * rank // self.ranks

    def generate(self, rank: int) -> Array:
        """Return a rank's keys, uniform in [0, max_key)."""
        rng = np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence((SEED, rank))))
        kind: Any = np.dtype(self.dtype).type
        return rng.integers(0, self.max_key - 1, self.count(rank), kind, endpoint=True)

    def extent(self, rank: int) -> tuple[int, int]:
        """Return the smallest and largest key of a rank's bucket."""
        return rank * self.width, (rank + 1) * self.width - 1


def problem(
    mode: str,
    ranks: int,
    keys: int,
    *,
    dtype: str = "i4",
    max_key: int = 1 << 28,
    width: int = 8192,
) -> BucketSort:
    """Return a validated problem.

    `mode`: all keys given; keys a rank given; the same with buckets of one width. `keys`: strong:
    over all ranks; else a rank. `max_key`: strong and weak: keys are below it. `width`: weak_iso:
    the width of a bucket; keys are below ``ranks * width``.
    """
    if mode == "weak_iso":
        max_key = ranks * width
    else:
        width = -(-max_key // ranks)
    most = 2**31 if dtype == "i4" else 2**63
    if keys < 0 or width < 1 or not ranks <= max_key <= most:
        raise UsageError(
            f"keys below {max_key} do not work with {ranks} ranks and {dtype} keys",
            f"use {ranks} to {most}",
        )
    power = width & (width - 1) == 0
    shift = width.bit_length() - 1 if power else None
    total = keys if mode == "strong" else keys * ranks
    return BucketSort(mode, ranks, total, dtype, max_key, width, shift)


@dataclass(frozen=True, slots=True)
class NodeBytes:
    """Bytes that one node sends in one exchange."""

    ranks: float  # to other ranks, those on the node among them
    off_node: float  # to other nodes


def model_traffic(problem: BucketSort, ppn: int) -> NodeBytes:
    """Return the bytes that a node with this many ranks sends for uniform keys.

    Each of its keys stays on its rank with probability 1/P and on its node
    with ppn/P.
    """
    node = ppn * problem.keys / problem.ranks * problem.itemsize
    return NodeBytes(
        ranks=node * (1 - 1 / problem.ranks), off_node=node * (1 - ppn / problem.ranks)
    )


class Isx(SortTrial):
    """Keys, their buckets and receive space, with compiled loops. Collective.

    Memory: 3 times the local keys (keys, bucketed keys, received keys).

    `exchange`: one of `SCHEMES`; may be changed between repetitions: several schemes in one job.
    """

    name = "the bucket sort"
    phases = STAGES
    exchanged = STAGES[2:4]

    def __init__(
        self,
        comm: Comm,
        *,
        mode: str = "weak",
        keys: int = 1 << 20,
        dtype: str = "i4",
        exchange: str = "alltoallv",
    ) -> None:
        super().__init__(comm)
        self.exchange = exchange
        self.problem = problem(mode, self.ranks.size, keys, dtype=dtype)
        size = self.problem.itemsize * self.problem.count(self.ranks.rank)
        require_fit(comm, int(3.2 * size), f"a bucket sort of {self.problem.keys} keys")
        self._window: KeyWindow | None = None
        self._turns: list[int] = []
        self._keys: Array | None = None  # of this repetition, until they are in their buckets
        with raise_together(comm):
            mine = self.problem.generate(self.ranks.rank)
            self._bucketed = np.empty_like(mine)
            self.send = fill_buckets(self.problem, mine, self._bucketed)  # compiles its loops, too
            self.before = hash_sums(mine)
        # send, receive: (P,), keys to and from each rank
        self.receive = self.ranks.swap(self.send)
        self._room: Array = np.empty(int(self.receive.sum()), mine.dtype)

    @property
    def puts(self) -> bool:
        """Whether keys are put into the others' memory instead of sent by MPI's exchange."""
        return self.exchange != "alltoallv"

    def prepare(self, watch: Phases) -> None:
        """Generate the keys, which is timed but not part of the total."""
        self._turns = order(self.exchange, self.ranks.rank, self.ranks.size)
        if self.puts:
            if self._window is None:
                self._window = KeyWindow(self.comm, len(self._room), self._room.dtype)
            self.comm.Barrier()  # nobody puts keys into a window that is still read
        with watch("KeyGeneration"):
            self._keys = self.problem.generate(self.ranks.rank)

    def sort(self, watch: Phases) -> Array:
        """Send every key to its bucket's rank and sort there."""
        assert self._keys is not None
        with watch("LocalBucketing"):
            self.send = fill_buckets(self.problem, self._keys, self._bucketed)
        self._keys = None
        with watch("AssignBuckets"):
            self.receive = self.ranks.swap(self.send)
            ends = np.cumsum(self.receive) - self.receive
            places = self.ranks.swap(ends) if self.puts else ends
        with watch("KeyExchange"):
            mine = self._exchange(places)
        with watch("LocalSort"):
            mine.sort()
        return mine

    def _exchange(self, places: Ints) -> Array:
        """Send every bucket to its rank; `places`: our offset in each window."""
        if not self.puts:
            self.ranks.alltoallv(self._bucketed, self.send, self._room, self.receive)
            return self._room
        assert self._window is not None
        self._window.put(self._turns, self._bucketed, self.send, self.receive, places)
        return self._window.keys

    def traffic(self) -> NodeBytes:
        """Return the bytes of the node that sends most in an exchange. Collective."""
        return model_traffic(self.problem, rank_place(self.comm).most)

    def expected(self) -> int:
        """Return the number of keys sent to this rank."""
        return int(self.receive.sum())

    def keys(self, result: Array) -> Array:
        """Return the keys, which have no payload."""
        return result

    def own_faults(self, result: Array, keys: Array) -> list[str]:
        """Return whether a key is outside its rank's bucket."""
        low, high = self.problem.extent(self.ranks.rank)
        inside = not len(keys) or (int(keys.min()) >= low and int(keys.max()) <= high)
        return [] if self.ranks.all(inside) else ["a key is outside its rank's bucket"]

    def free(self) -> None:
        """Free the windows. Collective."""
        self.result = None
        if self._window is not None:
            self._window.free()
            self._window = None


def fill_buckets(problem: BucketSort, keys: Array, out: Array) -> Ints:
    """Write the keys to `out` bucket by bucket, and return the number of keys in each (P,).

    Keys of a bucket keep their order.
    """
    kind: type[Any] = np.uint32 if problem.dtype == "i4" else np.uint64
    plain, dealt = keys.view(kind), out.view(kind)
    shifted = problem.shift is not None
    by = kind(problem.shift if shifted else problem.width)
    if len(keys) < COMPILED:
        numbers = (plain >> by if shifted else plain // by).astype(np.int64)
        np.take(plain, np.argsort(numbers, kind="stable"), out=dealt)
        return np.bincount(numbers, minlength=problem.ranks)
    counts = np.zeros((4, problem.ranks), np.int64)
    compiled(count_keys)(plain, by, shifted, counts)
    sizes: Ints = counts.sum(axis=0)
    compiled(deal_keys)(plain, by, shifted, np.cumsum(sizes) - sizes, dealt)
    return sizes


@dataclass(frozen=True, slots=True)
class Variant:
    """A bucket sort with one variant of the exchange, as a trial of its own."""

    sort: Isx
    exchange: str

    def run(self) -> dict[str, float]:
        """Sort once with this variant."""
        self.sort.exchange = self.exchange
        return self.sort.run()

    def verify(self) -> None:
        """See `Isx.verify`."""
        self.sort.verify()


def order(scheme: str, rank: int, size: int) -> list[int]:
    """Return the order in which this rank addresses the others."""
    if scheme == "random":
        rng = np.random.default_rng((SEED, rank, size))
        turns = rng.permutation(size).tolist()
    elif scheme == "naive":
        turns = list(range(size))
    else:
        turns = [(rank + k) % size for k in range(1, size)]
    return [q for q in turns if q != rank]


class KeyWindow:
    """Memory into which others put keys, and a counter by which they signal completion.

    Collective: made and freed by all ranks.

    `room`: keys that fit.
    """

    def __init__(self, comm: Comm, room: int, dtype: np.dtype[Any]) -> None:
        from mpi4py import MPI

        self.comm = comm
        self._data = MPI.Win.Allocate(max(room, 1) * dtype.itemsize, dtype.itemsize, comm=comm)
        self._flag = MPI.Win.Allocate(8, 8, comm=comm)
        data, flag = (cast("Any", window.tomemory()) for window in (self._data, self._flag))
        self.keys: Array = np.frombuffer(data, dtype)[:room]
        np.frombuffer(flag, np.int64)[0] = 0
        self._expected = 0
        self._data.Lock_all()
        self._flag.Lock_all()
        self._flag.Sync()
        comm.Barrier()

    def put(self, turns: list[int], keys: Array, send: Ints, receive: Ints, places: Ints) -> None:
        """Put each bucket into its rank's window, notify the rank, and wait for our own keys.

        `keys` (n,): bucketed keys. `send`, `receive` (P,). `places` (P,): where in each rank's
        window the keys of this rank belong.
        """
        from mpi4py import MPI

        rank, count = self.comm.Get_rank(), np.ones(1, np.int64)
        starts = np.cumsum(send) - send
        here = int(places[rank])
        self.keys[here : here + send[rank]] = keys[starts[rank] : starts[rank] + send[rank]]
        for q in turns:
            if send[q]:
                bucket = keys[starts[q] : starts[q] + send[q]]
                self._data.Put(bucket, q, (int(places[q]), len(bucket)))
                self._data.Flush(q)
                self._flag.Accumulate(count, q, op=MPI.SUM)  # the keys are there
                self._flag.Flush(q)
        self._expected += int(np.count_nonzero(receive)) - int(receive[rank] > 0)
        self._wait()

    def _wait(self) -> None:
        """Wait until all ranks with keys for us have signalled, polling so that MPI progresses."""
        from mpi4py import MPI

        rank, nothing, seen = self.comm.Get_rank(), np.zeros(1, np.int64), np.full(1, -1)
        while seen[0] < self._expected:
            self._flag.Fetch_and_op(nothing, seen, rank, op=MPI.NO_OP)
            self._flag.Flush(rank)
        self._data.Sync()

    def free(self) -> None:
        """Free the windows."""
        for window in (self._data, self._flag):
            window.Unlock_all()
        del self.keys
        for window in (self._data, self._flag):
            window.Free()


# Four counters a bucket, and keys taken four at a time: with few buckets, one counter would wait
# for its own last increment.
def count_keys(keys: Array, by: Any, shifted: bool, counts: Ints) -> None:
    """Add each bucket's number of keys to counts (4, buckets), by a shift or a division."""
    whole = len(keys) // 4 * 4
    for i in range(0, whole, 4):
        for lane in range(4):
            key = keys[i + lane]
            counts[lane, key >> by if shifted else key // by] += 1
    for key in keys[whole:]:
        counts[0, key >> by if shifted else key // by] += 1


def deal_keys(keys: Array, by: Any, shifted: bool, starts: Ints, out: Array) -> None:
    """Write each key at its bucket's start, and advance that."""
    for key in keys:
        bucket = key >> by if shifted else key // by
        at = starts[bucket]
        out[at] = key
        starts[bucket] = at + 1


@cache
def compiled(function: Callable[..., None]) -> Callable[..., None]:
    """Compile a loop over keys to machine code if numba is installed."""
    from nidmap.rankmap.refine import jit

    made: Callable[..., None] = jit.kernel(function)
    return made
