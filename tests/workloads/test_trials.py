# SPDX-License-Identifier: Apache-2.0
"""What the programs of ``nidmap bench`` share: a trial, its phases, and its memory limit."""

from nidmap.workloads.trials import Phases, read_extents


def test_read_extents():
    assert read_extents("8x1x6", "size", "e.g. 8x8x8") == (8, 1, 6)


def test_phases():
    phases = Phases()
    with phases("LocalSort1"):
        pass
    assert list(phases.seconds) == ["LocalSort1"]
