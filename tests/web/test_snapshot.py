# SPDX-License-Identifier: Apache-2.0
"""What changes: states of nodes and the jobs on them, as of one moment."""

from dataclasses import replace

import numpy as np
import pytest

from nidmap.placement.planners import Request
from nidmap.placement.scheduler.baseline import baseline_of, scheduler_choice
from nidmap.placement.specs import parse_spec
from nidmap.web import figures, requests
from nidmap.web.snapshot import _KINDS, _kind_of, _mask_names, of_dump


def test_kind_of():
    assert [
        _KINDS[_kind_of(word)] for word in ("idle", "idle*", "mixed+", "down*", "drained", "")
    ] == ["free", "held", "busy", "down", "held", "held"]


def test_mask_names():
    assert _mask_names("Alice-run7", ["alice"]) == "…-run7"
    assert _mask_names("run7", ["alice"]) == "run7"
    assert _mask_names("standard_a", ["a"]) == "standard_…"


@pytest.mark.parametrize("version", ["25.11.1", "26.05.5"])
def test_page_and_plans_take_the_default_of_the_slurm_that_runs(version):
    machine = parse_spec("tree:4x2,bw=1")
    baseline = baseline_of(machine, config={"SLURM_VERSION": version})
    states = np.array(["idle" if row in (1, 2, 3, 5) else "allocated" for row in range(8)])
    now = replace(of_dump(machine), state=states, baseline=baseline)
    offer = now.offer(machine)
    taken = scheduler_choice(machine, Request(1, offer.candidates, baseline=baseline)).tolist()
    described = figures.describe(machine, offer, requests.Describe("#5", ppn=2))
    assert (described.default.rows, described.default.words) == (taken, baseline.words)
    compared = figures.compare(machine, offer, requests.Compare(1, strategies=["compact"]))
    (default,) = (row for row in compared["rows"] if row["default"])
    assert default["node_rows"] == taken
