# SPDX-License-Identifier: Apache-2.0
"""Exchanges direction by direction: each step by plain loops over the ranks."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.network import Demand, loads
from nidmap.placement.options import with_figures
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.constants import AHEAD
from nidmap.rankmap.predict.gain import Gains

TORUS = nidmap.load_machine("torus:4x4x2,bw=2,injection=5")


def by_hand(dims, weights, periodic, rows):
    """Return the seconds of all steps: a dimension's neighbours one way, then the other way."""
    total = 0.0
    for axis, way in itertools.product(range(len(dims)), (1, -1)):
        pairs = []
        for place in itertools.product(*map(range, dims)):
            there = list(place)
            there[axis] += way
            if periodic:
                there[axis] %= dims[axis]
            if 0 <= there[axis] < dims[axis]:
                pairs.append([np.ravel_multi_index(one, dims) for one in (place, there)])
        a, b = rows[np.array(pairs).reshape(-1, 2).T]
        apart = a != b
        if apart.any():
            demand = Demand.of(TORUS, Traffic.of(a[apart], b[apart], weights[axis] * 1e6))
            total += loads(TORUS, demand).worst().seconds
    return total


@given(st.data())
def test_steps_follow_each_other(data):
    dims = data.draw(st.sampled_from([(4,), (2, 4), (3, 3), (2, 2, 3), (4, 2, 2)]))
    periodic = data.draw(st.booleans())
    weights = data.draw(st.permutations([1.0, 2.0, 5.0]))[: len(dims)]
    rows = np.array(data.draw(st.permutations(range(32)))[: math.prod(dims)])
    words = "x".join(map(str, dims)) + ",periodic" * periodic
    words += ",weights=" + ":".join(f"{weight:g}" for weight in weights)
    staged = Predictor(
        with_figures(TORUS, latency=0), Job(f"stencil:{words},staged", 1, 1e6, algorithm="")
    )
    at_once = Predictor(
        with_figures(TORUS, latency=0), Job(f"stencil:{words}", 1, 1e6, algorithm="")
    )
    took = [model.time(model.place(rows)) for model in (at_once, staged)]
    steps = max(took[0], by_hand(dims, weights, periodic, rows))
    assert took[1] == pytest.approx(steps - AHEAD * (steps - took[0]))


def test_a_staged_stencil_is_the_same_pattern():
    staged, plain = (parse_pattern(f"stencil:4x3,points=9{word}") for word in (",staged", ""))
    assert staged.spec == "stencil:4x3,points=9,staged"
    assert parse_pattern(staged.spec) == staged
    assert [[e.source.tolist(), e.target.tolist()] for e in staged.edges()] == [
        [e.source.tolist(), e.target.tolist()] for e in plain.edges()
    ]


def test_whether_a_stencil_is_staged_is_an_unknown_unless_it_says_so():
    rows, base = np.arange(8), np.array([0, 9, 18, 27, 4, 13, 22, 31])
    names = []
    for words in ("stencil:2x2x2", "stencil:2x2x2,staged"):
        asked = Predictor(with_figures(TORUS, process=np.inf), Job(words, 1, 1e6, algorithm=""))
        found = Gains(asked, asked.place(base)).of(asked.place(rows))
        names.append([one.name for one in found.unknowns])
    assert names == [["staging"], ["overlap"]]


def test_how_far_ranks_run_ahead_is_not_known_of_either_placement():
    places = np.array([[0, 1, 2, 3], [0, 9, 18, 27]])  # a line of the torus, and a diagonal
    asked, whole = (
        Predictor(with_figures(TORUS, process=np.inf, latency=0), Job(words, 1, 1e6, algorithm=""))
        for words in ("stencil:4,staged", "stencil:4")
    )
    took = [asked.time(asked.place(rows)) for rows in places]
    once = [whole.time(whole.place(rows)) for rows in places]
    more = [(a - b) / AHEAD for a, b in zip(took, once, strict=True)]  # that running ahead wins
    ends = [(0.0, 0.0), (1.0, 1.0), (0.25, 0.75), (0.75, 0.25)]  # of both, and of each by itself
    gains = [(once[1] + (1 - b) * more[1]) / (once[0] + (1 - a) * more[0]) for a, b in ends] + [
        took[1] / took[0]
    ]
    (one,) = Gains(asked, asked.place(places[1])).of(asked.place(places[0])).unknowns
    assert one.name == "overlap"
    assert [one.low, one.high] == pytest.approx([min(gains), max(gains)])
