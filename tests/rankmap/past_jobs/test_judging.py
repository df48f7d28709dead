# SPDX-License-Identifier: Apache-2.0
"""How jobs sat, against every placement of small machines; node-hours against plain sums."""

import math
from itertools import combinations

import numpy as np
import pytest

from nidmap.placement.job_nodes import find_job_nodes, free_at_starts
from nidmap.placement.nodelist import NodeList
from nidmap.placement.records import JobRecord
from nidmap.placement.specs import parse_spec
from nidmap.rankmap import past_jobs
from nidmap.rankmap.past_jobs import Application, judge_jobs
from nidmap.rankmap.past_jobs.quick_cost import QuickCost, Span
from nidmap.rankmap.past_jobs.report import Summary
from nidmap.rankmap.predict import Job, Predictor

SPECS = (
    "fattree:leaf=3,leaves=4,spines=1,bw=1",
    "dragonfly:groups=3,chassis=1,blades=2,nodes=2",
    "tree:2x2x3,bw=1",
    "torus:3x4,bw=1",
)


def drawn_jobs(machine, count, seed):
    """Return jobs that take nodes at random of those that are free then."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(count):
        start, lasts = float(k + 1), float(rng.integers(1, 6))
        taken = {n for j in found if j.end > start for n in j.nodes}
        free = [n for n in machine.names.tolist() if n not in taken]
        size = min(len(free), int(rng.integers(1, 5)))
        names = [str(name) for name in rng.choice(free, size, replace=False)] if size else []
        if names:
            found.append(JobRecord(str(k), NodeList(sorted(names)), f"app{k % 2}-{k}", "ada",
                                   start=start, end=start + lasts))  # fmt: skip
    return found


def best_of_all(cost, usable, count):
    """Return the least cost of any nodes in any of their orders by row."""
    spans = [
        cost.of(np.array(rows)) for rows in combinations(np.flatnonzero(usable).tolist(), count)
    ]
    return Span(*map(min, zip(*spans, strict=True)))


@pytest.mark.parametrize("spec", SPECS)
def test_slowdowns_against_every_placement(spec):
    machine = parse_spec(spec)
    job_nodes = find_job_nodes(machine, drawn_jobs(machine, 40, seed=5))
    known = (Application(pattern="alltoall"),)
    verdicts = {v.job: v for v in judge_jobs(machine, job_nodes, range(len(job_nodes)), known)}
    cost = QuickCost(Predictor(machine, Job("alltoall")))
    reached = []
    for job, free in free_at_starts(job_nodes, machine.compute, range(len(job_nodes))):
        rows = job_nodes.of(job).astype(np.int64)
        usable = free.copy()
        usable[rows] = True
        found = verdicts[job]
        assert found.free == usable.sum()
        assert (found.nodes, len(rows)) == (len(rows), job_nodes.counts[job])
        if len(rows) < 2:
            assert found.slowdown == (1, 1, 1)
            continue
        best = best_of_all(cost, usable, len(rows))
        real = [a / b for a, b in zip(cost.of(rows), best, strict=True)]
        assert 1 <= found.slowdown.low <= found.slowdown.likely <= found.slowdown.high
        assert found.slowdown.likely <= real[1] * (1 + 1e-9)  # no better than the best of all
        reached.append(found.slowdown.likely >= real[1] / (1 + past_jobs.ALIKE) - 1e-9)
    assert np.mean(reached) >= 0.9


def test_workers_say_the_same(monkeypatch):
    machine = parse_spec(SPECS[0])
    job_nodes = find_job_nodes(machine, drawn_jobs(machine, 60, seed=7))
    plain = judge_jobs(machine, job_nodes, range(len(job_nodes)))
    monkeypatch.setattr(past_jobs, "_FEW", 10)
    monkeypatch.setattr(past_jobs, "_CHUNK", 7)
    told = []
    found = judge_jobs(
        machine, job_nodes, range(len(job_nodes)), told=lambda done, text: told.append(done)
    )
    assert found == plain
    assert told == sorted(told)
    assert told[-1] == 1


def test_node_hours_are_those_of_the_share_alone():
    machine = parse_spec("fattree:leaf=4,leaves=4,spines=1,bw=1")
    apart = NodeList.parse("nid[00000-00001,00004-00005]")
    job = JobRecord("7", apart, "lmp-1", "ada", start=3600.0, end=3 * 3600.0)
    later = JobRecord("8", NodeList(["nid00009"]), "x", "bob", start=3600.0)
    job_nodes = find_job_nodes(machine, [job, later])
    application = Application("lmp*", pattern="alltoall", communication=0.3)
    found = Summary("m", job_nodes, tuple(judge_jobs(machine, job_nodes, [0, 1], (application,))))
    slow = found.verdicts[0].slowdown
    assert slow.likely == pytest.approx(4 / 3, rel=1e-3)  # 4 GB over a leaf's link, 3 GB of a node
    assert found.hours == pytest.approx(4 * 2 + 2)
    assert found.saved.likely == pytest.approx(8 * 0.3 * (1 - 1 / slow.likely))
    assert found.saved.likely < 8 * (1 - 1 / slow.likely)
    assert found.worse == 1
    assert found.sentence.startswith(
        "1 of the last 2 jobs was placed at least 10 % worse than it could"
    )
    assert sum(kin.jobs for kin in found.kin) == 2
    assert math.isclose(sum(kin.saved.likely for kin in found.kin), found.saved.likely)


def test_a_pattern_of_other_ranks_is_as_if_unknown():
    machine = parse_spec(SPECS[0])
    job_nodes = find_job_nodes(
        machine, [JobRecord("7", NodeList(["nid00000", "nid00004"]), start=1.0)]
    )
    known = (Application(pattern="fft:4x4", communication=0.5),)
    (found,) = judge_jobs(machine, job_nodes, [0], known)
    assert found.patterns == ("stencil:auto", "alltoall")
    assert found.share == (0.5, 0.5, 0.5)
