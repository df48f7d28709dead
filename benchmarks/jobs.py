# SPDX-License-Identifier: Apache-2.0
"""`nidmap jobs` on a synthetic trace: seconds, memory, and quick answers against `plan`'s.

::

    python -m benchmarks jobs                     # 100,000 jobs of LUMI
    python -m benchmarks.jobs leonardo 4000 16    # machine, jobs, and of these with a full search
"""

from __future__ import annotations

import heapq
import math
import resource
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

import nidmap
from benchmarks.timing import calibration
from nidmap.placement.accounting import read_jobs
from nidmap.placement.job_nodes import JobNodes, find_job_nodes, free_at_starts
from nidmap.placement.lookup import nodes_of
from nidmap.placement.plan import plan
from nidmap.placement.records import JobRecord
from nidmap.placement.scheduler.kinds import ANY
from nidmap.rankmap.past_jobs import Judge, Verdict, application_of, judge_jobs
from nidmap.rankmap.past_jobs.quick_cost import Span
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.gain import Gains

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nidmap.placement.machine import Machine
    from nidmap.placement.support.array_types import Ints, Mask

NAMES = ("lammps", "vasp", "gromacs", "wrf", "python", "cp2k")

#: Machine time that is asked for, against all that there is.
LOAD = 0.9


def trace(machine: Machine, count: int, seed: int = 1) -> Iterator[JobRecord]:
    """Yield jobs as a scheduler without topology starts them, as nodes become free.

    Sizes are powers of 2 or near, small ones most (four of ten have one node), run times
    lognormal about 40 minutes; a job takes the first free nodes, and waits until there are enough.
    """
    rng = np.random.default_rng(seed)
    nodes = np.flatnonzero(machine.compute)
    most = max(1.0, math.log2(len(nodes) / 8))
    size = np.maximum(1, (2 ** (most * rng.beta(0.6, 2.2, count))).astype(int))
    lasts = np.exp(rng.normal(math.log(2400), 1.1, count)).round()
    gap = float((size * lasts).mean()) / len(nodes) / LOAD
    arrives = np.cumsum(rng.exponential(gap, count)).round() + 1_700_000_000
    free = np.zeros(len(machine), dtype=bool)
    free[nodes] = True
    running: list[tuple[float, int, Ints]] = []
    now = 0.0
    for k in range(count):
        now = max(now, float(arrives[k]))
        while running and (running[0][0] <= now or int(free.sum()) < size[k]):
            ended, _, rows = heapq.heappop(running)
            free[rows] = True
            now = max(now, ended)
        rows = np.flatnonzero(free)[: size[k]]
        free[rows] = False
        heapq.heappush(running, (now + lasts[k], k, rows))
        listed, who = nodes_of(machine, rows), rng.integers(len(NAMES))
        words = f"{NAMES[who]}-{k % 7}", f"u{k % 50}", "workq"
        yield JobRecord(str(k + 1), listed, *words, now, now + float(lasts[k]), "COMPLETED")


def as_sacct(jobs: Iterator[JobRecord]) -> str:
    """Return jobs as ``sacct -P`` prints them, with times in seconds."""
    rows = ["JobID|JobName|User|Partition|State|Start|End|NodeList"]
    rows += [
        f"{j.id}|{j.name}|{j.user}|{j.partition}|{j.state}|{j.start:.0f}|{j.end:.0f}|{j.nodes.fold()}"
        for j in jobs
    ]
    return "\n".join(rows) + "\n"


