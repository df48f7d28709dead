# SPDX-License-Identifier: Apache-2.0
"""Whole segments for ``auto``: replicas stay inside blocks wherever any placement has them so."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.load import load_machine
from nidmap.placement.machine import Machine
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.predict import Job
from nidmap.rankmap.search.segments import KEPT

BLOCKS = """
BlockName=b1 Nodes=n[00-05]
BlockName=b2 Nodes=n[06-11]
BlockName=b3 Nodes=n[12-17]
BlockName=b4 Nodes=n[18-23]
BlockSizes=6
"""


@pytest.fixture(scope="module")
def blocks(tmp_path_factory) -> Machine:
    path = tmp_path_factory.mktemp("blocks") / "topology.conf"
    path.write_text(BLOCKS)
    return load_machine(str(path))


def inside(plan, replica, ppn):
    """Return whether every replica is in one block of six nodes."""
    block = plan.rows[plan.order.slot_of_rank // ppn] // 6
    return all(len(set(block[replica == one].tolist())) == 1 for one in set(replica.tolist()))


JOBS = [
    (1, "training:tp=2,pp=2,dp=3"),
    (2, "training:tp=2,pp=2,dp=4"),
    (2, "training:tp=2,pp=3,dp=4"),
    (2, "training:tp=1,pp=2,dp=8,ep=4"),
    (2, "training:tp=4,pp=4,dp=2"),
    (4, "training:tp=2,pp=3,dp=4"),
]


@pytest.mark.parametrize(("ppn", "text"), JOBS)
@given(busy=st.sets(st.integers(0, 23), max_size=16))
@settings(deadline=None, max_examples=4)
def test_replicas_stay_inside_a_block_wherever_any_placement_has_them_there(
    blocks, ppn, text, busy
):
    pattern = parse_pattern(text)
    count = math.ceil(pattern.ranks / ppn)
    if pattern.ranks % ppn or count > 24 - len(busy):
        return
    free = np.bincount(np.setdiff1d(np.arange(24), sorted(busy)) // 6, minlength=4)
    kept = None
    for axes in KEPT:
        replica = pattern.replicas(axes)
        size = math.lcm(int(np.bincount(replica).max()), ppn) // ppn
        if (free // size).sum() * size >= count:
            kept = replica
            break
    words = {"job": Job(text, ppn), "segment": 0, "exclude": busy, "deadline": 0.05}
    if kept is None:
        with pytest.raises(PlanError, match="segment"):
            nidmap.plan(blocks, count, strategy="auto", **words)
        return
    plan = nidmap.plan(blocks, count, strategy="auto", **words)
    assert inside(plan, kept, ppn)


def test_what_stays_inside_is_said(blocks):
    plan = nidmap.plan(
        blocks, 8, job=Job("training:tp=4,pp=2,dp=4", ppn=4), segment=0, deadline=0.1
    )
    assert any("tp, ep, pp inside one" in text for text in plan.warnings)
    assert np.bincount(plan.rows // 6).max() % 2 == 0
    larger = Job("training:tp=4,pp=8,dp=1", ppn=4)
    plan = nidmap.plan(blocks, 8, job=larger, segment=0, deadline=0.1)
    assert any("tp, ep inside one" in text for text in plan.warnings)


def test_auto_keeps_segments_of_a_stated_size(blocks):
    plan = nidmap.plan(blocks, 9, job=Job("ring"), segment=3, exclude=[0], deadline=0.1)
    assert set(np.bincount(plan.rows // 6).tolist()) <= {0, 3, 6}


def test_segment_auto_needs_a_training_pattern(blocks):
    with pytest.raises(UsageError, match="--segment auto needs --pattern training"):
        nidmap.plan(blocks, 4, job=Job("ring"), segment=0)


def test_blocks_have_links_of_their_own_and_say_so(blocks):
    assert blocks.topology.bandwidth["up0"] == 3600
    assert blocks.links.bandwidth.tolist() == [1200.0] * 4  # six nodes of 200
    assert any("assumed to be NVLink domains" in note for note in blocks.notes)


def test_a_range_looks_at_half_and_twice_of_what_is_assumed_inside_a_node(blocks):
    found = nidmap.predict(blocks, blocks.names[:8].tolist(), Job("training:tp=4,pp=2,dp=4", ppn=4))
    assert found.between.high < 20 * found.between.likely
    (memory,) = [one.question for one in found.between.unknowns if one.name == "memory"]
    assert "3600 GB/s assumed" in memory


def test_figures_laid_over_state_the_links_of_blocks(tmp_path):
    conf, figures = tmp_path / "topology.conf", tmp_path / "figures.toml"
    conf.write_text(BLOCKS)
    figures.write_text(
        "overlay = true\n[bandwidth]\n"
        'up0 = { value = 1800.0, mark = "measured", source = "us" }\n'
        'up1 = { value = 100.0, mark = "measured", source = "us" }\n'
    )
    machine = load_machine(str(conf), str(figures))
    assert machine.topology.bandwidth["up0"] == 1800
    assert machine.links.bandwidth.tolist() == [600.0] * 4  # six nodes of 100
