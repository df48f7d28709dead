"""Which flows are measured: each makes one class bind, and what cannot be reached is named."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import UsageError
from nidmap.placement.network import Demand, loads
from nidmap.placement.traffic import Traffic
from nidmap.workloads.calibrate.choice import (
    MARGIN,
    candidates,
    choose_sets,
    margins,
    undirected_class,
    without_stated_routing,
)

SPECS = (
    "minicray:dragonfly",
    "minicray:torus",
    "minicray:fattree",
    "slingshot:groups=3,switches=3,nodes=4,injection=25,bw=20,global=2",
    "torus:5x4,nodes=2,injection=4,bw=3",
)


def choice(spec, rows=None):
    machine, _ = without_stated_routing(nidmap.load_machine(*spec.split()))
    rows = np.arange(len(machine)) if rows is None else np.array(rows)
    return machine, rows, choose_sets(machine, rows)


def unreached(table, routing):
    """Return the classes that no set makes bind under a routing."""
    most = margins(table.seconds)[:, table.routings.index(routing)].max(axis=0, initial=0.0)
    return tuple(name for name, m in zip(table.classes, most, strict=True) if m < MARGIN)


@pytest.mark.parametrize("spec", SPECS)
def test_every_class_of_a_whole_machine_binds_in_a_set_of_its_own(spec):
    machine, rows, table = choice(spec)
    assert unreached(table, table.routings[0]) == ()
    for k, kind in enumerate(table.classes):
        i = int(np.argmax(margins(table.seconds)[:, 0, k]))
        one = table.flows[i]
        demand = Demand.of(machine, Traffic.of(rows[one.source], rows[one.target], 1e9))
        worst = loads(machine, demand, table.routings[0]).worst()
        assert undirected_class(worst.kind) == kind
        assert worst.seconds == pytest.approx(table.seconds[i, 0, k])


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
    assert unreached(found, "minimal") == ("blue",)
    _, _, found = choice("minicray:dragonfly", [0, 1])  # one blade
    assert unreached(found, "minimal") == ("green", "black", "blue")
    _, _, found = choice("minicray:torus", [0, 1, 2])  # a line along x
    assert unreached(found, "dimension-order") == ("y", "z")


def test_a_routing_that_the_machine_is_said_to_have_does_not_count():
    one, other = choice("minicray:dragonfly"), choice("minicray:dragonfly,routing=single")
    assert one[2].routings == other[2].routings
    assert [f.name for f in one[2].flows] == [f.name for f in other[2].flows]


def test_a_machine_without_bandwidths_is_refused():
    with pytest.raises(UsageError, match="states no bandwidth of its links"):
        without_stated_routing(nidmap.load_machine("tree:4x4"))


def test_an_unlimited_node_is_taken_for_as_fast_as_the_fastest_link():
    machine, assumed = without_stated_routing(
        nidmap.load_machine("torus:4x4,x=3,y=5,injection=inf")
    )
    assert assumed
    assert machine.topology.bandwidth["injection"] == 5


@settings(max_examples=8)
@given(st.sets(st.integers(0, 23), min_size=2))
def test_any_nodes_will_do(rows):
    _, _, table = choice("minicray:dragonfly", sorted(rows))
    clear = margins(table.seconds)
    for r, routing in enumerate(table.routings):
        reached = {
            table.classes[k] for k in range(len(table.classes)) if (clear[:, r, k] >= MARGIN).any()
        }
        assert reached.isdisjoint(unreached(table, routing))
        assert reached | set(unreached(table, routing)) == set(table.classes)
