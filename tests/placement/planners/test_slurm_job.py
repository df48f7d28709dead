# SPDX-License-Identifier: Apache-2.0
"""Planner ``slurm-none``: Slurm's choice without a topology; shared parts of ``slurm-…``."""

import numpy as np

from nidmap.placement.planners import Request
from nidmap.placement.planners.slurm_job import slurm_none
from nidmap.placement.specs import parse_spec


def test_slurm_none():
    machine = parse_spec("tree:4x4x4")
    free = np.ones(64, dtype=bool)
    free[[1, 5, 6, 9, 15]] = False
    assert slurm_none(machine, Request(count=4, free=free)).tolist() == [10, 11, 12, 13]
