# SPDX-License-Identifier: Apache-2.0
"""Slurm's choices against the word-by-word reference, the known table, and the contract."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.planners import BASELINE, Request, find
from nidmap.placement.specs import parse_spec
from nidmap.placement.switch_tree import slurm_switches
from tests.placement.planners import slurm_cases as cases
from tests.placement.planners import slurm_reference as reference

STRATEGIES = ("slurm-none", "slurm-tree", "slurm-tree-24.11", "slurm-dragonfly")


def expected(strategy, case, parent, leaf_of):
    """Return the reference's answer, None where the job would wait."""
    tree = reference.Tree.of(parent, leaf_of)

    def choose(free):
        if strategy == "slurm-none":
            return reference.consecutive(
                case.n, free, case.count, case.must, case.weight, case.cpus
            )
        given = tree, case.n, free, case.count, case.must, case.weight
        if strategy == "slurm-dragonfly":
            return reference.dragonfly_choice(*given)
        return reference.tree_choice(*given, nearest=strategy == "slurm-tree-24.11")

    return reference.retried(choose, case.free, case.must, case.cpus)


def check(strategy, machine, request, want):
    if want is not None:
        assert find(strategy)(machine, request).tolist() == want
        return
    with pytest.raises(PlanError, match="Slurm would leave the job pending"):
        find(strategy)(machine, request)


@given(st.integers(0, 2**32), st.integers(2, 70), st.sampled_from(cases.KINDS), st.booleans())
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_choice_equals_the_reference(strategy, seed, n, kind, equal_cpus):
    rng = random.Random(seed)
    parent, leaf_of = cases.random_forest(rng, n, kind)
    names = [f"n{i}" for i in range(n)]  # Slurm sorts n9 before n10
    rows = np.array(rng.sample(range(n), n))
    case = cases.random_case(rng, n, equal_cpus=equal_cpus)
    machine = cases.machine_of(
        names, rows, cases.switches_of(parent, leaf_of), () if equal_cpus else case.cpus
    )
    want = expected(strategy, case, parent, leaf_of)
    want = None if want is None else rows[want].tolist()
    check(strategy, machine, case.request(rows), want)


@pytest.mark.parametrize(
    ("strategy", "count", "nodes"),
    [
        ("slurm-none", 4, [10, 11, 12, 13]),
        ("slurm-none", 5, [10, 11, 12, 13, 14]),
        ("slurm-none", 8, list(range(16, 24))),
        ("slurm-tree", 4, [16, 17, 18, 19]),
        ("slurm-tree", 5, [0, 2, 3, 4, 7]),
        ("slurm-tree", 8, [0, 2, 3, 4, 7, 8, 10, 11]),
        ("slurm-dragonfly", 4, [16, 17, 18, 19]),
        ("slurm-dragonfly", 5, [0, 4, 8, 12, 16]),
        ("slurm-dragonfly", 8, list(range(0, 32, 4))),
    ],
)
def test_the_table_measured_on_a_real_slurm(strategy, count, nodes):
    machine = parse_spec("tree:4x4x4")
    free = np.ones(64, dtype=bool)
    free[[1, 5, 6, 9, 15]] = False
    assert find(strategy)(machine, Request(count=count, free=free)).tolist() == nodes


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_too_few_nodes_say_how_many_are_missing(strategy):
    free = np.zeros(64, dtype=bool)
    free[:3] = True
    with pytest.raises(PlanError, match="4 nodes wanted, 3 free: 1 missing"):
        find(strategy)(parse_spec("tree:4x4x4"), Request(count=4, free=free))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_more_included_than_wanted_is_refused(strategy):
    request = Request(count=1, free=np.ones(64, dtype=bool), include=np.array([3, 9]))
    with pytest.raises(UsageError, match="2 nodes are included, but only 1 wanted"):
        find(strategy)(parse_spec("tree:4x4x4"), request)


@pytest.mark.parametrize("strategy", STRATEGIES[1:])
def test_blocks_are_no_switches(strategy):
    machine = parse_spec("tree:4x4")
    machine = replace(machine, switches=replace(slurm_switches(machine), kind="block"))
    with pytest.raises(UsageError, match=r"needs Slurm.s topology/tree, and .* has topology/block"):
        find(strategy)(machine, Request(count=1, free=np.ones(16, dtype=bool)))


def test_a_machine_without_one_top_switch_lets_a_large_job_wait():
    parent, leaf_of = [-1, -1], [0] * 4 + [1] * 4
    machine = cases.machine_of(
        [f"n{i}" for i in range(8)], np.arange(8), cases.switches_of(parent, leaf_of)
    )
    request = Request(count=5, free=np.ones(8, dtype=bool))
    with pytest.raises(PlanError, match=r"no top switch is enough.*no job across several"):
        find("slurm-tree")(machine, request)
    assert len(find("slurm-none")(machine, request)) == 5


def test_weights_of_the_machine_count_where_the_request_has_none():
    machine = replace(parse_spec("tree:4x2"), weight=np.array([9, 9, 9, 9, 1, 1, 9, 9]))
    request = Request(count=2, free=np.ones(8, dtype=bool))
    assert find("slurm-none")(machine, request).tolist() == [4, 5]
    equal = replace(request, weights=np.ones(8, dtype=np.int64))
    assert find("slurm-none")(machine, equal).tolist() == [0, 1]


def test_the_baseline_names_version_and_plugin():
    assert "22.05" in BASELINE
    assert "select/cons_tres" in BASELINE


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "spec", ["torus:24x24x24,nodes=2", "dragonfly:groups=130,chassis=6,blades=16,nodes=4"]
)
def test_large_machines_keep_the_contract(strategy, spec):
    machine = parse_spec(spec)
    rng = np.random.default_rng(5)
    free = rng.random(len(machine)) < 0.7
    include = rng.choice(np.flatnonzero(free), 3, replace=False)
    weights = rng.integers(1, 3, len(machine))
    request = Request(count=int(free.sum()) // 2, free=free, include=include, weights=weights)
    rows = find(strategy)(machine, request)
    assert len(rows) == request.count
    assert (np.diff(rows) > 0).all()  # Slurm's order is the order of the names here
    assert free[rows].all()
    assert np.isin(include, rows).all()
    lighter = free & (weights == 1)
    # Without a topology a run with a required node comes before lighter ones.
    if strategy != "slurm-none" and int(lighter.sum()) + len(include) >= request.count:
        heavy = rows[weights[rows] == 2]
        assert np.isin(heavy, include).all()
