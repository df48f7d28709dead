# SPDX-License-Identifier: Apache-2.0
"""What a pattern sends, against every message counted one by one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.placement.placement import Placement
from nidmap.placement.specs import parse_spec
from nidmap.placement.support.arrays import sample_evenly
from nidmap.rankmap.pattern.structured import Lines, Ring, Stencil
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.job import algorithm_of, fit_pattern, parse_wanted
from nidmap.rankmap.predict.phases import _line_steps, most_steps, phases
from tests.placement.network.dense import dense
from tests.rankmap.predict import brute

MACHINE = parse_spec("torus:5x5")


@st.composite
def jobs(draw, ranks):
    """Draw so many ranks on some nodes of the machine, in any order."""
    rows = draw(st.lists(st.integers(0, 24), min_size=1, max_size=min(ranks, 8), unique=True))
    cuts = draw(
        st.lists(
            st.integers(1, ranks - 1) if ranks > 1 else st.nothing(),
            min_size=len(rows) - 1,
            max_size=len(rows) - 1,
            unique=True,
        )
    )
    counts = np.diff([0, *sorted(cuts), ranks])
    slots = np.array(draw(st.permutations(range(ranks))))
    return Placement.on_rows(MACHINE, np.array(rows), counts, slots)


def on_first(nodes, ppn):
    """Return ranks one after another on the first nodes."""
    return Placement.on_rows(MACHINE, np.arange(nodes), np.full(nodes, ppn))


extents = st.integers(1, 5)
stencils = st.lists(extents, min_size=1, max_size=3).flatmap(
    lambda dims: st.builds(
        Stencil,
        st.just(tuple(dims)),
        st.booleans(),
        st.sampled_from([(), tuple(float(k + 1) for k in range(len(dims)))]),
        st.integers(1, len(dims)),
    )
)
grids = st.one_of(
    st.builds(lambda n: Lines("alltoall", (n,)), st.integers(1, 20)),
    st.builds(lambda n: Lines("sort", (n,), True), st.integers(1, 20)),
    st.builds(lambda p, q: Lines("fft", (p, q)), extents, extents),
    st.builds(lambda n: Ring((n,)), st.integers(1, 12)),
    stencils,
)


def total(found):
    return sum((dense(phase.total) for phase in found), np.zeros((25, 25)))


@given(st.data(), grids)
def test_a_pattern_sends_every_message_once(data, pattern):
    job = data.draw(jobs(pattern.ranks))
    wanted, _ = brute.table(brute.messages(pattern, 8.0), job.node_of_rank, job.rows, 25)
    found = list(phases(pattern, job, 8.0, "at-once"))
    np.testing.assert_allclose(total(found), wanted, rtol=1e-12)


@given(st.data(), grids)
def test_flows_are_the_same_messages(data, pattern):
    job = data.draw(jobs(pattern.ranks))
    sent = brute.messages(pattern, 8.0)
    wanted, _ = brute.table(sent, job.node_of_rank, job.rows, 25)
    found = [phase.traffic.listed() for phase in phases(pattern, job, 8.0, "at-once")]
    total = sum((dense(job.demand(one)) for one in found), np.zeros((25, 25)))
    np.testing.assert_allclose(total, wanted, rtol=1e-12)
    off = sum(job.node_of_rank[a] != job.node_of_rank[b] for a, b, _ in sent)
    assert sum(one.messages.sum() for one in found) == off


@given(st.data(), grids)
def test_messages_are_counted(data, pattern):
    job = data.draw(jobs(pattern.ranks))
    sent = brute.messages(pattern, 1.0)
    found = list(phases(pattern, job, 1.0, "at-once"))
    each = np.bincount([a for a, _, _ in sent], minlength=1)
    assert sum(phase.a_rank for phase in found) == each.max(initial=0)
    leaving = [
        job.node_of_rank[a] for a, b, _ in sent if job.node_of_rank[a] != job.node_of_rank[b]
    ]
    if len(found) == 1:  # two phases may have their busiest nodes in two places
        assert found[0].a_node == np.bincount(leaving, minlength=1).max(initial=0)
        _, inside = brute.table(sent, job.node_of_rank, job.rows, 25)
        assert found[0].inside == pytest.approx(inside.max())


@given(st.data(), st.integers(2, 20), st.sampled_from(["pairwise", "ring"]))
def test_the_steps_of_an_exchange_are_the_exchange(data, ranks, algorithm):
    pattern = Lines("alltoall", (ranks,))
    job = data.draw(jobs(ranks))
    (phase,) = phases(pattern, job, 3.0, algorithm)
    steps = list(phase.steps())
    assert len(steps) == ranks - 1 == phase.in_turn
    both = sum(dense(job.demand(one)) * times for one, times in steps)
    np.testing.assert_allclose(both, dense(phase.total), rtol=1e-12)
    for one, _ in steps:  # a rank sends one message a step
        assert job.demand(one).out[job.rows].max() <= 3.0 * job.counts.max()


@given(st.data(), st.integers(2, 100))
def test_a_scattered_exchange_posts_32_messages_at_a_time(data, ranks):
    job = data.draw(jobs(ranks))
    (phase,) = phases(Lines("alltoall", (ranks,)), job, 3.0, "scattered")
    assert phase.a_rank == ranks - 1
    assert phase.sent == 3.0 * (ranks - 1)
    turns = math.ceil((ranks - 1) / 32)
    found = list(phase.steps()) if phase.steps else [(phase.traffic, 1.0)]
    assert len(found) == turns == phase.in_turn
    for turn, (one, times) in enumerate(found):
        shifts = range(32 * turn + 1, min(32 * turn + 33, ranks))
        sent = [(rank, (rank + by) % ranks, 3.0) for rank in range(ranks) for by in shifts]
        wanted, _ = brute.table(sent, job.node_of_rank, job.rows, 25)
        np.testing.assert_allclose(dense(job.demand(one)), wanted)
        assert phase.message(one) == pytest.approx(3.0 * len(shifts)) or turns == 1
        assert times == 1


def test_messages_of_a_large_scattered_exchange_are_sampled():
    pattern = Lines("alltoall", (20_000,))
    job = on_first(25, 800)
    (phase,) = phases(pattern, job, 1.0, "scattered", 6)
    sent = [one.bytes.sum() for one, _ in phase.steps()]
    assert sent == pytest.approx([32.0 * 20_000] * 6)
    assert phase.total.total == 20_000 * (20_000 - 800)


@given(st.integers(2, 40))
def test_bruck_brings_every_block_home(ranks):
    at = {(source, distance): source for source in range(ranks) for distance in range(ranks)}
    rows = np.arange(25)
    node = np.arange(ranks) % 25
    on = place_ranks(MACHINE, rows[: min(ranks, 25)], np.bincount(node).tolist())
    job = on.with_ranks_on(node)
    (phase,) = phases(Lines("alltoall", (ranks,)), job, 1.0, "bruck")
    sent = []
    for k in range(math.ceil(math.log2(ranks))):
        for source, distance in at:
            if distance >> k & 1:
                here = at[source, distance]
                at[source, distance] = (here + 2**k) % ranks
                sent.append((here, at[source, distance], 1.0))
    assert all(place == (source + distance) % ranks for (source, distance), place in at.items())
    wanted, inside = brute.table(sent, node, rows, 25)
    np.testing.assert_allclose(dense(phase.total), wanted)
    assert len(list(phase.steps())) == phase.in_turn == math.ceil(math.log2(ranks))
    if ranks <= 25:
        assert inside.max() == phase.inside == 0


def test_a_pencil_has_a_phase_of_rows_and_one_of_columns():
    job = on_first(4, 4)
    row, column = phases(Lines("fft", (4, 4)), job, 1.0, "at-once")
    assert (row.name, row.total.total, row.inside) == ("row", 0.0, 12.0)
    assert (column.name, column.total.total, column.inside) == ("column", 48.0, 0.0)


def test_many_steps_are_sampled_and_said():
    ranks = 4000
    job = on_first(20, 200)
    (phase,) = phases(Lines("alltoall", (ranks,)), job, 1.0, "ring", 300)
    assert phase.in_turn == 3999
    assert phase.shown == len(list(phase.steps())) == 300
    assert sum(times for _, times in phase.steps()) == 3999


@given(st.integers(1, 5000), st.integers(1, 64))
def test_a_sample_stands_for_every_step_once(count, most):
    chosen, times = sample_evenly(count, most)
    assert sum(times) == count
    assert chosen == sorted(set(chosen))
    assert 1 <= chosen[0] <= chosen[-1] <= count


@pytest.mark.parametrize(
    "spec",
    [
        "torus:8x8x2,bw=5",
        "tree:16x12,bw=12.5",
        "fattree:leaf=16,leaves=8,spines=4,bw=12.5",
        "dragonfly:groups=5,chassis=2,blades=8,nodes=2",
    ],
)
def test_six_steps_take_about_as_long_as_all_for_which_they_stand(spec):
    job = Job("alltoall", 4, 1e6, algorithm="ring")
    every, some = (Predictor(parse_spec(spec), job, steps=steps) for steps in (255, 6))
    placement = every.place(np.arange(64))  # neighbours in the ring are on near nodes
    assert some.time(placement) == pytest.approx(every.time(placement), rel=0.1)


def test_training_sends_what_its_formulas_say():
    pattern = parse_wanted("training:tp=2,cp=2,dp=2,pp=2,layers=2,hidden=8,seq=16,microbatches=1")
    job = on_first(16, 1)
    found = {phase.name: phase for phase in phases(pattern, job, 1.0, "at-once")}
    sent = pattern.sent()
    assert list(found) == ["tp", "cp", "dp", "pp"]
    for axis in ("tp", "cp", "dp"):
        assert found[axis].total.out[:16].tolist() == pytest.approx([sent[axis]] * 16)
    assert found["pp"].total.total == pytest.approx(16 * sent["pp"])  # 8 edges, both ways
    rows, columns = np.nonzero(dense(found["pp"].total))
    assert set((columns - rows).tolist()) == {8, -8}


def test_experts_exchange_all_to_all():
    pattern = parse_wanted("training:dp=4,ep=4,layers=1,hidden=4,seq=8,microbatches=1")
    job = on_first(4, 1)
    found = {phase.name: phase for phase in phases(pattern, job, 1.0, "at-once")}
    table = dense(found["ep"].total)[:4, :4]
    each = pattern.sent()["ep"] / 3
    np.testing.assert_allclose(table, each * (1 - np.eye(4)))


def test_a_matrix_keeps_its_directions(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("0,10,0\n3,0,0\n0,4,0\n")
    slots = Placement(np.array(["a", "b", "c"]), np.ones(3, dtype=np.int64))
    pattern = fit_pattern(parse_wanted(f"matrix:{path}"), slots)
    job = on_first(3, 1)
    (phase,) = phases(pattern, job, 2.0, "at-once")
    assert dense(phase.total)[:3, :3].tolist() == [[0, 20, 0], [6, 0, 0], [0, 8, 0]]
    assert phase.a_rank == 1


def test_a_graph_sends_its_weight_both_ways(tmp_path):
    path = tmp_path / "g.graph"
    path.write_text("3 2 1\n2 7\n1 7 3 5\n2 5\n")
    pattern = parse_wanted(f"graph:{path}")
    job = on_first(3, 1)
    (phase,) = phases(pattern, job, 1.0, "at-once")
    assert dense(phase.total)[:3, :3].tolist() == [[0, 7, 0], [7, 0, 5], [0, 5, 0]]


def test_a_matrix_with_fewer_ranks_than_slots_keeps_its_directions(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("0,1,10\n1,0,4\n")
    slots = Placement(np.array(["a", "b", "c"]), np.ones(3, dtype=np.int64))
    pattern = parse_wanted(f"matrix:{path}")
    if pattern.ranks is None:
        pattern = fit_pattern(pattern, slots)
    job = on_first(3, 1)
    (phase,) = phases(pattern, job, 1.0, "at-once")
    assert dense(phase.total)[:2, :2].tolist() == [[0, 10], [4, 0]]


def test_algorithms_belong_to_all_to_alls():
    assert algorithm_of(parse_wanted("sort"), "") == "at-once"
    assert algorithm_of(parse_wanted("fft:4x4"), "bruck") == "bruck"
    with pytest.raises(
        UsageError, match="unknown algorithm 'x' for an all-to-all; choose from at-once"
    ):
        algorithm_of(parse_wanted("alltoall"), "x")
    assert algorithm_of(parse_wanted("stencil:4x4"), "library") == "at-once"
    for name in ("pairwise", "ring", "bruck"):
        with pytest.raises(UsageError, match="for stencil:4x4; choose from at-once, lib"):
            algorithm_of(parse_wanted("stencil:4x4"), name)


def test_line_steps():
    row = np.arange(4)[None]
    assert [(s.target.tolist(), s.times) for s in _line_steps(row, "pairwise", 9)] == [
        ([1, 0, 3, 2], 1.0),
        ([2, 3, 0, 1], 1.0),
        ([3, 2, 1, 0], 1.0),
    ]
    assert [(s.target.tolist(), s.size) for s in _line_steps(np.arange(5)[None], "bruck", 9)] == [
        ([1, 2, 3, 4, 0], 2.0),
        ([2, 3, 4, 0, 1], 2.0),
        ([4, 0, 1, 2, 3], 1.0),
    ]


def test_most_steps():
    assert most_steps(3072, 512, "minimal") == 364
    assert most_steps(24576, 512, "single") == 12
    assert most_steps(96, 512, "adaptive") == 16
