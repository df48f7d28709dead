"""Queues: the closed form against bursts that are served one after the other."""

import heapq
import random
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from placement.errors import UsageError
from placement.network import loads
from placement.network.model import injection_bandwidth
from placement.network.routes import walk
from placement.options import with_figures
from placement.traffic import Traffic
from rankmap.placement import Placement
from rankmap.predict import Job, Predictor, predict
from rankmap.predict.bursts import Filled, Queues, fill_links
from rankmap.predict.gain import Gains, time_range
from rankmap.predict.phase import Phase
from tests.rankmap.helpers import time_of

BURST = 17896.0
MACHINES = {
    name: nidmap.load_machine(spec)
    for name, spec in {
        "dragonfly": "minicray:dragonfly",
        "torus": "minicray:torus",
        "fattree": "minicray:fattree",
        "large": "torus:8x8x8,bw=4.68,injection=10",
    }.items()
}
CUBE = [x + 8 * y + 64 * z for z in range(4) for y in range(4) for x in range(4)]


def everyone(rows, bursts):
    return [(a, b, bursts) for a in rows for b in rows if a != b]


def shuffled(nodes, bursts):
    order = np.random.default_rng(1).permutation(nodes).tolist()
    return [(a, b, bursts) for a, b in enumerate(order) if a != b]


def halo(dims, bursts):
    place, sends = np.arange(np.prod(dims)).reshape(dims), []
    for axis in range(len(dims)):
        lines = np.moveaxis(place, axis, 0)
        pairs = list(zip(lines[:-1].ravel().tolist(), lines[1:].ravel().tolist(), strict=True))
        sends += [(a, b, bursts) for a, b in pairs] + [(b, a, bursts) for a, b in pairs]
    return sends


CASES = {
    "a part of a large torus": ("large", everyone(CUBE, 1)),
    "torus, all to all": ("torus", everyone(range(18), 6)),
    "torus, ten nodes": ("torus", everyone([0, 3, 4, 7, 8, 10, 12, 13, 16, 17], 6)),
    "torus, halo": ("torus", halo((2, 3, 3), 11)),
    "torus, permutation": ("torus", shuffled(18, 56)),
    "dragonfly, half of it": ("dragonfly", everyone(range(12), 6)),
    "dragonfly, halo": ("dragonfly", halo((2, 3, 4), 11)),
    "fat tree, half of both leaves": ("fattree", everyone([0, 1, 2, 3, 8, 9, 10, 11], 6)),
}


def routes(machine, sends):
    """Return the links of each message, and GB/s of all links."""
    a, b, _ = np.array(sends).T
    own = injection_bandwidth(machine)
    message, channel = walk(machine, a, b, "single")
    network = loads_of(machine, sends).channels
    first = len(network)
    ways = [[first + int(node)] for node in a]
    for k in np.argsort(message, kind="stable"):
        ways[message[k]].append(int(channel[k]))
    for way, node in zip(ways, b, strict=True):
        way.append(first + len(machine) + int(node))
    return ways, np.concatenate([network.bandwidth, own, own])


def phase_of(machine, sends):
    a, b, bursts = np.array(sends).T
    rows = np.arange(len(machine))
    placement = Placement(machine, rows, np.ones(len(rows), dtype=np.int64))
    return Phase("exchange", placement, Traffic.of(a, b, bursts * BURST).by_pair(len(rows)))


def loads_of(machine, sends):
    return loads(machine, phase_of(machine, sends).total, "single")


def simulated(sends, ways, service, seed):
    """Return when the last burst is there: nodes send in random order, links first come first."""
    rng, free, posted = random.Random(seed), np.zeros(len(service)), {}
    for k, (a, _, bursts) in enumerate(sends):
        posted.setdefault(a, []).extend([k] * bursts)
    waiting = []
    for order in posted.values():
        rng.shuffle(order)
        waiting += [(n * service[ways[k][0]], k, 1) for n, k in enumerate(order, 1)]
    heapq.heapify(waiting)
    while waiting:
        now, k, hop = heapq.heappop(waiting)
        link = ways[k][hop]
        free[link] = max(now, free[link]) + service[link]
        if hop + 1 < len(ways[k]):
            heapq.heappush(waiting, (free[link], k, hop + 1))
    return float(free.max())


@pytest.mark.parametrize("case", CASES)
def test_it_says_what_bursts_served_in_order_take(case):
    name, sends = CASES[case]
    machine = MACHINES[name]
    ways, bandwidth = routes(machine, sends)
    service = BURST / bandwidth / 1e9
    took = median(simulated(sends, ways, service, seed) for seed in range(3))
    sent = fill_links(phase_of(machine, sends), loads_of(machine, sends))
    fluid = (sent.load / bandwidth[sent.link]).max() / 1e9
    assert fluid <= took * (1 + 1e-9)
    assert fluid + sent.queues(bandwidth, BURST).excess() == pytest.approx(took, rel=0.06)


