"""Ranks that are followed from step to step, against what can be said by hand."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

import nidmap
from nidmap.placement.errors import UsageError
from nidmap.placement.network import channels
from nidmap.placement.options import with_figures
from nidmap.placement.placement import Placement
from nidmap.placement.specs import MINICRAY_BURST
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.gain import Gains
from nidmap.rankmap.predict.phase import Phase, Sends
from nidmap.rankmap.predict.placement_times import MOST_EAGER
from nidmap.workloads.minicray import following
from nidmap.workloads.minicray.following import MOST_PACKETS, Course, Stretch, Ways, ranks_course
from nidmap.workloads.minicray.net import HEADER, MTU, segment_bytes

TORUS = nidmap.load_machine("minicray:torus")
PACKET = 1.0
GBS = 1e-9  # a packet a second


def whole(step, a, b, size, there, back, ranks, head=0):
    """Return a course in one stretch, of messages that both ranks wait for in their step."""
    sends = Sends(step, a, b, size * PACKET, step, step, step)
    stretch = Stretch(sends, there, back, size * PACKET, size, head)
    return Course([stretch], ranks, 2 * PACKET, 5)


def ways_by(*links):
    """Return ways over the links of each message, column by column."""
    rows = np.stack([*links, np.full(len(links[0]), -1)], axis=1)
    return Ways(np.arange(len(rows)) * rows.shape[1], rows.ravel())


def ends(sends, ranks, head=0, eager=0.0):
    """Return the seconds of messages (step, from, to, packets), each rank on a node of its own."""
    step, a, b, size = (np.array(column) for column in zip(*sends, strict=True))
    there, back = (ways_by(*links) for links in ((a, ranks + b), (b, ranks + a)))
    return whole(step, a, b, size, there, back, ranks, head).seconds(np.full(2 * ranks, GBS), eager)


def followed(sends, ranks, eager):
    """Return the seconds of messages where every rank has a link of its own to each other one."""
    step, a, b, size = (np.array(column) for column in zip(*sends, strict=True))
    there, back = (ways_by(links) for links in (a * ranks + b, b * ranks + a))
    return whole(step, a, b, size, there, back, ranks).seconds(np.full(ranks**2, GBS), eager)


def by_hand(sends, ranks, eager):
    """Return the same, step by step: when each rank begins it, and until when links are busy."""
    begins, busy = [0.0] * ranks, defaultdict(float)
    for step in range(max(one[0] for one in sends) + 1):
        now = [one for one in sends if one[0] == step]
        there = {}
        for _, a, b, size in now:
            there[a, b] = busy[a, b] = max(begins[a], busy[a, b]) + size
        further = list(begins)
        for _, a, b, size in now:
            further[b] = max(further[b], there[a, b])
            if size > eager:  # the receiver answers in this step, behind its own data
                answer = max(there[a, b], begins[b], busy[b, a])
                further[a] = max(further[a], answer)
        begins = further
    return max(begins)


@pytest.mark.parametrize("eager", [0, 250, 1000])
@pytest.mark.parametrize("seed", [0, 4, 9, 23])
def test_ranks_take_what_they_take_by_hand_eager_or_not(seed, eager):
    rng = np.random.default_rng(seed)
    ways = [(s, a, b) for s in range(5) for a in range(5) for b in range(5) if a != b]
    sends = [(*way, int(rng.integers(100, 400))) for way in ways if rng.random() < 0.2]
    assert followed(sends, 5, eager) == pytest.approx(by_hand(sends, 5, eager), abs=10)


@pytest.mark.parametrize("eager", [0, 250])
def test_numba_or_none_ranks_take_exactly_as_long(monkeypatch, eager):
    rng = np.random.default_rng(7)
    ways = [(s, a, b) for s in range(5) for a in range(5) for b in range(5) if a != b]
    sends = [(*way, int(rng.integers(100, 400))) for way in ways if rng.random() < 0.5]
    here = ends(sends, 5, eager=eager)
    monkeypatch.setattr(following, "numba_installed", lambda: False)
    for name in ("_run_links", "_go_on", "_take_message"):
        compiled = getattr(following, name)
        monkeypatch.setattr(following, name, getattr(compiled, "py_func", compiled))
    assert ends(sends, 5, eager=eager) == here


def test_a_sender_waits_for_no_receiver_of_an_eager_message():
    sends = [(0, 0, 1, 1), (0, 1, 3, 500), (1, 0, 2, 300)]
    assert ends(sends, 4) == pytest.approx(800, abs=6)
    assert ends(sends, 4, eager=1) == pytest.approx(500, abs=6)


def test_a_message_takes_what_its_packets_take_behind_each_other():
    assert ends([(0, 0, 1, 1000)], 2) == pytest.approx(1000, abs=4)


def test_messages_to_one_rank_share_its_link():
    assert ends([(0, 0, 2, 500), (0, 1, 2, 500)], 3) == pytest.approx(1000, abs=4)


def test_steps_of_a_rank_follow_each_other():
    assert ends([(0, 0, 1, 500), (1, 0, 2, 500)], 3) == pytest.approx(1000, abs=6)


def test_ranks_that_have_nothing_to_do_with_a_step_do_not_wait_for_it():
    assert ends([(0, 0, 1, 500), (1, 2, 3, 700)], 4) == pytest.approx(700, abs=4)


def test_an_acknowledgement_queues_behind_its_receivers_data():
    first = [(0, 0, 1, 1), (0, 1, 3, 500)]
    assert ends([*first, (1, 0, 2, 300)], 4) == pytest.approx(800, abs=6)
    other = [(0, 0, 2, 1), (0, 1, 3, 500)]  # a receiver that sends nothing answers at once
    assert ends([*other, (1, 0, 2, 300)], 4) == pytest.approx(500, abs=6)


def test_a_message_waits_for_its_receiver_to_come_to_its_step():
    sends = [(0, 1, 3, 500), (1, 0, 1, 1), (2, 0, 2, 300)]
    assert ends(sends, 4) == pytest.approx(800, abs=6)


def test_what_comes_before_is_taken_off():
    sends = [(0, 0, 1, 500), (1, 0, 2, 300)]
    assert ends(sends, 3, head=1) == pytest.approx(300, abs=6)


@pytest.mark.parametrize(
    ("pattern", "algorithm"),
    [
        ("alltoall", "pairwise"), ("alltoall", "at-once"), ("fft:2x4", "pairwise"),
        ("stencil:2x4,staged", ""), ("allgather", "ring"), ("bcast", "binomial"),
    ],
)  # fmt: skip
def test_a_prediction_follows_ranks_and_is_no_shorter_than_the_busiest_link(pattern, algorithm):
    one = Predictor(
        with_figures(TORUS, routing="single", latency=0), Job(pattern, 1, 5e4, algorithm=algorithm)
    )
    rows = np.array([0, 1, 2, 3, 4, 5, 6, 17])
    found = one.predict(one.place(rows))
    assert found.time_s == one.time(one.place(rows))
    one.follows = False
    links = [phase.loads.seconds().max() for phase in one.predict(one.place(rows)).phases]
    assert found.time_s >= max(links) * (1 - 1e-9)
    assert found.time_s != one.time(one.place(rows))


def test_phases_that_no_barrier_parts_may_overlap():
    rows = np.array([7, 2, 9, 6, 23, 20, 19, 21, 4, 11, 14, 13])
    machine = nidmap.load_machine("minicray:dragonfly")
    one = Predictor(
        with_figures(machine, routing="single", latency=0),
        Job("allreduce", 1, 4e5, algorithm="rabenseifner"),
    )
    found = one.predict(one.place(rows))
    least = [phase.loads.seconds().max() for phase in found.phases]
    took = [phase.bandwidth_s for phase in found.phases]
    assert sum(took) == pytest.approx(found.time_s)
    assert took[0] >= least[0]
    assert any(time < link for time, link in zip(took, least, strict=True))


def test_what_cannot_be_followed_is_as_long_as_its_steps():
    rows = np.arange(8)
    long = Predictor(
        with_figures(TORUS, latency=0), Job("alltoall", 1, 1e4 * MOST_PACKETS, algorithm="pairwise")
    )
    fluid = nidmap.load_machine("torus:3x3x2")
    for one in (
        long,
        Predictor(with_figures(fluid, latency=0), Job("alltoall", 1, 5e4, algorithm="pairwise")),
    ):
        before = one.time(one.place(rows))
        one.follows = False
        assert one.time(one.place(rows)) == before


def test_a_gain_is_likely_that_of_ranks_that_are_followed():
    one = Predictor(
        with_figures(TORUS, routing="single", latency=0),
        Job("alltoall", 1, 5e4, algorithm="pairwise"),
    )
    slurm, own = np.array([0, 1, 2, 3, 4, 5, 6, 17]), np.array([0, 1, 3, 4, 9, 10, 12, 13])
    found = Gains(one, one.place(slurm)).of(one.place(own))
    assert found.likely == pytest.approx(one.time(one.place(slurm)) / one.time(one.place(own)))
    assert found.low < found.likely < found.high


def with_limit(eager):
    """Return the torus that states up to how many bytes its MPI sends eagerly."""
    known = {**TORUS.topology.parameters, "eager": eager}
    return replace(TORUS, topology=replace(TORUS.topology, parameters=known), _cache={})


def test_whether_messages_are_eager_is_an_unknown_where_they_are_small_and_nothing_states_it():
    slurm, own = np.array([0, 1, 2, 3, 4, 5, 6, 17]), np.array([0, 1, 3, 4, 9, 10, 12, 13])
    gains = {}
    for name, machine, size in (
        ("unknown", TORUS, 5e4), ("large", TORUS, 1.01 * MOST_EAGER),
        ("eager", with_limit(MOST_EAGER), 5e4), ("never", with_limit(0.0), 5e4),
    ):  # fmt: skip
        one = Predictor(
            with_figures(machine, routing="single", latency=0),
            Job("alltoall", 1, size, algorithm="pairwise"),
        )
        gains[name] = Gains(one, one.place(slurm)).of(one.place(own))
        assert gains[name].likely == pytest.approx(
            one.time(one.place(slurm)) / one.time(one.place(own))
        )
    (unsure,) = [one for one in gains["unknown"].unknowns if one.name == "eager"]
    both = sorted([gains["eager"].likely, gains["never"].likely])
    assert [unsure.low, unsure.high] == pytest.approx(both)
    assert gains["unknown"].likely == gains["never"].likely
    for name in ("large", "eager", "never"):
        assert "eager" not in [one.name for one in gains[name].unknowns]


@pytest.mark.parametrize("text", ["0", "-1", "2.5", "x"])
def test_a_burst_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="burst"):
        nidmap.load_machine(f"torus:4x4,burst={text}")


def halo(size, passes):
    """Return a phase of passes of a ring there and back between the first six nodes."""
    ranks = np.arange(6)
    sends = Sends.of((k, ranks, np.roll(ranks, 1 - 2 * k), size) for k in range(2))
    placement = Placement.on_rows(TORUS, ranks, np.ones(6, dtype=np.int64))
    sent = Traffic.of(sends.source, sends.target, sends.size * passes)
    return Phase("halo", placement, sent, sends=lambda: sends, passes=float(passes))


def passes_take(size, passes):
    """Return the seconds of passes on links of 1 GB/s."""
    found = ranks_course(halo(size, passes), "single", len(channels(TORUS)), MINICRAY_BURST)
    return found.seconds(np.ones(len(channels(TORUS)) + 2 * len(TORUS)))


def test_many_small_passes_take_what_their_bytes_do():
    """Links that were idle let 9 kB pass at once: as much as eight passes of a rank's message."""
    many = passes_take(1000.0, 400)
    wire = 400 * (1000 + 2 * HEADER * (1 - 1000 / segment_bytes(MTU))) / 1e9
    assert wire * (1 - 1e-9) <= many <= 2.5 * wire


def test_a_short_message_costs_its_headers():
    short, full = (passes_take(size, 400) for size in (8.0, float(segment_bytes(MTU))))
    assert short / full == pytest.approx((8 + 2 * HEADER) / segment_bytes(MTU), rel=0.2)
