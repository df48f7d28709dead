# SPDX-License-Identifier: Apache-2.0
"""Auto: never worse than the default, and it says when that is optimal."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import UsageError
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.orders.auto import DEFAULT, choose, describe_choice
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.pattern.graph import expand_pattern, from_edges
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.score import cost
from tests.effort import examples
from tests.rankmap.helpers import named, slots

MACHINES = [
    "tree:4x4x4,dist=1:2:3",
    "torus:4x4x4",
    "dragonfly:groups=4,chassis=2,blades=4,nodes=2",
]


@st.composite
def jobs(draw):
    machine = nidmap.load_machine(draw(st.sampled_from(MACHINES)))
    dims = draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))
    total = math.prod(dims)
    shape = "x".join(map(str, dims))
    patterns = [f"stencil:{shape}", f"stencil:{shape},periodic", "ring", "alltoall"]
    patterns += [f"fft:{shape}"] if len(dims) <= 2 else []
    nodes = draw(st.integers(1, min(total, 16)))
    rows = draw(st.permutations(range(len(machine))))[:nodes]
    cuts = sorted(draw(st.permutations(range(1, total)))[: nodes - 1]) if total > 1 else []
    counts = np.diff([0, *cuts, total]).tolist()
    return draw(st.sampled_from(patterns)), place_ranks(machine, np.array(rows), counts)


@examples(20)
@given(jobs())
def test_auto_is_never_worse_than_the_default_nor_below_the_bound(job):
    text, on = job
    pattern = parse_pattern(text).fit(on.ranks)
    found = choose(pattern, on)
    made = cost(found.order, pattern)
    assert made == pytest.approx(found.cost)
    assert made <= cost(arrange(on, text, DEFAULT), pattern) * (1 + 1e-12)
    assert found.bound.value <= made * (1 + 1e-9)
    assert made <= min(found.tried.values()) * (1 + 1e-12)
    assert found.words()


def test_an_even_pencil_grid_keeps_the_default():
    machine = nidmap.load_machine("tree:4x4x8,dist=1:2:3")
    made = arrange(place_ranks(machine, None, 32), "fft:64x64", "auto")
    assert made.slot_of_rank.tolist() == list(range(4096))
    assert made.origin.remark.endswith("nothing tried is better")


def test_an_uneven_pencil_grid_gets_a_better_order():
    machine = nidmap.load_machine("tree:4x16x6,dist=1:2:3")
    on = place_ranks(machine, np.arange(171), [24] * 170 + [16])
    assert choose(parse_pattern("fft:64x64").fit(4096), on).strategy != DEFAULT


def test_a_hopeless_strategy_does_not_stop_the_others(monkeypatch):
    from nidmap.placement.errors import UsageError
    from nidmap.rankmap import orders

    def broken(pattern, slots):
        raise UsageError("not here")

    monkeypatch.setitem(orders._orderings.known, "hilbert", broken)
    machine = nidmap.load_machine("tree:4x4")
    found = choose(parse_pattern("stencil:9x7").fit(63), place_ranks(machine, None, [4] * 15 + [3]))
    assert found.failed.get("hilbert", "not here") == "not here"
    assert found.cost <= found.default_cost


def test_what_there_is_no_time_for_is_left_out_and_said():
    machine = nidmap.load_machine("tree:4x4x4,dist=1:2:3")
    on = place_ranks(machine, None, 16)
    graph = expand_pattern(parse_pattern("stencil:1024").fit(1024))
    some = from_edges(1024, *(end[1:] for end in graph.upper()))  # no stencil any more
    none = choose(some, on, 0.5)
    assert none.strategy == DEFAULT
    assert none.optimal or "graph is left out: not in 0.5 s" in none.words()
    assert choose(some, on, 1e9).cost <= none.cost
    assert describe_choice(choose(some, on, 0.7)).origin.strategy.startswith("auto: ")


def test_kernels_that_are_not_compiled_yet_are_not_waited_for(monkeypatch):
    from nidmap.rankmap.refine import cache

    on = place_ranks(nidmap.load_machine("tree:4x4x4,dist=1:2:3"), None, 16)
    rng = np.random.default_rng(5)
    any_edges = from_edges(1024, *rng.integers(0, 1024, (2, 3000)), np.ones(3000))
    monkeypatch.setattr(cache, "kernels_compiled", lambda: False)
    found = choose(any_edges, on, 20.0)
    assert found.strategy == DEFAULT
    assert "graph is left out: not in 20 s (its kernels are not compiled yet" in found.words()
    monkeypatch.setattr(cache, "kernels_compiled", lambda: True)
    assert choose(any_edges, on, 20.0).strategy == "graph"


def test_auto_takes_no_options():
    with pytest.raises(UsageError, match="auto takes no options, not 'seconds=2'"):
        arrange(slots(named(1, 2), 2), "ring", "auto:seconds=2")


def test_the_same_question_has_the_same_answer():
    machine = nidmap.load_machine("torus:4x4x4")
    on = place_ranks(machine, None, 8)
    assert arrange(on, "stencil:32x16", "auto") == arrange(on, "stencil:32x16", "auto")


def test_without_a_machine_nodes_count():
    found = choose(parse_pattern("stencil:4x4").fit(16), slots(named(1, 2, 3, 4), 4))
    assert found.cost == 8