positive = st.floats(1e-3, 10)
links = st.lists(st.tuples(positive, positive, positive), min_size=1, max_size=6).map(
    lambda rows: Queues(*np.array(rows).T)
)


@given(links, st.floats(0.05, 0.95))
def test_the_share_of_orders_is_met(queues, share):
    x = queues.excess(share)
    ends = np.prod(1 - queues.beyond(x))
    assert x >= 0
    assert ends >= share - 1e-4
    if x > 1e-6:
        assert ends == pytest.approx(share, abs=1e-3)


@given(links, st.floats(0.05, 0.9))
def test_more_of_anything_takes_longer(queues, share):
    now = queues.excess(share) * (1 - 1e-6)
    assert queues.excess(share + 0.05) >= now
    assert queues._replace(variance=queues.variance * 2).excess(share) >= now
    assert queues._replace(idle=queues.idle / 2).excess(share) >= now
    assert queues._replace(ahead=queues.ahead / 2).excess(share) >= now
    twice = Queues(*(np.tile(column, 2) for column in queues[:3]))
    assert twice.excess(share) >= now


def test_random_orders_of_one_link_cross_as_often_as_the_formula_says():
    """400 bursts of a link among 3600 others that arrive in between."""
    rng, late = np.random.default_rng(5), []
    for _ in range(400):
        arrivals = np.sort(rng.choice(4000, 400, replace=False)) / 4000
        late.append((arrivals + (400 - np.arange(400)) / 400).max() - 1)
    one = Filled(np.array([0]), np.array([400.0]), np.array([0.9]), None, 1.0)
    queues = one.queues(np.array([400e-9]), 1.0)
    for share in (0.3, 0.5, 0.8):
        assert queues.excess(share) == pytest.approx(np.quantile(late, share), rel=0.15)


def test_what_a_node_sends_one_way_does_not_queue():
    machine = MACHINES["torus"]
    sends = [(0, 1, 50)]
    assert fill_links(phase_of(machine, sends), loads_of(machine, sends)).mixed.max() == 0


def test_small_bursts_flow():
    fine = nidmap.load_machine("minicray:torus,burst=1")
    plain = nidmap.load_machine("torus:3x3x2,x=9.375,y=4.6875,z=9.375,injection=10.4")
    times = [
        time_of(
            Predictor(with_figures(one, latency=0), Job("alltoall", 1, 1e6, algorithm="")),
            np.arange(12),
        )
        for one in (fine, plain)
    ]
    assert times[0] == pytest.approx(times[1], rel=1e-3)


def test_a_prediction_says_that_queues_bind():
    found = predict(
        with_figures(MACHINES["torus"], latency=0, process=np.inf),
        "0-11",
        Job("alltoall", bytes=1e5),
    )
    assert found.binds == found.phases[0].transfer == "queues"
    assert "queues bind" in found.sentence
    assert found.time_s > found.bottleneck.seconds
    plain = predict(with_figures(MACHINES["large"], latency=0), "#0-11", Job("alltoall", bytes=1e5))
    assert plain.binds == "link"


def test_many_ways_of_a_packet_have_no_queues():
    machine = MACHINES["dragonfly"]
    asked = Predictor(with_figures(machine, latency=0), Job("alltoall", 1, 1e5, algorithm=""))
    assert not asked.queueing
    assert Predictor(
        with_figures(machine, routing="single", latency=0), Job("alltoall", 1, 1e5, algorithm="")
    ).queueing


def test_the_order_of_bursts_is_unknown():
    stated = with_figures(MACHINES["torus"], process=np.inf, latency=0)
    asked = Predictor(stated, Job("alltoall", 1, 1e5, algorithm="at-once"))
    found = time_range(asked, asked.place(np.arange(12)))
    (one,) = found.unknowns
    assert one.name == "queues"
    assert found.likely == pytest.approx(asked.time(asked.place(np.arange(12))))
    assert found.low < found.likely < found.high
    gain = Gains(asked, asked.place(np.arange(12))).of(asked.place(np.arange(6, 18)))
    (one,) = gain.unknowns
    assert one.low < gain.likely < one.high


@pytest.mark.parametrize("text", ["0", "-1", "2.5", "x"])
def test_a_burst_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="burst"):
        nidmap.load_machine(f"torus:4x4,burst={text}")
