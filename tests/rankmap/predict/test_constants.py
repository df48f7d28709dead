# SPDX-License-Identifier: Apache-2.0
"""A machine that states no bandwidth at all: copies inside a node are not all that counts."""

import json

import numpy as np

import nidmap
from nidmap.placement.commands import run
from nidmap.placement.network import Demand, loads
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.predict.constants import (
    Constants,
    histogram_s,
    machine_constants,
)
from nidmap.rankmap.predict.phase_cost import hops_by_class


def test_copies_cost_nothing_beside_links_of_unknown_bandwidth():
    assert machine_constants(nidmap.load_machine("tree:4x4")).memory_gbs is None
    assert machine_constants(nidmap.load_machine("tree:4x4,memory=5.0")).memory_gbs == 5.0
    assert machine_constants(nidmap.load_machine("tree:4x4,bw=10")).memory_gbs == 20.0
    assert machine_constants(nidmap.load_machine("shaheen2")).memory_gbs == 20.0


def test_no_gain_is_promised_for_moving_ranks_off_their_nodes(capsys):
    assert (
        run(
            [
                "plan",
                "-m",
                "tree:4x4",
                "-N",
                "8",
                "--ppn",
                "4",
                "--pattern",
                "stencil:8x4",
                "--json",
            ]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["gain"]["high"] < 1.5


def test_hops_by_class():
    m = nidmap.load_machine("torus:5x5")
    d = Demand.of(m, Traffic.of(np.array([0, 0]), np.array([1, 6]), 1.0))
    assert hops_by_class(loads(m, d), d.total) == {"x": 1.0, "y": 0.5}


def test_histogram_s():
    assert round(histogram_s(64, 16, float("inf"), Constants(1.0, 0.0)) * 1e6) == 32
