# SPDX-License-Identifier: Apache-2.0
"""What Slurm's three topology formats share: switches by name, and the tree they form."""

from nidmap.placement.readers.slurm_switches import expand


def test_expand():
    assert expand("n[1-3],m7", "topology.conf", 4, "Nodes") == ("n1", "n2", "n3", "m7")
