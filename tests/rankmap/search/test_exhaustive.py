# SPDX-License-Identifier: Apache-2.0
"""Strategy ``auto`` against exhaustive search, whose routes and times are worked out here.

`python -m benchmarks.auto exhaustive 500` does the same on many more machines.
"""

import itertools
import math

import numpy as np
import pytest

from nidmap.placement.load import load_machine
from nidmap.placement.network import Demand, channels, loads
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.options import with_figures
from nidmap.placement.plan import plan
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.constants import machine_constants
from nidmap.rankmap.predict.job import ALGORITHMS

MB = 1e6


def routes(machine, free, routing=""):
    """Return seconds a byte between any two free nodes on every link, (f, f, links)."""
    found = channels(machine, routing)
    own = injection_bandwidth(machine) * machine_constants(machine).reach
    out = np.zeros((len(free), len(free), len(found) + 2 * len(free)))
    for i, j in itertools.permutations(range(len(free)), 2):
        load = loads(
            machine, Demand.of(machine, Traffic.of([free[i]], [free[j]], 1.0)), routing
        ).load
        out[i, j, : len(found)] = load / (found.bandwidth * 1e9)
        out[i, j, len(found) + i] = 1 / (own[free[i]] * 1e9)
        out[i, j, len(found) + len(free) + j] = 1 / (own[free[j]] * 1e9)
    return out[:, :, out.any(axis=(0, 1))]


def sent(pattern, ranks):
    """Return the bytes between ranks, phase by phase."""
    kind, _, rest = pattern.partition(":")
    apart = ~np.eye(ranks, dtype=bool)
    if kind == "alltoall":
        return [apart * MB]
    p, q = map(int, rest.split("x"))
    row, column = np.divmod(np.arange(p * q), q)
    if kind == "fft":
        return [((x[:, None] == x) & apart) * MB for x in (row, column)]
    steps = np.abs(row[:, None] - row) + np.abs(column[:, None] - column)
    return [(steps == 1) * MB]


def time_of(seconds, phases, places):
    pairs = seconds[places[:, :, None], places[:, None, :]]
    return sum(np.einsum("ij,bijc->bc", one, pairs).max(axis=1) for one in phases)


def least(seconds, phases, choices):
    walk, best = iter(choices), math.inf
    while chunk := list(itertools.islice(walk, 1500)):
        best = min(best, float(time_of(seconds, phases, np.array(chunk)).min()))
    return best


CASES = [
    ("dragonfly:groups=4,chassis=2,blades=4,nodes=2,global=8,injection=10", 14, 7, "alltoall"),
    ("dragonfly:groups=3,chassis=2,blades=3,nodes=2,global=2", 8, 4, "fft:2x2"),
    ("dragonfly:groups=3,chassis=3,blades=3,nodes=2,global=2,routing=minimal", 9, 4, "fft:2x2"),
    ("slingshot:groups=4,switches=4,nodes=4,global=2,nics=2,routing=minimal", 12, 6, "alltoall"),
    ("torus:4x4x4,bw=1", 14, 7, "alltoall"),
    ("torus:5x3x4,bw=2,nodes=2", 8, 4, "fft:2x2"),
    ("torus:8x8,bw=1", 7, 6, "stencil:2x3"),
    ("fattree:leaf=4,leaves=8,spines=2,bw=1", 14, 6, "alltoall"),
    ("fattree:down=3x3x3,up=1x2x2,bw=1", 8, 4, "stencil:2x2"),
    ("tree:4x4x4,bw=1", 15, 8, "alltoall"),
    ("tree:3x2x3x2,bw=1", 7, 6, "fft:2x3"),
]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("spec", "many", "count", "pattern"), CASES)
def test_auto_is_within_one_percent_of_the_best_of_all_placements(spec, many, count, pattern, seed):
    machine = parse_spec(spec)
    rng = np.random.default_rng(seed)
    free = np.sort(rng.choice(len(machine), many, replace=False))
    mask = np.isin(np.arange(len(machine)), free)
    found = plan(
        with_figures(machine, latency=0), count, job=Job(pattern), candidates=mask, deadline=60
    )
    seconds, phases = routes(machine, free), sent(pattern, count)
    everyone = itertools.combinations(range(many), count)
    if pattern != "alltoall":
        everyone = (x for some in everyone for x in itertools.permutations(some))
    places = np.searchsorted(free, found.rows[found.order.node_of_rank])
    own = float(time_of(seconds, phases, places[None])[0])
    assert found.facts["predicted"]["time_s"] == pytest.approx(own, rel=1e-9)
    best = found.facts["predicted"]["search"]["best"]["cost"]  # the answer may keep together
    assert min(own, best) <= 1.01 * least(seconds, phases, everyone)


@pytest.mark.parametrize("routing", ["minimal", "single", "valiant"])
def test_other_routings_are_searched_too(routing):
    machine = parse_spec("dragonfly:groups=4,chassis=2,blades=2,nodes=2,global=4")
    free = np.arange(0, len(machine), 3)
    mask = np.isin(np.arange(len(machine)), free)
    found = plan(
        with_figures(machine, routing=routing, latency=0), 5, job=Job("alltoall"), candidates=mask
    )
    seconds, phases = routes(machine, free, routing), sent("alltoall", 5)
    best = least(seconds, phases, itertools.combinations(range(len(free)), 5))
    assert found.facts["predicted"]["search"]["best"]["cost"] <= 1.01 * best
    assert found.facts["predicted"]["routing"] == routing


def test_the_order_of_nodes_is_searched_where_an_algorithm_makes_it_matter():
    machine = load_machine("minicray:torus,routing=single,latency=0")
    free = np.isin(np.arange(len(machine)), [0, 1, 2, 3, 4, 5, 8, 9, 10, 14, 15, 16, 17])
    job = Job("alltoall", 2, 50_000, "pairwise")
    found = plan(machine, 8, job=job, candidates=free, deadline=300)
    figures = found.facts["predicted"]
    assert figures["default_time_s"] > 310e-6
    assert figures["time_s"] < 278e-6


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("spec", ["torus:4x3,bw=1", "fattree:leaf=3,leaves=4,spines=1,bw=1"])
def test_stepwise_alltoalls_are_within_two_percent_of_any_nodes_in_any_order(spec, algorithm):
    machine = with_figures(parse_spec(spec), latency=0)
    rows = np.array([0, 1, 4, 7, 10])
    free = np.isin(np.arange(len(machine)), rows)
    job = Job("alltoall", 2, algorithm=algorithm)
    found = plan(machine, 4, job=job, candidates=free, deadline=300)
    asked = Predictor(machine, job)
    least = min(asked.time(asked.place(np.array(some))) for some in itertools.permutations(rows, 4))
    assert found.facts["predicted"]["time_s"] <= least * 1.02
