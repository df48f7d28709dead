# SPDX-License-Identifier: Apache-2.0
"""Placements are valid or refused, and mean the same whatever numbers their nodes have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.placement import Origin, Placement
from nidmap.rankmap import orders as orderings
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.predict import Job
from nidmap.rankmap.search.auto_order import order
from tests.rankmap.helpers import named, orders, slots


def placement(made):
    """Return (host, place in it) of every rank."""
    node = made.node_of_rank
    place = made.slot_of_rank - made.first_slot[node]
    return list(zip(made.host_of_rank.tolist(), place.tolist(), strict=True))


@settings(deadline=None)
@given(orders())
def test_slots_and_ranks_are_inverse(made):
    assert made.slot_of_rank[made.rank_at_slot].tolist() == list(range(made.ranks))
    assert made.rank_at_slot[made.slot_of_rank].tolist() == list(range(made.ranks))


@settings(deadline=None)
@given(orders(), st.randoms())
def test_renumbering_nodes_moves_no_rank(made, random):
    positions = list(range(len(made.names)))
    random.shuffle(positions)
    moved = made.renumbered(np.array(positions))
    assert placement(moved) == placement(made)
    assert placement(made.sorted()) == placement(made)
    assert made.sorted().names.tolist() == sorted(made.names.tolist())


def test_an_order_cannot_be_changed_from_outside():
    given_slots = np.array([1, 0])
    made = slots(named(1), 2).with_order(given_slots)
    given_slots[0] = 7
    assert made.slot_of_rank.tolist() == [1, 0]
    with pytest.raises(ValueError, match="read-only"):
        made.slot_of_rank[0] = 0


def test_orders_compare_by_value():
    on = slots(named(1, 2), 1)
    assert on.with_order(np.array([1, 0])) == slots(named(1, 2), 1).with_order(
        np.array([1, 0]), Origin("morton")
    )
    assert on.with_order(np.array([1, 0])) != on.with_order(np.array([0, 1]))
    assert on.with_order(np.array([1, 0])) != slots(named(2, 1), 1).with_order(np.array([1, 0]))
    with pytest.raises(TypeError):
        hash(on)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([0, 1, 1, 2], "slot 1 is given to ranks 1 and 2"),
        ([0, 1, 4, 2], "rank 2 has slot 4 of 0 to 3"),
        ([0, 1, -1, 2], "rank 2 has slot -1"),
        ([0, 1, 2], "3 ranks for 4 slots"),
        ([0, 1, 2, 3, 4], "5 ranks for 4 slots"),
    ],
)
def test_what_is_no_order_is_refused(values, says):
    with pytest.raises(PlanError, match=says) as caught:
        slots(named(1, 2), 2).with_order(np.array(values))
    assert caught.value.exit_code == 1


def test_the_front_door_orders_ranks_on_a_machine():
    machine = nidmap.load_machine("dragonfly:groups=3,chassis=2,blades=4,nodes=4")
    made = nidmap.order(machine, "nid[00020-00023]", Job("fft:4x4", 4), strategy="morton")
    assert isinstance(made, Placement)
    assert made.machine is machine
    assert made.host_of_rank[:4].tolist() == named(20, 20, 21, 21)
    assert (made.origin.strategy, made.origin.pattern) == ("morton", "fft:4x4")
    by_value = order(machine, [20, 21, 22, 23], Job(parse_pattern("fft:4x4"), 4))
    assert by_value.slot_of_rank.tolist() == list(range(16))


def test_ranks_that_are_not_the_slots_name_both_and_the_layout():
    with pytest.raises(UsageError) as caught:
        arrange(slots(named(1, 2), 24), "fft:8x8", "morton")
    assert (
        str(caught.value) == "pattern fft:8x8 has 64 ranks, but there are 48 slots (2 nodes x 24)"
    )
    assert caught.value.exit_code == 2


def test_an_unknown_strategy_names_those_there_are():
    with pytest.raises(
        UsageError, match=r"unknown strategy 'best'; choose from .*hilbert, morton,.* row-major"
    ):
        arrange(slots(named(1), 4), "ring", "best")


@pytest.fixture
def foreign(monkeypatch):
    """Register an ordering as another distribution would, by an entry point."""

    def install(function):
        class Entry:
            name = "foreign"

            def load(self):
                return function

        found = {"nidmap.orders": [Entry()]}
        monkeypatch.setattr("nidmap.placement.support.registry.entry_points", found.__getitem__)

    yield install
    orderings._orderings.known.pop("foreign", None)


def test_an_ordering_of_another_distribution_is_found(foreign):
    foreign(lambda pattern, on: on.with_order(np.arange(on.ranks)[::-1]))
    assert "foreign" in orderings.names()
    made = arrange(slots(named(1), 3), "ring", "foreign")
    assert (made.slot_of_rank.tolist(), made.origin.strategy) == ([2, 1, 0], "foreign")


@pytest.mark.parametrize(
    "broken",
    [
        lambda pattern, on: np.arange(on.ranks),
        lambda pattern, on: slots(named(9), 1).with_order(np.array([0])),
    ],
)
def test_a_broken_ordering_of_another_distribution_is_caught(foreign, broken):
    foreign(broken)
    with pytest.raises(PlanError, match="'foreign' returned an invalid order"):
        arrange(slots(named(1), 3), "ring", "foreign")
