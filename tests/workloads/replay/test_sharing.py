# SPDX-License-Identifier: Apache-2.0
"""Times of jobs that share links, against sums by hand and against the predictor."""

import numpy as np
import pytest

import nidmap
from nidmap.placement.errors import UsageError
from nidmap.rankmap.predict import Job, Predictor
from nidmap.workloads.replay.engine import Replay
from nidmap.workloads.replay.scheduler import Rules
from nidmap.workloads.replay.sharing import Application, Network, Sharing
from tests.workloads.replay.test_scheduler import trace_of

#: Two leaves of four nodes, one link of 1 GB/s up from each; nodes have 1 GB/s too.
FABRIC = "fattree:leaf=4,leaves=2,spines=1,bw=1,latency=0"
EXCHANGE = Application("alltoall", 1, 1e9, 0.5)


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


def test_a_neighbour_takes_its_part_of_a_link_but_no_more_than_a_fair_share(network):
    sharing = Sharing(network)
    first = network.footprint(EXCHANGE, np.array([0, 1, 4, 5]))
    second = network.footprint(EXCHANGE, np.array([2, 3, 6, 7]))
    sharing.add(1, first, 0.05)  # 4 GB a round: 0.2 GB/s
    assert sharing.slowdown(second) == pytest.approx(4 / 0.8 / 3)
    sharing.add(2, second, 10.0)  # would like 40 GB/s, and has half
    assert sharing.slowdowns() == pytest.approx([4 / 0.5 / 3, 4 / 0.8 / 3])
    assert sharing.remove(2)
    assert sharing.slowdowns() == pytest.approx([4 / 3])
    assert not sharing.remove(2)


def test_what_is_added_and_taken_away_leaves_nothing(network):
    sharing = Sharing(network)
    for k in range(50):
        sharing.add(k, network.footprint(EXCHANGE, np.array([0, 4 + k % 4])), 0.1 * k)
    for k in range(50):
        sharing.remove(k)
    assert not sharing.rate.any()
    assert not sharing.users.any()


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
    app = Application(pattern, 1, 1e9, 0.5)
    model = Predictor(network.machine, Job(pattern, 1, 1e9, "at-once"))
    for rows in ([0, 1, 4, 5], [0, 1, 2, 3], [1, 2, 5, 6], [1, 3, 5, 7]):
        footprint = network.footprint(app, np.array(rows))
        seconds = Sharing(network).slowdown(footprint) * footprint.best
        assert seconds == pytest.approx(model.time(model.place(np.array(rows))), rel=0.01)


def test_a_job_ends_later_by_what_its_neighbour_costs_while_it_runs(network):
    """Two jobs lie across both leaves, the second in what a third has left; sums by hand."""
    apps = [Application("alltoall", 1, 1e9, 0.5)] * 3
    trace = trace_of([(0, 10, 900, 2), (0, 100, 900, 4), (20, 50, 900, 4)])
    machine = network.machine
    outcome = Replay(machine, trace, "none", Rules("easy"), machine.compute, apps).run()
    assert outcome.rows.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 6, 7]

    def pace(left):  # 4 GB over the link up from each leaf; 3 s on the best nodes
        return 0.5 + 0.5 * (4 / left) / 3

    alone = pace(1.0)
    third = pace(max(1 - 4 * 0.5 / (3 * alone), 0.5))
    beside = pace(1 - 4 * 0.5 / (3 * third))
    third_end = 20 + 50 * third
    left = 100 - 20 / alone - (third_end - 20) / beside
    assert outcome.end == pytest.approx([10, third_end + left * alone, third_end], rel=2e-3)
    assert outcome.slowdown[1:] == pytest.approx([4 / 3, 2 * (third - 0.5)])


def test_without_bandwidths_nothing_can_be_said():
    with pytest.raises(UsageError, match="no time can be told") as error:
        Network(nidmap.load_machine("tree:4x4"))
    assert "--shares 0 --policies slurm,tree" in str(error.value.hint)
