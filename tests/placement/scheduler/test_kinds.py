# SPDX-License-Identifier: Apache-2.0
"""Kinds of nodes: a job gets nodes that are alike, whoever chooses them."""

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest

from nidmap.placement.commands import run as nidmap
from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.load import load_machine
from nidmap.placement.plan import plan
from nidmap.placement.planners import PREDICTING, fitting_planners
from nidmap.placement.scheduler.baseline import baseline_of, best_exclusion
from nidmap.placement.scheduler.kinds import (
    ANY,
    _plain_features,
    kinds_of,
    of_one_kind,
    of_same_kinds,
    offered,
)
from nidmap.placement.specs import parse_spec


@pytest.fixture(scope="module")
def lumi():
    return load_machine("lumi")


def machine_with(**columns):
    """Return 32 nodes with some columns of their own."""
    machine = parse_spec("dragonfly:groups=4,chassis=1,blades=4,nodes=2")
    return replace(machine, _cache={}, **{k: np.array(v) for k, v in columns.items()})


def test_every_strategy_takes_nodes_of_one_kind(lumi):
    for strategy in fitting_planners(lumi):
        if strategy not in PREDICTING:
            chosen = plan(lumi, 200, strategy=strategy)
            assert len(np.unique(lumi.gpus[chosen.rows])) == 1, strategy
            assert set(lumi.gpus[_default_rows(lumi, chosen)]) == {8}


def _default_rows(machine, chosen):
    from nidmap.placement.lookup import rows_of

    return rows_of(machine, chosen.facts["default"]["nodelist"])


def test_a_kind_is_named_or_mixed_on_request(lumi):
    assert set(lumi.gpus[plan(lumi, 64, kind="gpus=0").rows]) == {0}
    assert set(lumi.gpus[plan(lumi, 64, strategy="spread", kind="any").rows]) == {0, 8}
    assert set(lumi.gpus[plan(lumi, 64, include=[0]).rows]) == {0}
    with pytest.raises(UsageError, match="unknown kind of nodes 'gpus=9'; choose from gpus=8"):
        plan(lumi, 64, kind="gpus=9")
    with pytest.raises(PlanError, match="3000 nodes of one kind wanted, but only 2978 of gpus=8"):
        plan(lumi, 3000)


def test_the_kind_with_enough_free_nodes_is_taken(lumi):
    free = lumi.free & ((lumi.gpus == 0) | (np.arange(len(lumi)) % 100 == 0))
    chosen = plan(lumi, 64, candidates=free)
    assert set(lumi.gpus[chosen.rows]) == {0}
    assert any("gpus=0 are used" in warning for warning in chosen.warnings)


def test_features_and_cores_make_kinds_but_labels_of_places_do_not():
    half = np.arange(32) < 16
    assert kinds_of(machine_with(features=np.where(half, "a100", "h100"))).names == (
        "features=a100",
        "features=h100",
    )
    both = machine_with(gpus=np.where(half, 4, 0), cores=np.where(np.arange(32) < 8, 64, 32))
    assert kinds_of(both).names == ("gpus=0,cores=32", "gpus=4,cores=32", "gpus=4,cores=64")
    racks = [f"rack{row}" for row in range(32)]
    assert kinds_of(machine_with(features=racks)).names == ("all",)


def test_a_job_is_held_to_nodes_that_it_could_have_got(lumi):
    rows = np.flatnonzero(lumi.gpus == 8)[:10]
    free = lumi.free.copy()
    free[rows] = False
    instead = offered(lumi, free, rows)
    assert instead[rows].all()
    assert (instead == of_same_kinds(lumi, rows)).all()


@pytest.mark.parametrize(
    "line",
    [
        "plan -m lumi -N 300 --strategy blades --json",
        "compare -m lumi -N 300 --pattern ring --strategies blades,spread --json",
    ],
)
def test_the_commands_keep_kinds_apart(lumi, line, capsysbinary):
    from nidmap.placement.lookup import rows_of

    for more, gpus in (("", {8}), (" --kind gpus=0", {0}), (" --kind any", {0, 8})):
        assert nidmap(shlex.split(line + more)) == 0
        said = json.loads(capsysbinary.readouterr().out)
        lists = [row["nodelist"] for row in said.get("rows", [said])]
        seen = [set(lumi.gpus[rows_of(lumi, text)].tolist()) for text in lists]
        assert gpus in seen
        assert gpus == {0, 8} or all(one == gpus for one in seen)


def test_nodes_that_are_named_may_be_of_several_kinds(lumi, capsysbinary):
    assert nidmap(shlex.split("plan -m lumi -N 4 --from nid[001000-001001,005000-005001]")) == 0
    assert capsysbinary.readouterr().out.decode().strip() == "nid[001000-001001,005000-005001]"


def test_an_exclusion_leads_to_nodes_of_the_plans_kinds_alone():
    machine = parse_spec("tree:4x2")
    machine = replace(machine, gpus=np.arange(8) % 2, _cache={})
    chosen = plan(machine, 2, include=[1, 3], kind=ANY)
    part = best_exclusion(machine, chosen, baseline_of(machine))
    assert np.flatnonzero(part.inside).tolist() == [1, 3]
    assert part.rows.tolist() == [1, 3]


def test_plain_features():
    assert _plain_features("gpu,tier0=a,a100") == "gpu,a100"


def test_of_one_kind():
    import nidmap

    lumi = nidmap.load_machine("lumi")
    mask, note = of_one_kind(lumi, lumi.free, 64, np.empty(0, dtype=np.int64))
    assert int((mask & lumi.free).sum()) == 2978
    assert note == "only nodes of kind gpus=8 are used; --kind takes gpus=8, gpus=0, any"
