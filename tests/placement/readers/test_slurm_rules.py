# SPDX-License-Identifier: Apache-2.0
"""What slurmctld rejects in a topology file that still describes a machine."""

from nidmap.placement.readers.slurm_rules import refuse_switch, refuse_units


def test_refuse_switch():
    assert [found.text for found in refuse_switch(1, "s", {"nodes": "n1", "switches": "t"})] == [
        "slurmctld refuses switch s: it has both Nodes and Switches"
    ]


def test_refuse_units():
    assert [found.text for found in refuse_units("block", (), (4, 12), 9)] == [
        "slurmctld refuses block size 12: not the base size 4 times a power of two"
    ]
