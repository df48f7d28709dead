# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fair_sharing import fair_ends, share_fairly
from nidmap.placement.errors import UsageError
from nidmap.placement.network import Demand, loads
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic


def exact(sizes, routes, bandwidth):
    """Share by progressive filling in fractions, one channel at a time."""
    left = {f: Fraction(s) for f, s in enumerate(sizes) if s and routes[f]}
    now, ends = Fraction(0), [Fraction(0)] * len(sizes)
    while left:
        rate = rates(set(left), routes, bandwidth)
        step = min(left[f] / rate[f] for f in left)
        now += step
        for f in list(left):
            left[f] -= rate[f] * step
            if not left[f]:
                del left[f]
                ends[f] = now
    return [float(x) for x in ends]


def rates(flows, routes, bandwidth):
    room = {c: Fraction(b) for c, b in enumerate(bandwidth)}
    out, going = {}, set(flows)
    while going:
        load = {c: sum(c in routes[f] for f in going) for c in room}
        level = {c: room[c] / load[c] for c in room if load[c]}
        tight = min(level, key=level.get)
        for f in [f for f in going if tight in routes[f]]:
            out[f] = level[tight]
            going.remove(f)
            for c in routes[f]:
                room[c] -= level[tight]
    return out


@st.composite
def cases(draw):
    channels = draw(st.integers(1, 5))
    bandwidth = draw(st.lists(st.integers(1, 9), min_size=channels, max_size=channels))
    route = st.sets(st.integers(0, channels - 1), max_size=3)
    flows = draw(st.lists(st.tuples(st.integers(0, 4), route), min_size=1, max_size=8))
    return [s for s, _ in flows], [sorted(r) for _, r in flows], bandwidth


@given(cases(), st.data())
@settings(deadline=None)
def test_flows_end_when_exact_filling_says(case, data):
    sizes, routes, bandwidth = case
    many = data.draw(st.lists(st.integers(1, 3), min_size=len(sizes), max_size=len(sizes)))
    steps = [(f, c) for f, route in enumerate(routes) for c in route]
    flow, channel = np.array(steps, dtype=np.int64).reshape(-1, 2).T
    gbs = np.array(bandwidth, dtype=float)
    found = share_fairly(np.array(sizes) * 1e9, np.array(many, dtype=float), flow, channel, gbs)
    alone = [f for f, times in enumerate(many) for _ in range(times)]
    wanted = exact([sizes[f] for f in alone], [routes[f] for f in alone], bandwidth)
    np.testing.assert_allclose(found[alone], wanted, rtol=1e-9)


@pytest.mark.parametrize(
    "spec", ["torus:4x3x2,bw=2,injection=3", "fattree:leaf=4,leaves=4,spines=2"]
)
def test_an_all_to_all_ends_when_its_busiest_channel_does(spec):
    machine = parse_spec(spec)
    rows = np.random.default_rng(2).permutation(len(machine))[:12]
    a, b = (x.ravel() for x in np.meshgrid(rows, rows))
    found = fair_ends(machine, a, b, 1e6)
    load = loads(machine, Demand.of(machine, Traffic.everyone(rows, 1, 1e6)))
    assert found.max() == pytest.approx(load.worst().seconds, rel=1e-9)
    assert (found[a == b] == 0).all()
    assert (found[a != b] > 0).all()


def test_what_nothing_limits_takes_no_time():
    machine = parse_spec("tree:4x2")
    assert fair_ends(machine, np.array([0, 1]), np.array([7, 1]), 1e9).tolist() == [0.0, 0.0]


def test_several_paths_and_no_bandwidth_are_errors():
    ends = np.array([0]), np.array([3])
    machine = parse_spec("dragonfly:groups=1,chassis=2,blades=2,nodes=1")
    with pytest.raises(UsageError, match="minimal has several paths"):
        fair_ends(machine, *ends, 1.0, "minimal")
    none = np.zeros(1, dtype=np.int64)
    with pytest.raises(UsageError, match="without bandwidth"):
        share_fairly(np.ones(1), np.ones(1), none, none, np.zeros(1))
