# SPDX-License-Identifier: Apache-2.0
"""Demands against sums over all messages."""

from collections import defaultdict
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement import all_to_alls
from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.network import Demand, demand
from nidmap.placement.specs import parse_spec
from nidmap.placement.support import arrays
from nidmap.placement.traffic import Traffic
from tests.placement.network.small_dragonflies import (
    Reference,
    every_pair,
    in_lines,
    listed_demand,
    listed_traffic,
    messages,
    ruled,
    slingshots,
)

machines = st.one_of(ruled(), slingshots())


def as_pairs(found, limit):
    """Return {(source, target): bytes} of a demand's blocks."""
    sums = {}
    with patch.object(demand, "BLOCK", limit):
        blocks = list(found.blocks())
    for source, target, amount in blocks:
        assert source.dtype == target.dtype == np.int64
        assert amount.dtype == np.float64
        assert (source != target).all()
        assert (amount > 0).all()
        for pair in zip(source.tolist(), target.tolist(), amount.tolist(), strict=True):
            assert pair[:2] not in sums
            sums[pair[:2]] = pair[2]
    return sums


def expected(machine, sent):
    """Return what leaves and enters each node, and the bytes of each router pair."""
    out, into = np.zeros(len(machine)), np.zeros(len(machine))
    for a, b, amount in sent:
        if a != b:
            out[a] += amount
            into[b] += amount
    sums = defaultdict(float)
    for s, t, amount in Reference(machine).router_messages(sent):
        sums[s, t] += amount
    return out, into, sums


def check(machine, found, sent, limit):
    out, into, sums = expected(machine, sent)
    assert found.out == pytest.approx(out)
    assert found.into == pytest.approx(into)
    assert found.total == pytest.approx(out.sum())
    got = as_pairs(found, limit)
    small = 1e-12 * (1 + sum(amount for _, _, amount in sent))
    rounded = {k: v for k, v in got.items() if k in sums or v > small}
    assert rounded == pytest.approx(dict(sums), rel=1e-12, abs=small)


@given(st.data(), machines, st.integers(1, 50), st.sampled_from([-1 << 40, 1 << 22]))
def test_pairs(data, machine, limit, table):
    sent = data.draw(messages(machine))
    with patch.object(arrays, "_TABLE", table):
        check(machine, listed_demand(machine, sent), sent, limit)


@given(st.data(), machines, st.integers(1, 50))
def test_complete(data, machine, limit):
    some = data.draw(st.sets(st.integers(0, len(machine) - 1), min_size=1, max_size=8))
    rows = data.draw(st.permutations(sorted(some)))
    ranks = data.draw(st.lists(st.integers(1, 3), min_size=len(rows), max_size=len(rows)))
    found = Demand.of(machine, Traffic.everyone(np.array(rows), np.array(ranks), 2.5))
    check(machine, found, every_pair(rows, ranks, 2.5), limit)


@given(st.data(), machines, st.integers(1, 50), st.sampled_from([0, 10**6]), st.booleans())
def test_lines(data, machine, limit, dear, small):
    entry = st.tuples(st.integers(-3, 10), st.integers(0, len(machine) - 1), st.integers(1, 3))
    entries = data.draw(st.lists(entry, max_size=20, unique_by=lambda x: x[:2]))
    columns = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    size = 1 if small else 1 << 22
    with (
        patch.object(all_to_alls, "_DEAR", dear),
        patch.object(all_to_alls, "_TABLE", size),
        patch.object(all_to_alls, "_EXPANDED", size),
    ):
        found = Demand.of(machine, Traffic.lines(*columns, 3.0))
        check(machine, found, in_lines(entries, 3.0), limit)
        check(machine, found.reversed(), in_lines(entries, 3.0), limit)


@given(st.data(), machines, st.floats(0.1, 1e6), st.integers(1, 50))
def test_sums_multiples_and_reversal(data, machine, factor, limit):
    one, two = data.draw(messages(machine)), data.draw(messages(machine))
    rows = sorted(data.draw(st.sets(st.integers(0, len(machine) - 1), min_size=1, max_size=5)))
    lines = Traffic.everyone(np.array(rows), 1, 2.0)
    flows = listed_traffic(one) + listed_traffic(two).sized(factor) + lines.sized(factor)
    found = Demand.of(machine, flows)
    sent = one + [(a, b, factor * amount) for a, b, amount in two]
    sent += every_pair(rows, [1] * len(rows), 2.0 * factor)
    check(machine, found, sent, limit)
    check(machine, found.reversed(), [(b, a, amount) for a, b, amount in sent], limit)


def test_a_line_given_twice_counts_as_one_entry():
    machine = parse_spec("torus:4,nodes=1")
    twice = Demand.of(machine, Traffic.lines(np.array([7, 7, 7]), np.array([1, 0, 1]), 1, 1.0))
    once = Demand.of(
        machine, Traffic.lines(np.array([7, 7]), np.array([0, 1]), np.array([1, 2]), 1.0)
    )
    assert twice.out.tolist() == once.out.tolist() == [2.0, 2.0, 0.0, 0.0]


def test_lines_that_are_alike_are_kept_once():
    machine = parse_spec("torus:4,nodes=1")
    line = np.repeat(np.arange(3), 2)
    found = Demand.of(machine, Traffic.lines(line, np.array([0, 1, 2, 3, 0, 1]), 1, 1.0))
    assert len(found.within) == 2
    sums = {(0, 1): 2, (1, 0): 2, (2, 3): 1, (3, 2): 1}
    assert as_pairs(found, 1 << 22) == sums


def test_a_node_without_a_router_is_named():
    machine = parse_spec("torus:4,nodes=1")
    machine.router[2] = -1
    with pytest.raises(NidmapError, match="nid00002 has no known router"):
        Demand.of(machine, Traffic.everyone(np.arange(4), 1, 1.0))
    assert Demand.of(machine, Traffic.everyone(np.array([0, 1, 3]), 1, 1.0)).total == 6


def test_demands_of_other_machines_are_refused():
    one, two = parse_spec("torus:4"), parse_spec("torus:5")
    demand = Demand.of(one, Traffic.everyone(np.arange(3), 1, 1.0))
    with pytest.raises(UsageError, match="another machine"):
        demand.refuse_other(two)


def test_no_nodes_send_nothing():
    machine = parse_spec("torus:4")
    none = np.zeros(0, dtype=np.int64)
    for found in (
        Demand.of(machine, Traffic.everyone(none, 1, 1.0)),
        Demand.of(machine, Traffic.of(none, none, 1.0)),
    ):
        assert found.total == 0
        assert list(found.blocks()) == []


def test_demand_leaving():
    from nidmap.placement.network.demand import Demand

    m = parse_spec("torus:4")
    parts = np.array([0, 0, 1, 1])
    every = Demand.of(m, Traffic.everyone(np.arange(3), 1, 1.0))
    assert [x.tolist() for x in every.leaving(parts, 2)] == [[2.0, 2.0], [2.0, 2.0]]
