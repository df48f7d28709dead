# SPDX-License-Identifier: Apache-2.0
"""The contract that every planner is held to: exact count, only free nodes, no node twice …"""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.commands import cli
from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.planners import BUNDLED, Request, find, fitting_planners, names
from nidmap.placement.specs import parse_spec

SPECS = [
    "dragonfly:groups=4,chassis=2,blades=3,nodes=4",
    "dragonfly:groups=5,chassis=1,blades=4,nodes=2,wiring=same-chassis",
    "dragonfly:groups=1,chassis=3,blades=2,nodes=3",
    "slingshot:groups=3,switches=4,nodes=4,nics=2",
    "torus:3x4x2,nodes=2",
    "torus:5x6",
    "torus:7",
    "fattree:leaf=4,leaves=6,spines=2",
    "fattree:down=3x2x4,up=1x2x2",
    "tree:2x3x4",
    "tree:2x3x2x3x2",
    "tree:9",
]


@cache
def machine_of(spec):
    return parse_spec(spec)


def fits(machine, strategy):
    return fitting_planners(machine, [strategy]) == [strategy]


#: The first machine that each planner applies to; none of them has the blocks of a topology.conf.
FIRST = {
    name: next((spec for spec in SPECS if fits(machine_of(spec), name)), None) for name in BUNDLED
}
STRATEGIES = sorted(name for name, spec in FIRST.items() if spec)


@st.composite
def requests(draw):
    """A machine with some nodes taken, and a request that its free nodes can fulfil."""
    machine = machine_of(draw(st.sampled_from(SPECS)))
    taken = draw(st.sets(st.integers(0, len(machine) - 1), max_size=len(machine) - 1))
    free = machine.free.copy()
    free[list(taken)] = False
    rows = np.flatnonzero(free)
    count = draw(st.integers(1, len(rows)))
    include = draw(st.sets(st.sampled_from(rows.tolist()), max_size=min(count, 4)))
    return machine, Request(
        count=count,
        free=free,
        include=np.array(sorted(include, reverse=True), dtype=np.int64),
        seed=draw(st.integers(0, 5)),
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(requests())
@settings(deadline=None)
def test_a_planner_keeps_the_contract(strategy, case):
    machine, request = case
    free, include = request.free.copy(), request.include.copy()
    if not fits(machine, strategy):
        with pytest.raises(UsageError, match=f"strategy {strategy} needs "):
            find(strategy)(machine, request)
        return
    rows = find(strategy)(machine, request)
    assert rows.dtype == np.int64
    assert len(rows) == request.count
    assert len(np.unique(rows)) == request.count
    assert request.free[rows].all()
    assert np.isin(request.include, rows).all()
    assert (find(strategy)(machine, replace(request)) == rows).all()
    assert (request.free == free).all()
    assert (request.include == include).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_too_few_free_nodes_are_said_in_figures(strategy):
    machine = machine_of(FIRST[strategy])
    free = machine.free.copy()
    free[::3] = False
    left = int(free.sum())
    with pytest.raises(PlanError, match=f"{left + 6} nodes wanted, {left} free: 6 missing"):
        find(strategy)(machine, Request(count=left + 6, free=free))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_more_included_than_wanted_is_a_contradiction(strategy):
    machine = machine_of(FIRST[strategy])
    with pytest.raises(UsageError, match="3 nodes are included, but only 2 wanted"):
        find(strategy)(machine, Request(count=2, free=machine.free, include=np.array([5, 1, 9])))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("spec", SPECS)
def test_all_free_nodes_can_be_taken(strategy, spec):
    machine = machine_of(spec)
    if not fits(machine, strategy):
        return
    rows = find(strategy)(machine, Request(count=len(machine), free=machine.free))
    assert sorted(rows.tolist()) == list(range(len(machine)))


def test_every_bundled_planner_is_found_by_name():
    assert set(BUNDLED) <= set(names())
    assert set(BUNDLED) - set(STRATEGIES) == {"slurm-block"}
    with pytest.raises(UsageError, match="unknown strategy 'hilber'; choose from auto, blades, "):
        find("hilber")


@pytest.mark.parametrize("spec", SPECS)
def test_planners_by_groups_apply_to_dragonflies_alone(spec):
    machine = machine_of(spec)
    for strategy in ("blades", "blades-linked", "hilbert-groups", "morton-groups"):
        assert fits(machine, strategy) == (machine.topology.kind == "dragonfly")


@pytest.mark.parametrize("spec", SPECS)
def test_what_applies_is_known_without_a_plan_and_is_what_can_be_planned(spec):
    machine = machine_of(spec)
    planned = []
    for name in BUNDLED:
        try:
            find(name)(machine, Request(count=1, free=machine.free))
            planned.append(name)
        except UsageError:
            continue
    assert fitting_planners(machine, BUNDLED) == planned


@pytest.mark.parametrize("name", names())
def test_help_and_guide_name_every_planner_that_is_registered(name, capsys):
    with pytest.raises(SystemExit):
        cli.main(["plan", "--help-all"])
    text = capsys.readouterr().out
    listed = text[text.index("Strategies:") : text.index("With --segment S")]
    known = set(re.findall(r"[\w.-]+\w", listed))
    assert name in known, f"the help of nidmap plan lacks, under Strategies: {name}"
    guide = (Path(__file__).parents[3] / "docs" / "reference" / "strategies.md").read_text()
    rows = [line for line in guide.split("\n") if line.startswith("|")]
    row = f"| `{name}` | the nodes are … | in this order | on |"
    assert any(f"`{name}`" in line for line in rows), f"docs/reference/strategies.md lacks: {row}"
