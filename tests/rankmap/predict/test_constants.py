# SPDX-License-Identifier: Apache-2.0
"""A machine that states no bandwidth at all: copies inside a node are not all that counts."""

import json

import nidmap
from nidmap.placement.commands import run
from nidmap.rankmap.predict.constants import machine_constants


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
