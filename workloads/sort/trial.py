"""One sort on a communicator, ready to be repeated: data of its own, every result checked.

And the messages of its exchange, predicted and counted, as in section 3.2 of
Feng et al. (2015): items drawn at random and dealt to P ranks make messages
whose sizes follow a Poisson distribution with mean N/P^2 (N items over all
ranks), so that many are empty where that mean is small.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from placement.support.array_types import Array, Ints
from workloads.memory import fits
from workloads.phases import Phases
from workloads.sort.data import checksum, faults, item_type, make, refuse, sortedness
from workloads.sort.partition import Seen, SortPlan, keys_of, sort_items
from workloads.sort.ranks import Ranks
from workloads.world import Comm, same, together

__all__ = ["PHASES", "Messages", "Sort", "count_messages", "expect_messages", "trial"]

#: The paper's names, in order.
PHASES = ("LocalSort1", "FindEdges", "SolveLayout", "Exchange", "LocalSort2")


class Sort:
    """Items on every rank, sorted anew in each repetition. Collective.

    Memory: at most 3.5 times the local items, those kept for the next
    repetition counted (see `workloads.sort.partition.sort_items`).

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    items : int
        Items a rank, on average.
    data, payload, seed
        See `workloads.sort.data.make`.
    splitters, exchange, final, algorithm
        See `workloads.sort.partition.SortPlan`.

    Raises
    ------
    UsageError, NidmapError
        On all ranks alike: unknown words, or data that do not fit the memory.

    Attributes
    ----------
    comm : mpi4py.MPI.Intracomm
    seen : Seen
        What the last repetition did.
    """

    def __init__(
        self,
        comm: Comm,
        *,
        items: int = 1_000_000,
        data: str = "random",
        payload: int = 0,
        splitters: str = "histogram",
        exchange: str = "auto",
        final: str = "auto",
        algorithm: str = "mpsort",
        seed: int = 0,
    ) -> None:
        self.comm, self.ranks = comm, Ranks(comm)
        self.plan = SortPlan(splitters, exchange, final, algorithm)
        how: dict[str, Any] = {"seed": seed, "payload": payload}
        same(comm, items=items, data=data, plan=self.plan, **how)
        rank, size = self.ranks.rank, self.ranks.size
        with together(comm):
            self.plan.check()
            make(data, 0, 1, 0, **how)  # words and numbers are right
        everything = items * size if data == "one" else 0
        most = max(items, everything if rank == 0 else 0) * item_type(payload).itemsize
        fits(comm, int(3.5 * most), f"a sort of {items} items a rank")
        with together(comm):
            self.items = make(data, rank, size, items, **how)
        self.all_items = int(self.ranks.total(np.array(len(self.items))))
        self.before = checksum(self.items)
        self.seen = Seen()
        self.result: Array | None = None

    def run(self) -> dict[str, float]:
        """Sort once and return this rank's seconds."""
        self.result = None  # not beside the next one
        phases = Phases(PHASES)
        self.seen = Seen(watch=phases)
        began = time.perf_counter()
        self.result = sort_items(self.ranks, self.items, self.plan, self.seen)
        total = time.perf_counter() - began
        exchanged = sum(phases.seconds[name] for name in PHASES[1:4])
        return {"total": total, "communication": exchanged, **phases.seconds}

    def verify(self) -> None:
        """Raise on all ranks where the last result is wrong; not timed."""
        if self.result is None:
            return
        keys = keys_of(self.result)
        found = faults(self.ranks, self.before, self.result, [keys], len(self.items))
        if "origin" in (self.result.dtype.names or ()):
            ordered = sortedness(self.ranks, [keys, self.result["origin"]])
            found += [] if all(ordered) else ["items with equal keys changed their order"]
        with together(self.comm):
            refuse(found, "the sort")

    def messages(self) -> tuple[Messages, Messages]:
        """Return the messages of the last exchange: as random data would make them, as they were.

        Collective.
        """
        random = expect_messages(self.all_items, self.ranks.size)
        return random, count_messages(self.ranks, self.seen.sent)


trial = Sort


@dataclass(frozen=True, slots=True)
class Messages:
    """The P x P messages of one exchange, those to oneself among them.

    Attributes
    ----------
    mean, deviation : float
        Items a message, and their standard deviation.
    empty : float
        Share of messages without any item, 0 to 1.
    largest : float
        Items of the largest message.
    imbalance : float
        Deviation by mean: 0.1 is the paper's "10 percent message imbalance".
    ranks_imbalance : float
        Items of the busiest rank (received) by the mean over ranks, minus 1.
    """

    mean: float
    deviation: float
    empty: float
    largest: float
    imbalance: float
    ranks_imbalance: float


def expect_messages(items: int, ranks: int) -> Messages:
    """Return what random keys make of `items` over all ranks.

    Every rank has and gets N/P items whatever the data, the layout being
    exact: only messages differ, and less than Poisson numbers would, by
    (1 - 1/P), their sums over each row and column being given. With the
    paper's thousands of ranks that factor is 1.

    Examples
    --------
    >>> run = expect_messages(10_000_000 * 160_000, 160_000)
    >>> run.mean, round(run.imbalance, 3)       # the paper's 62.5 items (it says 100)
    (62.5, 0.126)
    >>> round(expect_messages(100_000 * 160_000, 160_000).empty, 3)
    0.535
    """
    mean = items / ranks**2
    deviation = math.sqrt(mean) * (1 - 1 / ranks)
    return Messages(
        mean=mean,
        deviation=deviation,
        empty=math.exp(-mean),
        largest=_largest(mean, ranks**2),
        imbalance=deviation / mean if mean else 0.0,
        ranks_imbalance=(-(-items // ranks) * ranks / items - 1) if items else 0.0,
    )


def _largest(mean: float, draws: int) -> float:
    """Return the median of the largest of so many Poisson numbers.

    The smallest k of which more lie above with less than an even chance:
    draws * P(X > k) <= log 2.
    """
    if not mean:
        return 0.0
    reach = 12 * math.sqrt(mean) + 60
    first = max(math.floor(mean - reach), 0)
    k = np.arange(first, math.ceil(mean + reach) + 1)
    logs = k * math.log(mean) - mean - np.array([math.lgamma(n + 1) for n in k.tolist()])
    tail = np.cumsum(np.exp(logs)[::-1])[::-1]
    above = np.append(tail[1:], 0.0)
    return float(k[np.argmax(above <= math.log(2) / draws)])


def count_messages(ranks: Ranks, sent: Ints) -> Messages:
    """Return what one exchange was. Collective; no rank holds the P x P matrix.

    Parameters
    ----------
    ranks : Ranks
    sent : int64 (P,)
        Items that this rank sent to each.
    """
    total, empty = ranks.total(np.array([sent.sum(), np.count_nonzero(sent == 0)])).tolist()
    size = ranks.size
    mean = total / size**2
    deviation = math.sqrt(float(ranks.total(np.array(((sent - mean) ** 2).sum()))) / size**2)
    busiest = float(ranks.total(np.ascontiguousarray(sent)).max())
    return Messages(
        mean=mean,
        deviation=deviation,
        empty=empty / size**2,
        largest=float(-ranks.least(np.array(-sent.max()))),
        imbalance=deviation / mean if mean else 0.0,
        ranks_imbalance=busiest * size / total - 1 if total else 0.0,
    )
