# SPDX-License-Identifier: Apache-2.0
"""Segments: whole, never split over blocks, by every planner, or refused with the reason."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nidmap
from nidmap.placement.commands import run
from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.machine import Switches
from nidmap.placement.planners import find
from nidmap.placement.planners.segments import blocks_of, in_segments
from nidmap.placement.specs import parse_spec
from tests.placement.planners.test_contract import STRATEGIES, fits, requests


def with_blocks(n, size, sizes):
    many = -(-n // size)
    names = tuple(f"b{i}" for i in range(many))
    none, low = np.full(many, -1, dtype=np.int32), np.zeros(many, dtype=np.int32)
    leaf_of = (np.arange(n) // size).astype(np.int32)
    return replace(
        parse_spec(f"tree:{n}"), switches=Switches(names, none, low, leaf_of, "block", sizes)
    )


#: All but the one that leaves segments out where so many a blade do not make one.
ASKED = [name for name in STRATEGIES if name != "blades"]


@pytest.mark.parametrize("strategy", ASKED)
@given(requests(), st.integers(1, 9))
@settings(deadline=None, max_examples=12)
def test_segments_are_whole_wherever_any_placement_has_them_whole(strategy, case, segment):
    machine, request = case
    if not fits(machine, strategy):
        return
    request = replace(request, segment=segment)
    size = min(segment, request.count)
    if request.count % size or not possible(machine, request, size):
        with pytest.raises(PlanError):
            in_segments(machine, request, find(strategy))
        return
    try:
        rows = in_segments(machine, request, find(strategy))
    except PlanError:
        if not strategy.startswith("slurm-"):
            raise  # those may let a job wait
        return
    assert len(set(rows.tolist())) == request.count
    assert request.free[rows].all()
    assert np.isin(request.include, rows).all()
    of = blocks_of(machine, size).of
    assert (of[rows.reshape(-1, size)] == of[rows[::size]][:, None]).all()


def possible(machine, request, size):
    """Return whether any choice of the free nodes has whole segments, the included ones in it."""
    try:
        of = blocks_of(machine, size).of
    except PlanError:
        return False
    room = np.bincount(of[request.free]) // size
    must = -(-np.bincount(of[request.include], minlength=len(room)) // size)
    wanted = request.count // size
    return bool((must <= room).all() and must.sum() <= wanted <= room.sum())


@pytest.mark.parametrize("strategy", ["compact", "spread", "random", "hilbert", "slurm-block"])
def test_36_nodes_where_blocks_have_17_17_14_and_13_free(strategy):
    machine = with_blocks(72, 18, (18, 72))
    busy = [0, 18, *range(36, 40), *range(54, 59)]
    plan = nidmap.plan(machine, 36, strategy=strategy, exclude=busy, segment=12)
    assert sorted(np.bincount(plan.rows // 18, minlength=4).tolist()) == [0, 12, 12, 12]
    assert np.bincount(plan.rows[:12] // 18).max() == 12


def test_a_segment_larger_than_a_block_goes_into_an_aggregated_one():
    machine = with_blocks(32, 4, (4, 8, 16))
    rows = nidmap.plan(machine, 12, strategy="nid-order", segment=6, exclude=[0, 1, 2]).rows
    assert (rows // 8).tolist() == [1] * 6 + [2] * 6  # five are left of the first eight
    assert blocks_of(machine, 9).of[::16].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("count", "segment", "said"),
    [
        (10, 4, "10 nodes are not a multiple of --segment 4"),
        (16, 8, "16 nodes as 2 segments of 8 wanted, none split over a block: there is room for 1"),
        (20, 20, "no block of .* holds a segment of 20 nodes"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(count, segment, said):
    machine = with_blocks(24, 8, (8,))
    with pytest.raises(PlanError, match=said):
        nidmap.plan(machine, count, segment=segment, exclude=[0, 8])


def test_a_switch_is_called_one_where_there_is_no_room():
    with pytest.raises(PlanError, match="split over a level-1 switch: there is room for 4"):
        nidmap.plan(parse_spec("tree:4x4"), 15, segment=3)


def test_included_nodes_in_too_many_blocks_are_refused():
    with pytest.raises(PlanError, match="the included nodes are in 3 blocks"):
        nidmap.plan(with_blocks(24, 8, (8,)), 8, segment=4, include=[0, 8, 16])


def test_no_nodes_make_no_segment():
    with pytest.raises(UsageError, match="segments of 0 nodes"):
        nidmap.plan(parse_spec("tree:4x4"), 4, segment=0)


def test_a_job_smaller_than_its_segment_stays_in_one_block():
    plan = nidmap.plan(parse_spec("tree:4x4"), 3, segment=8, exclude=[0, 1])
    assert len(set((plan.rows // 4).tolist())) == 1


def test_a_header_of_several_segments_excludes_the_other_nodes(tmp_path, capsys):
    path = tmp_path / "topology.conf"
    path.write_text("BlockName=a Nodes=n[1-4]\nBlockName=b Nodes=n[5-8]\nBlockSizes=4\n")
    plan = ["plan", "-m", str(path), "--format", "sbatch", "--strategy", "compact"]
    assert run([*plan, "-N", "6", "--segment", "3"]) == 0
    header = capsys.readouterr().out
    assert "#SBATCH --exclude=n[4,8]\n#SBATCH --segment=3\n" in header
    assert "nodelist" not in header
    assert run([*plan, "-N", "4", "--segment", "4"]) == 0
    assert "#SBATCH --nodelist=n[1-4]\n#SBATCH --segment=4\n" in capsys.readouterr().out
