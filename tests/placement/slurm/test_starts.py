# SPDX-License-Identifier: Apache-2.0
"""What pinning costs: the expected start with a list and without, asked of a real Slurm."""

import time
from datetime import datetime, timezone

import numpy as np
import pytest

from nidmap.placement.emit import HeaderJob
from nidmap.placement.errors import LaunchError, UsageError
from nidmap.placement.nodelist import NodeList
from nidmap.placement.planners import Request, find
from nidmap.placement.slurm.nodes import free_nodes
from nidmap.placement.slurm.starts import (
    ExpectedStart,
    PlanCheck,
    _span_text,
    check_plan,
    expected_start,
)
from nidmap.placement.specs import parse_spec
from tests.placement.slurm.test_nodes import says
from tests.real_slurm import needs_slurm, real_slurm

NAMES = [f"nid{i:05d}" for i in range(1200)]


def pinned(names, **options):
    return HeaderJob(len(names), nodelist=NodeList(names), **options)


@pytest.fixture(scope="module")
def large():
    """Return 1,200 configured nodes, one of them with a slurmd."""
    with real_slurm(NAMES, real=1, partitions={"main": NAMES, "sub": NAMES[:100]}) as slurm:
        yield slurm


@pytest.fixture
def asked(large, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", large.env["SLURM_CONF"])
    monkeypatch.setenv("SBATCH_PARTITION", "nope")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    large.free()
    yield large
    monkeypatch.undo()
    time.tzset()


@needs_slurm
@pytest.mark.parametrize("strategy", ["slurm-none", "slurm-tree", "slurm-dragonfly"])
@pytest.mark.parametrize("count", [216, 600])
def test_lists_of_the_planners_are_taken(asked, strategy, count):
    machine = parse_spec("dragonfly:groups=4,chassis=6,blades=16,nodes=4")
    asked.drain(NAMES[10::7])
    free = np.zeros(len(machine), dtype=bool)
    free[: len(NAMES)] = True
    free[10 : len(NAMES) : 7] = False
    assert np.array_equal(free_nodes().free, free[: len(NAMES)])
    rows = find(strategy)(machine, Request(count=count, free=free))
    names = machine.names[rows].tolist()
    found = check_plan(pinned(names))
    assert set(found.pinned.nodes) == set(names)
    assert len(found.unpinned.nodes) == count
    assert (found.pinned.seconds, found.unpinned.seconds) == (0.0, 0.0)
    assert "on these nodes the job would start at once" in found.sentence()


@needs_slurm
def test_scattered_names_longer_than_an_argument_may_be(asked):
    found = expected_start(pinned(NAMES[::2]))
    assert set(found.nodes) == set(NAMES[::2])


@needs_slurm
def test_a_list_of_busy_nodes_waits_for_them(asked):
    asked.run(["salloc", "--no-shell", "-N10", "--exclusive", "-t120", "-w", "nid[00020-00029]"])
    found = check_plan(pinned(NAMES[25:35]))
    assert found.unpinned.seconds == 0.0
    assert 7000 < found.pinned.seconds <= 7260
    assert abs((found.pinned.start - datetime.now(timezone.utc)).total_seconds() - 7200) < 120
    document = found.document()
    assert document["delay_seconds"] == pytest.approx(7200, abs=120)
    assert document["pinned"]["start"].endswith("Z")
    local = found.pinned.start.astimezone()
    assert local.utcoffset().total_seconds() == 9 * 3600
    assert f"({local:%Y-%m-%d %H:%M})" in found.sentence()
    assert found.sentence().endswith("on any nodes it would start at once")


@needs_slurm
@pytest.mark.parametrize(
    ("nodes", "options", "reason"),
    [
        (["nope1"], {}, "Invalid node name"),
        (NAMES[200:202], {"partition": "sub"}, "configuration is not available"),
        (NAMES[:2], {"partition": "nope"}, "Invalid partition name"),
        (NAMES[:2], {"constraint": "tpu"}, "Invalid feature"),
        (NAMES[:2], {"reservation": "nope"}, "reservation is invalid"),
    ],
)
def test_what_slurm_refuses_is_an_answer(asked, nodes, options, reason):
    found = check_plan(pinned(nodes, **options))
    assert found.pinned.start is None
    assert reason in found.pinned.refused
    assert found.document()["delay_seconds"] is None
    assert "would never start: Slurm refuses it" in found.sentence()


@needs_slurm
def test_an_option_cannot_smuggle_another(asked):
    found = expected_start(HeaderJob(1, partition="main --nodes=7"))
    assert found.start is None


@pytest.mark.parametrize("value", ["", "a\nb", "\x1b[31m"])
def test_options_that_are_no_name(value):
    with pytest.raises(UsageError):
        expected_start(HeaderJob(1, partition=value))


@pytest.mark.parametrize(
    "text",
    [
        "", "junk", "sbatch: Job 1 to start at yesterday using 1 processors on nodes n1 in main",
        "sbatch: Job 1 to start at N/A using 1 processors on nodes n1 in partition main",
        "sbatch: Job 1 to start at 2026-11-21T11:00:00 using 1 processors on nodes n[1- in x",
    ],
)  # fmt: skip
def test_answers_that_are_none(fake, text):
    says(fake, text, "sbatch")
    with pytest.raises(LaunchError) as caught:
        expected_start(HeaderJob(1))
    assert str(caught.value).isprintable()


def test_a_failure_without_a_reason(fake):
    fake("exit 7", "sbatch")
    with pytest.raises(LaunchError, match="sbatch --test-only said 'nothing'"):
        expected_start(HeaderJob(1))


def test_a_refusal_is_printable(fake):
    fake("printf 'allocation failure: \\033[31mno\\n' >&2; exit 1", "sbatch")
    assert expected_start(HeaderJob(1)).refused == "\\x1b[31mno"


def test_a_start_in_the_past_is_at_once(fake):
    says(fake, "sbatch: Job 1 to start at 2020-01-01T00:00:00 using 1 processors on nodes n1 "
         "in partition main\n", "sbatch")  # fmt: skip
    found = expected_start(HeaderJob(1))
    assert (found.seconds, found.partition, list(found.nodes)) == (0.0, "main", ["n1"])


def test_words():
    soon = ExpectedStart(datetime(2030, 1, 1, tzinfo=timezone.utc), 3600.0)
    never = ExpectedStart(None, float("nan"), refused="no")
    assert PlanCheck(soon, never).document()["delay_seconds"] is None
    assert soon.words().startswith("would start in 1 h 0 min (20")


def test_span_text():
    assert _span_text(90) == "2 min"
    assert _span_text(7260) == "2 h 1 min"
    assert _span_text(200000) == "2 d 7 h"
