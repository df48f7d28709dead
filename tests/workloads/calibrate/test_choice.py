# SPDX-License-Identifier: Apache-2.0
"""Which flows are measured: each makes one class bind, and what cannot be reached is named."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import UsageError
from nidmap.placement.network import Demand, loads, routings
from nidmap.placement.traffic import Traffic
from nidmap.workloads.calibrate.choice import (
    MARGIN,
    candidates,
    choose_sets,
    margins,
    undirected_class,
    with_limited_nodes,
)

SPECS = (
    "minicray:dragonfly",
    "minicray:torus",
    "minicray:fattree",
    "slingshot:groups=3,switches=3,nodes=4,injection=25,bw=20,global=2",
    "torus:5x4,nodes=2,injection=4,bw=3",
)


def choice(spec, rows=None):
    machine, _ = with_limited_nodes(nidmap.load_machine(*spec.split()))
    rows = np.arange(len(machine)) if rows is None else np.array(rows)
    return machine, rows, choose_sets(machine, rows)


def unreached(table):
    """Return the classes that are the bottleneck of no set."""
    most = margins(table.seconds).max(axis=0, initial=0.0)
    return tuple(name for name, m in zip(table.classes, most, strict=True) if m < MARGIN)


@pytest.mark.parametrize("spec", SPECS)
def test_every_class_of_a_whole_machine_is_the_bottleneck_of_a_set_of_its_own(spec):
    machine, rows, table = choice(spec)
    assert unreached(table) == ()
    for k, kind in enumerate(table.classes):
        i = int(np.argmax(margins(table.seconds)[:, k]))
        one = table.flows[i]
        demand = Demand.of(machine, Traffic.of(rows[one.source], rows[one.target], 1e9))
        worst = loads(machine, demand).worst()
        assert undirected_class(worst.kind) == kind
        assert worst.seconds == pytest.approx(table.seconds[i, k])


@pytest.mark.parametrize("spec", SPECS)
def test_nobody_sends_to_himself_and_ends_are_the_jobs(spec):
    machine, rows, _ = choice(spec)
    for one in candidates(machine, rows[::2]):
        assert len(one.source) == len(one.target) > 0
        both = np.concatenate([one.source, one.target])
        assert both.min() >= 0
        assert both.max() < len(rows[::2])


def test_what_cannot_be_reached_is_named():
    _, _, found = choice("minicray:dragonfly", range(8))  # one group
    assert unreached(found) == ("blue",)
    _, _, found = choice("minicray:dragonfly", [0, 1])  # one blade
    assert unreached(found) == ("green", "black", "blue")
    _, _, found = choice("minicray:torus", [0, 1, 2])  # a line along x
    assert unreached(found) == ("y", "z")


def test_sets_are_chosen_under_the_routing_that_the_machine_is_said_to_have():
    """On one path a pair of groups shares one link, which detours would spare."""
    spread, single = choice("minicray:dragonfly,routing=minimal"), choice("minicray:dragonfly")
    rows = single[1]
    for table, machine in ((spread[2], spread[0]), (single[2], single[0])):
        for i, flows in enumerate(table.flows):
            demand = Demand.of(machine, Traffic.of(rows[flows.source], rows[flows.target], 1e9))
            worst = loads(machine, demand, routings(machine)[0]).worst()
            assert worst.seconds == pytest.approx(table.seconds[i].max())


def test_a_machine_without_bandwidths_is_refused():
    with pytest.raises(UsageError, match="states no link bandwidths"):
        with_limited_nodes(nidmap.load_machine("tree:4x4"))


def test_an_unlimited_node_is_taken_for_as_fast_as_the_fastest_link():
    machine, assumed = with_limited_nodes(nidmap.load_machine("torus:4x4,x=3,y=5,injection=inf"))
    assert assumed
    assert machine.topology.bandwidth["injection"] == 5


@settings(max_examples=8)
@given(st.sets(st.integers(0, 23), min_size=2))
def test_any_nodes_will_do(rows):
    _, _, table = choice("minicray:dragonfly", sorted(rows))
    clear = margins(table.seconds)
    reached = {name for k, name in enumerate(table.classes) if (clear[:, k] >= MARGIN).any()}
    assert reached.isdisjoint(unreached(table))
    assert reached | set(unreached(table)) == set(table.classes)
