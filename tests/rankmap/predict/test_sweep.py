# SPDX-License-Identifier: Apache-2.0
"""Sweeps, against a program of ranks that receive, wait and send as one does."""

import functools
from collections import defaultdict, deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import UsageError
from nidmap.placement.network import Demand, loads
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.pattern.sweep import waves
from nidmap.rankmap.predict import Job, Predictor

GRIDS = st.tuples(st.integers(1, 5), st.integers(1, 5))


def calls(dims, messages):
    """Return what each rank does in turn: ("recv" | "send", partners), as a sweep is written."""
    rows, columns = dims
    turns = defaultdict(list)
    for down in (1, -1):
        for right in (1, -1):
            for _ in range(messages):
                for i in range(rows):
                    for j in range(columns):
                        steps = [(down, 0), (0, right)]
                        near = (
                            [(i - a, j - b) for a, b in steps],
                            [(i + a, j + b) for a, b in steps],
                        )
                        for what, places in zip(("recv", "send"), near, strict=True):
                            partners = [
                                x * columns + y
                                for x, y in places
                                if 0 <= x < rows and 0 <= y < columns
                            ]
                            if partners:
                                turns[i * columns + j].append((what, partners))
    return turns


def simulated(dims, messages, cost=lambda a, b: 1.0):
    """Return when each message begins, and when the last is there: rank by rank, call by call."""
    turns = {rank: deque(todo) for rank, todo in calls(dims, messages).items()}
    now, there, begun = defaultdict(float), defaultdict(deque), []
    while any(turns.values()):
        moved = False
        for rank, todo in turns.items():
            while todo:
                what, partners = todo[0]
                if what == "recv":
                    if not all(there[p, rank] for p in partners):
                        break
                    now[rank] = max([now[rank], *(there[p, rank].popleft() for p in partners)])
                else:
                    for p in partners:
                        begun.append((now[rank], rank, p))
                        there[rank, p].append(now[rank] + cost(rank, p))
                    now[rank] += max(cost(rank, p) for p in partners)
                todo.popleft()
                moved = True
        assert moved, "ranks wait for each other for ever"
    return begun, max(now.values(), default=0.0)


@given(GRIDS, st.integers(1, 4))
def test_waves_are_when_a_program_s_messages_go(dims, messages):
    begun, ends = simulated(dims, messages)
    wave, source, target = waves(dims, messages)
    assert sorted(begun) == sorted(
        zip(wave.astype(float).tolist(), source.tolist(), target.tolist(), strict=True)
    )
    assert ends == (wave.max(initial=-1) + 1)


@settings(max_examples=30)
@given(GRIDS.filter(lambda dims: 1 < dims[0] * dims[1] < 17), st.integers(1, 3), st.randoms())
def test_a_sweep_takes_what_its_chain_of_messages_does(dims, pieces, random):
    """On neighbours exactly; on other nodes no less than a program whose messages never meet."""
    ranks = dims[0] * dims[1]
    machine = nidmap.load_machine("torus:5x5,bw=1,injection=inf,latency=1")
    job = Job(f"sweep:{dims[0]}x{dims[1]},pieces={pieces}", 1, 1e6)
    model = Predictor(machine, job)
    beside = np.array([j + 5 * i for i in range(dims[0]) for j in range(dims[1])])
    found = model.predict(model.place(beside))
    _, chain = simulated(dims, 2 * pieces)
    assert found.spent["steps"] == pytest.approx(chain * 1e-3)
    assert found.phases[0].in_turn == chain
    rows = np.array(random.sample(range(25), ranks))

    @functools.cache
    def cost(a, b):
        sent = Traffic.of(rows[[a]], rows[[b]], 1e6)
        return float(loads(machine, Demand.of(machine, sent)).seconds().max())

    _, least = simulated(dims, 2 * pieces, cost)
    assert model.predict(model.place(rows)).spent["steps"] >= least * (1 - 1e-9)


def test_more_pieces_fill_the_pipeline_longer_and_cost_less_for_their_bytes():
    model = nidmap.load_machine("torus:8x8,latency=0,injection=inf")
    whole, cut = (
        nidmap.predict(model, None, nidmap.Job(f"sweep:8x8,pieces={n}", bytes=1e6 / n)).time_s
        for n in (1, 10)
    )
    assert cut < 0.5 * whole


def test_all_bytes_of_a_sweep_are_counted():
    pattern = parse_pattern("sweep:3x4,pieces=5")
    _, source, _ = waves((3, 4), pattern.messages)
    edges = sum(float(one.bytes.sum()) for one in pattern.edges())
    assert len(source) == 2 * edges  # as much goes back
    model = Predictor(nidmap.load_machine("torus:4x4"), Job("sweep:3x4,pieces=5", 1, 8.0))
    (phase,) = model.phases(model.place(np.arange(12)))
    assert phase.traffic.bytes.sum() == 8 * len(source)
    assert sum(t * s.bytes.sum() for s, t in phase.steps()) == 8 * len(source)


@pytest.mark.parametrize(
    "text", ["8", "8x8x8", "8x8,pieces=0", "8x8,pieces=x", "8x8,deep", "9999x9999"]
)
def test_what_is_no_sweep_is_refused(text):
    with pytest.raises(UsageError, match="sweep"):
        parse_pattern(f"sweep:{text}")


@pytest.mark.parametrize("text", ["sweep:8x4", "sweep:3x3,pieces=7"])
def test_a_sweep_reads_back(text):
    assert parse_pattern(text).spec == text
