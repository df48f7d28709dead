"""No start, no planner and not Slurm's own choice is faster than ``auto``, by `predict` itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import planners
from placement.errors import NidmapError
from placement.network import routings
from placement.plan import plan
from placement.planners import find
from placement.request import Request
from placement.specs import parse_spec
from rankmap.joint.budget import TUNING
from rankmap.joint.node_sets import boxes, levels, planner_sets
from rankmap.pattern.graph import from_edges
from rankmap.predict import Predictor, predict
from rankmap.predict.algorithms import ALGORITHMS
from rankmap.predict.gain import Gains, Placed
from tests.effort import examples

SPECS = [
    "torus:4x3x3,bw=1",
    "torus:5x4,nodes=2,bw=2,injection=10",
    "dragonfly:groups=4,chassis=1,blades=4,nodes=2,global=2,injection=10",
    "dragonfly:groups=3,chassis=2,blades=3,nodes=2,global=4",
    "fattree:leaf=4,leaves=6,spines=2,bw=1",
    "fattree:down=3x3x2,up=1x2x2,bw=1",
    "tree:3x4x2,bw=1",
]


@pytest.fixture(autouse=True, scope="module")
def little_work():
    """Search less: what is promised does not depend on how long is searched.

    It does on how many starts are predicted as was asked, where a routing is too
    slow to search with: all of them, as the usual budget allows at these sizes.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TUNING, "budget", 1e5)
        patch.setattr(TUNING, "stale", 5)
        patch.setattr(TUNING, "least_finals", 1000)
        patch.setattr(TUNING, "next_fastest", 1000)
        yield


def random_graph(ranks, seed):
    rng = np.random.default_rng(seed)
    a, b = np.nonzero(np.triu(rng.random((ranks, ranks)) < 0.3, 1))
    return from_edges(ranks, a, b, rng.integers(1, 100, len(a)) * 1e4)


@st.composite
def cases(draw, spec):
    """Return machine, free mask, count and what the job sends."""
    machine = parse_spec(spec)
    seed = draw(st.integers(0, 2**31))
    free = np.random.default_rng(seed).random(len(machine)) < draw(st.sampled_from([0.5, 0.8]))
    free[:4] = True
    routing = draw(st.sampled_from(routings(machine)))
    most = 5 if routing == "adaptive" else 10  # each step of an exchange is balanced anew
    count = draw(st.integers(2, min(most, int(free.sum()))))
    ppn = draw(st.sampled_from([1, 2, 3]))
    ranks = count * ppn
    part = draw(st.sampled_from([d for d in range(1, ranks + 1) if ranks % d == 0]))
    kind = draw(st.sampled_from(["alltoall", "alltoall", "fft", "stencil", "ring", "graph", "tp"]))
    pattern = {
        "fft": f"fft:{part}x{ranks // part}",
        "stencil": f"stencil:{part}x{ranks // part}",
        "graph": random_graph(ranks, seed),
        "tp": f"training:tp={part},pp=1,dp={ranks // part}",
    }.get(kind, kind)
    job = {"pattern": pattern, "ppn": ppn, "latency": draw(st.sampled_from([0, None]))}
    job["routing"] = routing
    if kind in ("alltoall", "fft"):
        job["algorithm"] = draw(st.sampled_from(ALGORITHMS))
    return machine, free, count, job


def starts_of(machine, free, count):
    """Yield every node list that the answer must not be slower than."""
    request = Request(count, free)
    yield from planner_sets(machine, request)
    torus = machine.topology.kind == "torus"
    yield from boxes(machine, request) if torus else levels(machine, request)
    for name in planners.names():
        if name not in planners.PREDICTING:
            try:
                yield name, plan(machine, count, strategy=name, candidates=free).rows
            except NidmapError:
                continue  # does not apply


@pytest.mark.parametrize("spec", SPECS)
@examples(8)
@given(data=st.data())
def test_no_start_and_no_planner_is_faster(spec, data):
    machine, free, count, job = data.draw(cases(spec))
    found = plan(machine, count, strategy="auto", candidates=free, **job, deadline=300)
    time = predict(machine, found.rows, order=found.order, **job).time_s
    assert time == pytest.approx(found.facts["predicted"]["time_s"], rel=1e-9)
    starts = {rows.tobytes(): (name, rows) for name, rows in starts_of(machine, free, count)}
    for name, rows in starts.values():
        other = predict(machine, rows, **job).time_s
        least = other if name == "slurm-none" else other * (1 + TUNING.clearly)
        if time > least * (1 + 1e-9):  # left alone where it may lose more than it likely gains
            base = find("slurm-none")(machine, Request(count, free))
            gain = Gains(Predictor(machine, **job), Placed(base)).of(Placed(rows))
            assert not gain.pays(TUNING.clearly), name