def main(machine: str = "lumi", count: int = 100_000, sample: int = 0) -> None:
    """Judge a synthetic trace, and print the cost."""
    m = nidmap.load_machine(machine)
    text = as_sacct(trace(m, count))
    begun = time.perf_counter()
    job_nodes = find_job_nodes(m, read_jobs(text, "trace"))
    read, begun = time.perf_counter() - begun, time.perf_counter()
    verdicts = judge_jobs(m, job_nodes, range(len(job_nodes)))
    judged = time.perf_counter() - begun
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(each.ru_utime + each.ru_stime for each in used)
    slow = np.array([v.slowdown for v in verdicts])
    print(
        f"{machine}: {len(m)} nodes, {count} jobs, {int(job_nodes.first[-1])} nodes of jobs, "
        f"{len(text) >> 20} MB; sort of 10^7 int64 {calibration():.2f} s\n"
        f"read {read:.1f} s, judged {judged:.1f} s, CPU of all {cpu:.1f} s, "
        f"most memory {used[0].ru_maxrss >> 10} MB, of a worker {used[1].ru_maxrss >> 10} MB\n"
        f"slowdown: {(slow[:, 1] >= 1.1).mean():.1%} at least 1.1; quantiles .5 .9 .99 "
        f"{np.quantile(slow, [0.5, 0.9, 0.99], axis=0).round(2).tolist()}"
    )
    if sample:
        _compare(m, job_nodes, verdicts, sample)


def _compare(machine: Machine, job_nodes: JobNodes, verdicts: list[Verdict], sample: int) -> None:
    """Compare quick answers for a sample, half of it badly placed jobs, with full searches."""
    rng, judge = np.random.default_rng(3), Judge(machine)
    several = [v for v in verdicts if 1 < v.nodes <= 256]
    worse = [v for v in several if v.slowdown.likely >= 1.05]
    picked: dict[int, Verdict] = {}
    for some in (several, worse):
        chosen = rng.permutation(len(some))[: sample // 2].tolist()
        picked |= {some[k].job: some[k] for k in chosen}
    pairs = []
    for job, free in free_at_starts(job_nodes, machine.compute, list(picked)):
        found = search_best(judge, job_nodes, picked[job], free)
        pairs.append((picked[job].slowdown, found))
        ends = (" ".join(f"{x:.2f}" for x in span) for span in pairs[-1])
        print(f"  {picked[job].nodes:4} nodes: quick, full: {'   '.join(ends)}")
    both = np.array(pairs)
    error = np.log(both[:, 0, 1] / both[:, 1, 1])
    inside = (both[:, 1, 1] >= both[:, 0, 0] * 0.99) & (both[:, 1, 1] <= both[:, 0, 2] * 1.01)
    print(
        f"{len(pairs)} jobs: quick/full geometric mean {math.exp(error.mean()):.2f}, "
        f"rms {math.exp(math.sqrt((error**2).mean())):.2f} x; full inside quick's range: "
        f"{inside.mean():.0%}"
    )


def search_best(judge: Judge, job_nodes: JobNodes, verdict: Verdict, free: Mask) -> Span:
    """Return a job's slowdown by a full search for the best placement, with the predictor."""
    rows = job_nodes.of(verdict.job)
    application = application_of(job_nodes.jobs[verdict.job], judge.applications)
    usable = judge.usable(rows, free)
    spanned: list[Span] = []
    for pattern in verdict.patterns:
        job = Job(pattern, application.ppn, application.bytes)
        model = Predictor(judge.machine, job)
        chosen = plan(
            judge.machine, len(rows), strategy="auto", candidates=usable, kind=ANY, job=job
        )
        order = chosen.order
        assert order is not None  # a search always answers with one
        gain = Gains(model, model.place(rows)).of(order)
        likely = max(1.0, gain.likely)
        spanned.append(Span(min(likely, max(1.0, gain.low)), likely, max(likely, gain.high)))
    likely = math.exp(sum(math.log(s.likely) for s in spanned) / len(spanned))
    return Span(min(s.low for s in spanned), likely, max(s.high for s in spanned))


if __name__ == "__main__":
    words = [*sys.argv[1:], *("lumi", "100000", "0")[len(sys.argv) - 1 :]]
    main(words[0], int(words[1]), int(words[2]))
