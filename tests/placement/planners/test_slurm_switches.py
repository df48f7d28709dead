# SPDX-License-Identifier: Apache-2.0
"""Planners ``slurm-tree`` and ``slurm-dragonfly``: Slurm's choices on switches."""

import numpy as np

from nidmap.placement.planners import Request
from nidmap.placement.planners.slurm_switches import slurm_dragonfly, slurm_tree
from nidmap.placement.specs import parse_spec


def test_slurm_tree():
    machine = parse_spec("tree:4x4x4")
    free = np.ones(64, dtype=bool)
    free[[1, 5, 6, 9, 15]] = False
    assert slurm_tree(machine, Request(count=8, free=free)).tolist() == [0, 2, 3, 4, 7, 8, 10, 11]


def test_slurm_dragonfly():
    machine = parse_spec("tree:4x4x4")
    free = np.ones(64, dtype=bool)
    free[[1, 5, 6, 9, 15]] = False
    assert slurm_dragonfly(machine, Request(count=8, free=free)).tolist() == [
        0,
        4,
        8,
        12,
        16,
        20,
        24,
        28,
    ]
