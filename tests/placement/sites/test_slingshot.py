# SPDX-License-Identifier: Apache-2.0
"""Slingshot and DragonFly+: partitions of groups, their names, and links between groups."""

from nidmap.placement.sites.schema import Figure, Partition
from nidmap.placement.sites.slingshot import partition_positions


def test_partition_positions():
    def said(value):
        return Figure(value, "assumed", "an example")

    part = Partition(
        name="G",
        groups=said(2),
        group_nodes=said(6),
        group_switches=said(4),
        chassis_nodes=said(4),
        chassis_switches=said(2),
        nics=said(2),
    )
    assert partition_positions(part)["switches"][:6].tolist() == [
        [0, 1],
        [0, 1],
        [1, 0],
        [1, 0],
        [2, 3],
        [2, 3],
    ]
