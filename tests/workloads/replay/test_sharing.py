# SPDX-License-Identifier: Apache-2.0
"""Times of jobs that share links, against sums by hand and against the predictor."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import nidmap
from nidmap.placement.errors import UsageError
from nidmap.rankmap.predict import Job, Predictor
from nidmap.workloads.replay.engine import Replay
from nidmap.workloads.replay.scheduler import Rules
from nidmap.workloads.replay.sharing import JobTraffic, Network, Sharing, stretches
from tests.workloads.replay.test_scheduler import trace_of

#: Two leaves of four nodes, one link of 1 GB/s up from each; nodes have 1 GB/s too.
FABRIC = "fattree:leaf=4,leaves=2,spines=1,bw=1,latency=0"
EXCHANGE = JobTraffic("alltoall", 1, 1e9, 0.5)


@pytest.fixture(scope="module")
def network():
    return Network(nidmap.load_machine(FABRIC))


def test_alone_a_job_is_as_slow_as_its_busiest_link(network):
    """Four nodes in one leaf: 3 GB each. Two and two: each leaf sends 4 GB over 1 GB/s."""
    sharing = Sharing(network)
    within = network.footprint(EXCHANGE, np.arange(4))
    across = network.footprint(EXCHANGE, np.array([0, 1, 4, 5]))
    assert within.best == pytest.approx(3.0)
    assert sharing.slowdown(within) == pytest.approx(1.0)
    assert sharing.slowdown(across) == pytest.approx(4 / 3)


#: How many others each of two jobs finds on the link up, as their sums by hand: each computes for
#: 3 s a round and has 4 GB for the link, so that q = 4 (1 + q) / (3 + 4 (1 + q)).
FOUND = (73**0.5 - 3) / 8


def test_two_jobs_find_each_other_on_a_link_for_a_part_of_the_time(network):
    sharing = Sharing(network)
    first = network.footprint(EXCHANGE, np.array([0, 1, 4, 5]))
    second = network.footprint(EXCHANGE, np.array([2, 3, 6, 7]))
    assert not sharing.add(1, first, 0.5)
    assert sharing.slowdown(second) == pytest.approx(
        4 / 3 * (1 + 4 / 7)
    )  # 4 of 7 s: before they meet
    assert sharing.add(2, second, 0.5)
    assert sharing.slowdowns() == pytest.approx([4 / 3 * (1 + FOUND)] * 2, rel=1e-3)
    assert sharing.remove(2)
    assert sharing.slowdowns() == pytest.approx([4 / 3], rel=1e-3)
    assert not sharing.remove(2)


def test_jobs_that_do_nothing_but_send_share_a_link_equally(network):
    """The 4 GB of the first take as long as those of both; the second has 1 GB."""
    sharing = Sharing(network)
    sharing.add(1, network.footprint(EXCHANGE, np.array([0, 1, 4, 5])), 1.0)
    assert not sharing.add(2, network.footprint(EXCHANGE, np.array([2, 3])), 1.0)  # other links
    pair = network.footprint(EXCHANGE, np.array([2, 6]))
    sharing.remove(2)
    sharing.add(3, pair, 1.0)
    assert sharing.slowdowns() == pytest.approx([8 / 3, 2.0], rel=1e-3)


def test_what_is_added_and_taken_away_leaves_nothing(network):
    sharing = Sharing(network)
    for k in range(50):
        sharing.add(k, network.footprint(EXCHANGE, np.array([0, 4 + k % 4])), 0.02 * k)
    for k in range(50):
        sharing.remove(k)
    assert not sharing.present.any()
    assert not sharing.users.any()


@st.composite
def job_rates(draw):
    """Draw jobs: links, seconds of each in a round, seconds of computing."""
    jobs = draw(st.integers(1, 6))
    seconds = draw(arrays(float, (jobs, 4), elements=st.floats(0, 1)))
    return seconds, draw(arrays(float, jobs, elements=st.floats(0.01, 2)))


@given(job_rates())
def test_a_link_is_not_busier_than_always_nor_shared_by_more_than_use_it(jobs):
    """The fixed point that `slowdowns` settles in, of jobs with a round of all links in turn."""
    seconds, computes = jobs
    owner, links = np.nonzero(seconds)
    busy, presence = seconds[owner, links], np.zeros(len(owner))
    for _ in range(200):
        stretch = stretches(links, presence, 4)
        rounds = 1 / (computes + np.bincount(owner, busy * stretch, len(computes)))
        presence = np.minimum(busy * stretch * rounds[owner], 1)
    users = np.bincount(links, minlength=4)
    assert (stretch >= 1).all()
    assert (stretch <= users[links] + 1e-9).all()
    assert (np.bincount(links, busy * rounds[owner], 4) <= 1 + 1e-6).all()


@pytest.mark.parametrize(
    "machine",
    [
        FABRIC,
        "torus:4x4,bw=1,latency=0",
        "fattree:leaf=2,leaves=6,spines=3,bw=1,latency=0",
        "minicray:dragonfly",
    ],
)
@pytest.mark.parametrize("pattern", ["alltoall", "stencil:auto"])
def test_alone_it_takes_what_the_predictor_says(machine, pattern):
    """Up to a constant: the seconds of a round against those on the best nodes."""
    network = Network(nidmap.load_machine(machine))
    app = JobTraffic(pattern, 1, 1e9, 0.5)
    model = Predictor(network.machine, Job(pattern, 1, 1e9, "at-once"))
    for rows in ([0, 1, 4, 5], [0, 1, 2, 3], [1, 2, 5, 6], [1, 3, 5, 7]):
        footprint = network.footprint(app, np.array(rows))
        seconds = Sharing(network).slowdown(footprint) * footprint.best
        assert seconds == pytest.approx(model.time(model.place(np.array(rows))), rel=0.01)


def test_a_job_ends_later_by_what_its_neighbour_costs_while_it_runs(network):
    """Two jobs lie across both leaves, the second next to a third for a while; sums by hand."""
    apps = [JobTraffic("alltoall", 1, 1e9, 0.5)] * 3
    trace = trace_of([(0, 10, 900, 2), (0, 100, 900, 4), (20, 50, 900, 4)])
    machine = network.machine
    outcome = Replay(machine, trace, "none", Rules("easy"), machine.compute, apps).run()
    assert outcome.rows.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 6, 7]

    def pace(others):  # 4 GB over the link up from each leaf; 3 s on the best nodes
        return 0.5 + 0.5 * 4 * (1 + others) / 3

    alone, beside = pace(0), pace(FOUND)
    third_end = 20 + 50 * beside
    left = 100 - 20 / alone - (third_end - 20) / beside
    assert outcome.end == pytest.approx([10, third_end + left * alone, third_end], rel=2e-3)
    assert outcome.slowdown[1:] == pytest.approx([4 / 3, 4 / 3 * (1 + 4 / 7)])


def test_without_bandwidths_nothing_can_be_said():
    with pytest.raises(UsageError, match="no time can be told") as error:
        Network(nidmap.load_machine("tree:4x4"))
    assert "--shares 0 --policies slurm,tree" in str(error.value.hint)
