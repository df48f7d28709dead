# SPDX-License-Identifier: Apache-2.0
"""Verdicts: figures alone decide, by a rule that is said."""

import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.study.__main__ import study
from benchmarks.study.published import LEFT_OUT, PAPERS
from benchmarks.study.verdict import Claim, falling, inside, near, over, rising, under

figures = st.floats(0.01, 1e6)


@given(model=figures, published=figures, spread=st.floats(1.01, 3))
def test_near_is_the_same_both_ways_and_grows_with_the_spread(model, published, spread):
    found = near(model, published, spread).holds
    assert found == (max(model / published, published / model) <= spread) or (
        max(model / published, published / model) == pytest.approx(spread)
    )
    assert near(published, published, spread).holds
    assert not found or near(model, published, spread * 1.01).holds


@given(st.lists(figures, min_size=2, max_size=6))
def test_what_rises_falls_the_other_way_round(values):
    assert rising(values).holds == falling(values[::-1]).holds
    assert rising(values).holds == (sorted(set(values)) == values)


@given(figures, figures, figures)
def test_a_range_holds_its_ends_and_a_bound_does_not(one, two, three):
    low, high = sorted((one, two))
    assert inside([low, high], low, high).holds
    assert inside(three, low, high).holds == (low <= three <= high)
    assert not over(low, low).holds
    assert not under(low, low).holds


@pytest.mark.parametrize("paper", ["tara", "mpsort"])
def test_a_verdict_follows_from_the_figures_beside_it(paper):
    document = json.loads(CliRunner().invoke(study, ["--paper", paper, "--json"]).stdout)
    for check in document["parts"][0]["checks"]:
        assert check["figures"]["model"]
        assert check["rule"]
        assert check["verdict"] in ("agrees", "disagrees")


def test_what_is_left_out_says_of_which_paper_and_why():
    assert {paper for paper, _, _ in LEFT_OUT} <= set(PAPERS)
    assert all(why for _, _, why in LEFT_OUT)


def test_one_figure_may_be_held_against_many():
    assert Claim("near", (1.0, 2.0), (1.5,), 1.5).holds
    assert not near([1.0, 2.0], 1.0).holds
