from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.errors import UsageError
from placement.network import Demand, loads, maxmin
from placement.network.maxmin import Paths, fair, finish
from placement.specs import parse_spec


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
        load = {c: sum(dict(routes[f]).get(c, 0) for f in going) for c in room}
        level = {c: room[c] / load[c] for c in room if load[c]}
        tight = min(level, key=level.get)
        for f in [f for f in going if dict(routes[f]).get(tight)]:
            out[f] = level[tight]
            going.remove(f)
            for c, share in routes[f]:
                room[c] -= share * level[tight]
    return out


@st.composite
def cases(draw):
    channels = draw(st.integers(1, 5))
    bandwidth = draw(st.lists(st.integers(1, 9), min_size=channels, max_size=channels))
    quarter = st.sampled_from([Fraction(1, 4), Fraction(1, 2), Fraction(1)])
    route = st.dictionaries(st.integers(0, channels - 1), quarter, max_size=3)
    flows = draw(st.lists(st.tuples(st.integers(0, 4), route), min_size=1, max_size=8))
    return [s for s, _ in flows], [sorted(r.items()) for _, r in flows], bandwidth


def as_paths(routes):
    rows = [(f, c, float(share)) for f, route in enumerate(routes) for c, share in route]
    flow, channel, share = zip(*rows, strict=True) if rows else ((), (), ())
    return Paths(np.array(flow, dtype=int), np.array(channel, dtype=int), np.array(share))


@given(cases())
@settings(deadline=None)
def test_flows_end_when_exact_filling_says(case):
    sizes, routes, bandwidth = case
    found = finish(np.array(sizes) * 1e9, as_paths(routes), np.array(bandwidth, dtype=float))
    wanted = exact(sizes, routes, bandwidth)
    np.testing.assert_allclose(found.seconds, wanted, rtol=1e-9)
    assert found.makespan == found.seconds.max()


def test_the_compiled_kernel_and_the_rounds_agree(monkeypatch):
    rng = np.random.default_rng(4)
    flow = np.repeat(np.arange(300), 4)
    channel = np.concatenate([rng.permutation(25)[:4] for _ in range(300)])
    share = rng.choice([0.25, 0.5, 1.0], len(flow))
    size = rng.integers(1, 20, 300) * 1e6
    ways = Paths(flow, channel, share), rng.integers(1, 5, 25).astype(float)
    rounds = finish(size, *ways)
    monkeypatch.setattr(maxmin, "FEW", 0)
    np.testing.assert_allclose(finish(size, *ways).seconds, rounds.seconds, rtol=1e-9)


@pytest.mark.parametrize(
    "spec", ["torus:4x3x2,bw=2,injection=3", "fattree:leaf=4,leaves=4,spines=2"]
)
def test_an_all_to_all_ends_when_its_busiest_channel_does(spec):
    machine = parse_spec(spec)
    rows = np.random.default_rng(2).permutation(len(machine))[:12]
    a, b = (x.ravel() for x in np.meshgrid(rows, rows))
    found = fair(machine, a, b, 1e6)
    load = loads(machine, Demand.complete(machine, rows, 1, 1e6))
    assert found.makespan == pytest.approx(load.worst().seconds, rel=1e-9)
    assert (found.seconds[a == b] == 0).all()
    assert (found.seconds[a != b] > 0).all()


def test_what_nothing_limits_takes_no_time():
    machine = parse_spec("tree:4x2")
    assert fair(machine, np.array([0, 1]), np.array([7, 1]), 1e9).seconds.tolist() == [0.0, 0.0]


def test_several_paths_and_no_bandwidth_are_errors():
    ends = np.array([0]), np.array([3])
    with pytest.raises(UsageError, match="shortest has several paths"):
        fair(parse_spec("dragonfly:groups=1,chassis=2,blades=2,nodes=1"), *ends, 1.0, "shortest")
    one = Paths(np.array([0]), np.array([0]), np.ones(1))
    with pytest.raises(UsageError, match="without bandwidth"):
        finish(np.ones(1), one, np.zeros(1))
