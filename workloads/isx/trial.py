"""One bucket sort on a communicator, ready to be repeated."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import UsageError
from workloads.isx.buckets import bucketed
from workloads.isx.problem import Problem, problem
from workloads.isx.schemes import SCHEMES, SIDES, Window, order, two_sided
from workloads.memory import fits
from workloads.phases import Phases
from workloads.sort.check import checksum, faults, refuse
from workloads.sort.ranks import Ranks
from workloads.world import same, together

if TYPE_CHECKING:
    from mpi4py import MPI
    from numpy.typing import NDArray

    Keys = NDArray[Any]
    Ints = NDArray[np.int64]

__all__ = ["STAGES", "Isx", "trial"]

#: The paper's five stages; the first is not in the total.
STAGES = ("KeyGeneration", "LocalBucketing", "AssignBuckets", "KeyExchange", "LocalSort")


def trial(
    comm: MPI.Intracomm,
    *,
    mode: str = "weak",
    keys: int = 1 << 20,
    dtype: str = "i4",
    max_key: int = 1 << 28,
    width: int = 8192,
    bucketing: str = "auto",
    exchange: str = "alltoallv",
    sided: str = "two",
    seed: int = 0,
) -> Isx:
    """Return a bucket sort with its buffers made and its loops compiled. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    mode, keys, dtype, max_key, width, bucketing
        See `workloads.isx.problem.problem`.
    exchange : str
        One of `workloads.isx.schemes.SCHEMES`.
    sided : {"two", "put"}
        Messages, or MPI_Put with a notification.
    seed : int

    Raises
    ------
    UsageError, NidmapError
        On all ranks alike: what makes no sense, or does not fit the memory.
    """
    given = {"mode": mode, "keys": keys, "dtype": dtype, "max_key": max_key, "width": width}
    same(comm, **given, bucketing=bucketing, exchange=exchange, sided=sided, seed=seed)
    with together(comm):
        what = problem(
            mode,
            comm.Get_size(),
            keys,
            dtype=dtype,
            max_key=max_key,
            width=width,
            bucketing=bucketing,
        )
        if exchange not in SCHEMES or sided not in SIDES:
            raise UsageError(f"no exchange {exchange!r} with {sided!r} sides", ", ".join(SCHEMES))
    size = np.dtype(dtype).itemsize * what.count(comm.Get_rank())
    fits(comm, int(3.2 * size), f"a bucket sort of {what.keys} keys")
    return Isx(comm, what, exchange, sided, seed)


class Isx:
    """Keys, their buckets and room for what arrives.

    Memory: 3 times the local keys (keys, bucketed keys, received keys).

    Attributes
    ----------
    comm : mpi4py.MPI.Intracomm
    problem : Problem
    exchange, sided : str
        May be changed between repetitions: several schemes in one job.
    send, receive : int64 (P,)
        Keys to and from each rank.
    """

    def __init__(
        self, comm: MPI.Intracomm, what: Problem, exchange: str, sided: str, seed: int
    ) -> None:
        self.comm, self.problem, self.exchange, self.sided = comm, what, exchange, sided
        self.ranks, self.seed = Ranks(comm), seed
        self._turns: dict[str, list[int]] = {}
        self._window: Window | None = None
        with together(comm):
            keys = self._generate()
            self._bucketed = np.empty_like(keys)
            self.send = self._bucket(keys)  # compiles what loops there are, too
            self._before = checksum(keys)
        self.receive = self.ranks.swap(np.ascontiguousarray(self.send[:, None]))[:, 0]
        self._room: Keys = np.empty(int(self.receive.sum()), keys.dtype)
        self._result: Keys | None = None

    def _generate(self) -> Keys:
        return self.problem.generate(self.ranks.rank, self.seed)

    def _bucket(self, keys: Keys) -> Ints:
        """Put the keys into buckets and return the keys of each bucket (P,)."""
        return bucketed(self.problem, keys, self._bucketed)

    def run(self) -> dict[str, float]:
        """Sort once and return this rank's seconds; the total is without the generation."""
        self._result = None
        if self.sided == "put":
            self._window = self._window or Window(
                self.comm, len(self._room), np.dtype(self.problem.dtype)
            )
            self.comm.Barrier()  # nobody puts keys into a window that is still read
        watch = Phases(self.comm)
        watch.seconds = dict.fromkeys(STAGES, 0.0)
        with watch("KeyGeneration"):
            keys = self._generate()
        began = time.perf_counter()
        with watch("LocalBucketing"):
            self.send = self._bucket(keys)
        del keys
        with watch("AssignBuckets"):
            places = self._assign()
        with watch("KeyExchange"):
            mine = self._exchange(places)
        with watch("LocalSort"):
            mine.sort()
        total = time.perf_counter() - began
        self._result = mine
        talk = watch.seconds["AssignBuckets"] + watch.seconds["KeyExchange"]
        return {"total": total, "communication": talk, **watch.seconds}

    def _assign(self) -> Ints:
        """Learn what comes from each rank; return where each rank wants this one's keys."""
        self.receive = self.ranks.swap(np.ascontiguousarray(self.send[:, None]))[:, 0]
        if self.sided == "two":
            return self.receive
        ends = np.cumsum(self.receive) - self.receive
        places: Ints = self.ranks.swap(np.ascontiguousarray(ends[:, None]))[:, 0]
        return places

    def _exchange(self, places: Ints) -> Keys:
        turns = self._turns.setdefault(
            self.exchange, order(self.exchange, self.ranks.rank, self.ranks.size, self.seed)
        )
        if self.sided == "put":
            assert self._window is not None
            self._window.put(self.exchange, turns, self._bucketed, self.send, self.receive, places)
            return self._window.keys
        two_sided(
            self.comm, self.exchange, turns, self._bucketed, self.send, self._room, self.receive
        )
        return self._room

    def verify(self) -> None:
        """Raise on all ranks where the last result is wrong; not timed.

        Every key in its rank's bucket, in order on and over ranks, none lost,
        doubled or altered.
        """
        if self._result is None:
            return
        mine = self._result
        found = faults(self.ranks, self._before, mine, [mine], int(self.receive.sum()))
        low, high = self.problem.extent(self.ranks.rank)
        inside = not len(mine) or (int(mine.min()) >= low and int(mine.max()) <= high)
        if not self.ranks.all(inside):
            found.append("a key is outside its rank's bucket")
        with together(self.comm):
            refuse(found, "the bucket sort")

    def free(self) -> None:
        """Give the windows back. Collective."""
        self._result = None
        if self._window is not None:
            self._window.free()
            self._window = None
