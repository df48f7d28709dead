# SPDX-License-Identifier: Apache-2.0
"""One run of a program: header, repetitions, time limit, progress, recorded samples.

A program's command makes one `Session` and measures its cases in it::

    with Session(common, "sort", {"items": items}) as session:
        trial = ...
        result = session.measure(trial, items=items)
    common.show(session.document(), session.table())
"""

from __future__ import annotations

import os
import sys
import time
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import groupby
from types import FrameType
from typing import Any, cast

from nidmap.placement import __version__
from nidmap.placement.support.quantities import time_text
from nidmap.placement.support.tables import align_columns
from nidmap.placement.ui import say
from nidmap.workloads.launched import ENDING, handle_signals
from nidmap.workloads.options import Common
from nidmap.workloads.progress import Progress
from nidmap.workloads.results import Journal
from nidmap.workloads.trials import SEED, Trial, reduce_over_ranks
from nidmap.workloads.world import (
    Comm,
    forget_segments,
    oversubscription,
    processor,
    raise_together,
    require_same,
)

#: Repetitions of a case that do not count, before those that do.
WARMUP = 1

#: Why a run ended before its time, by the number that the ranks agree on.
_ENDED = ("complete", "time limit", "interrupted")


@dataclass(slots=True)
class Repetitions:
    """The repetitions of one case, without warm-ups."""

    labels: dict[str, Any]  # description of the case
    # Seconds over the ranks, one entry per repetition; the same on all ranks
    phases: dict[str, list[dict[str, float]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.phases)

    def add(self, seconds: Mapping[str, dict[str, float]]) -> None:
        """Add a repetition."""
        for name, entry in seconds.items():
            self.phases.setdefault(name, []).append(entry)

    def slowest(self, phase: str) -> list[float]:
        """Return the slowest rank's seconds in each repetition."""
        return [entry["max"] for entry in self.phases[phase]]

    def best(self, phase: str = "total") -> float:
        """Return the seconds of the shortest repetition (its slowest rank's)."""
        return min(self.slowest(phase))

    def median(self, phase: str = "total") -> float:
        """Return the median over the repetitions of the slowest rank's seconds."""
        import statistics

        return float(statistics.median(self.slowest(phase)))

    def summary(self) -> dict[str, dict[str, float]]:
        """Return, by phase, best, median and worst repetition, and the mean over ranks."""
        return {
            name: {
                "best": self.best(name),
                "median": self.median(name),
                "worst": max(self.slowest(name)),
                "mean": sum(entry["mean"] for entry in entries) / len(entries),
            }
            for name, entries in self.phases.items()
        }


def phase_table(result: Repetitions, title: str = "phase") -> str:
    """Return one row per phase: best, median and worst repetition, and the mean over ranks."""
    rows = [
        [name, *(time_text(entry[k]) for k in ("best", "median", "worst", "mean"))]
        for name, entry in result.summary().items()
    ]
    return align_columns([[title, "best", "median", "worst", "mean rank"], *rows])


@dataclass(frozen=True, slots=True)
class Case:
    """One of the cases of a session."""

    # None on ranks that do not take part: they sleep meanwhile, so that those who do have the node
    # to themselves
    trial: Trial | None
    labels: Mapping[str, Any]  # its description: columns of the samples
    comm: Comm  # the ranks that take part, rank 0 of the world among them


class Session:
    """A run of a program over its cases. Collective: created, used and closed by all ranks.

    `common`: the shared options. `workload`: the program's name. `options`: its own options; the
    same on all ranks, or a UsageError on all.
    """

    def __init__(self, common: Common, workload: str, options: dict[str, Any]) -> None:
        self.began = time.monotonic()
        self.common = common
        self.workload = workload
        self.comm = common.comm  # the world
        self.ended = "complete"  # ``complete``, ``time limit`` or ``interrupted``
        self.results: list[Repetitions] = []
        self._signal = 0
        self._handlers = ExitStack()
        require_same(self.comm, **{**options, **asdict(common)})
        forget_segments()
        header = header_of(self.comm, workload, options, common)
        self.root = self.comm.Get_rank() == 0
        with raise_together(self.comm):
            self.journal = Journal(common.output if self.root else None, header)
        self._remark = str(header["oversubscribed"])

    def __enter__(self) -> Session:
        self._handlers.enter_context(handle_signals(ENDING, self._stop))
        return self

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Remember the first signal; a second one ends the program at once."""
        if self._signal:
            raise KeyboardInterrupt
        self._signal = number

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        with self._handlers:  # until the end, so that measurements are saved despite signals
            if error is None:
                with raise_together(self.comm):
                    self.journal.close(self.ended)
                self._say_time()
                if self.root and self.ended != "complete":
                    say(f"nidmap: {self.ending()}")
            elif self.root:  # without communication: other ranks may be elsewhere
                self._keep_samples(error)

    def _say_time(self) -> None:
        """Print the total time of all cases, the line that `nidmap ab` reads."""
        if self.root and self.finished:
            both = all("communication" in result.phases for result in self.finished)
            phase = "communication" if both else "total"
            seconds = sum(result.median(phase) for result in self.finished)
            say(f"nidmap: {phase} took {seconds:.6e} s")

    def ending(self) -> str:
        """Report that the run ended early, and which part of it is kept."""
        count = len(self.journal.rows)
        return f"ended early ({self.ended}); {count} finished samples are kept"

    def _keep_samples(self, error: BaseException) -> None:
        """Write the finished samples of a run that failed."""
        try:
            self.journal.close("interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
        except Exception as wrong:  # report the first error, not this one
            say(f"nidmap: samples are lost: {wrong}")

    def _say_remark(self) -> None:
        """Report once, and not before something runs, that ranks share cores."""
        if self.root and self._remark:
            say(f"nidmap: {self._remark}")
        self._remark = ""

    @property
    def exit_code(self) -> int:
        """130 if interrupted, else 0."""
        return 130 if self.ended == "interrupted" else 0

    def seconds(self) -> float:
        """Return the seconds since the run began."""
        return time.monotonic() - self.began

    def over(self, next_one: float = 0.0) -> bool:
        """Tell whether the run must end, equally on every rank. Collective.

        `next_one`: seconds that what comes next will take; only rank 0's counts.
        """
        from mpi4py import MPI

        if self.ended != "complete":
            return True
        limit = self.common.time_limit
        late = self.root and limit is not None and self.seconds() + next_one > limit
        why, agreed = array("b", [2 if self._signal else int(late)]), array("b", [0])
        self.comm.Allreduce(why, agreed, op=MPI.MAX)
        self.ended = _ENDED[agreed[0]]
        return self.ended != "complete"

    @property
    def finished(self) -> list[Repetitions]:
        """The results with at least one repetition, in the order of `document`."""
        return [result for result in self.results if result]

    def part(self, joins: bool) -> Comm:
        """Return the communicator of the ranks that join; the others get one of the rest."""
        return cast("Comm", self.comm.Split(int(not joins), self.comm.Get_rank()))

    def measure(self, trial: Trial, **labels: Any) -> Repetitions:
        """Measure one case of all ranks; see `interleave`."""
        return self.interleave([Case(trial, labels, self.comm)])[0]

    def interleave(self, cases: Sequence[Case]) -> list[Repetitions]:
        """Repeat several cases alternately: warm-ups, then counted repetitions. Collective.

        Every repetition runs all of them, another one first each time: what
        disturbs a machine for a while disturbs all alike. Each run starts
        after a barrier. Where the session must end early, what is finished
        is returned: an empty result is false.
        """
        results = [Repetitions(dict(case.labels)) for case in cases]
        self.results.extend(results)
        self._say_remark()
        labels = cases[0].labels.items() if len(cases) == 1 else ()
        title = " ".join([self.workload, *(f"{name}={value}" for name, value in labels)])
        rounds = WARMUP + self.common.repeat
        last = [0.0] * len(cases)
        unverified: Case | None = None
        with Progress(title, rounds * len(cases), shown=self.root) as progress:
            for count in range(rounds * len(cases)):
                done, turn = divmod(count, len(cases))
                k = (turn + done) % len(cases)
                if self.over(last[k]):
                    break
                began = time.monotonic()
                seconds = self._repetition(cases[k])
                if seconds:
                    self.sample(
                        seconds, warmup=int(done < WARMUP), repetition=done, **cases[k].labels
                    )
                    if done >= WARMUP:
                        results[k].add(seconds)
                unverified = cases[k]
                if done == rounds - 1:  # at once, since the next case may need its memory
                    self._verify(cases[k])
                    unverified = None
                last[k] = time.monotonic() - began
                progress.at(count + 1)
        if unverified is not None:
            self._verify(unverified)
        return results

    def _repetition(self, case: Case) -> dict[str, dict[str, float]] | None:
        """Run one repetition on the participating ranks; the others sleep until it ends."""
        seconds = None
        if case.trial is not None:
            case.comm.Barrier()
            seconds = reduce_over_ranks(case.comm, case.trial.run())
        if case.comm is not self.comm:
            quiet_barrier(self.comm, asleep=case.trial is None)
        return seconds

    def _verify(self, case: Case) -> None:
        """Verify a case's last result; a fault on any rank is an error on all ranks."""
        if case.comm is self.comm and case.trial is not None:
            case.trial.verify()
            return
        with raise_together(self.comm):
            if case.trial is not None:
                case.trial.verify()

    def sample(self, seconds: Mapping[str, Mapping[str, float]], **labels: Any) -> None:
        """Record one repetition: a row per phase, on rank 0."""
        self._say_remark()
        if self.root:
            self.journal.add({**labels, "phase": name, **entry} for name, entry in seconds.items())

    def document(self) -> dict[str, Any]:
        """Return the run as ``--json`` prints it."""
        cases = [{**result.labels, "seconds": result.summary()} for result in self.finished]
        schema = f"nidmap.bench.{self.workload}/1"
        return {"schema": schema, **self.journal.header, "ended": self.ended, "cases": cases}


def quiet_barrier(comm: Comm, asleep: bool = True) -> None:
    """Wait for all ranks asleep, leaving the cores to those that still work."""
    request = comm.Ibarrier()
    if not asleep:
        request.Wait()
        return
    while not request.Test():
        time.sleep(0.0005)


def header_of(
    comm: Comm, workload: str, options: Mapping[str, Any], common: Common
) -> dict[str, Any]:
    """Return the run's description for its samples file. Collective.

    Complete on rank 0; the others have what they need of it (``oversubscription``).
    """
    warning = oversubscription(comm)
    hosts = comm.gather(processor(comm), root=0)
    if hosts is None:
        return {"oversubscribed": warning}
    counts = Counter(hosts)
    stretches = [host for host, _ in groupby(hosts)]
    return {
        "workload": workload,
        "options": dict(options),
        "repeat": common.repeat,
        "warmup": WARMUP,
        "seed": SEED,
        "time_limit": common.time_limit,
        "ranks": comm.Get_size(),
        "nodes": len(counts),
        "ppn": max(counts.values()),
        "hosts": list(counts),
        "counts": list(counts.values()),
        "rank_hosts": hosts if len(stretches) > len(counts) else None,
        "machine": os.environ.get("NIDMAP_MACHINE", ""),
        "job": os.environ.get("SLURM_JOB_ID", os.environ.get("PBS_JOBID", "")),
        "oversubscribed": warning,
        "versions": _used_versions(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": sys.argv[1:],
    }


def _used_versions() -> dict[str, str]:
    import mpi4py
    from mpi4py import MPI

    loaded = {name: sys.modules.get(name) for name in ("numpy", "scipy", "ducc0")}
    return {
        "nidmap": __version__,
        "python": sys.version.split()[0],
        "mpi4py": mpi4py.__version__,
        "mpi": " ".join(MPI.Get_library_version().split("\n")[0].strip("\0").split()),
        **{k: str(getattr(module, "__version__", "")) for k, module in loaded.items() if module},
    }
