# SPDX-License-Identifier: Apache-2.0
"""Column-major, round-robin, folded: against their definitions, rank by rank."""

import pytest
from hypothesis import given, settings

from nidmap.placement.errors import UsageError
from nidmap.rankmap.orders import arrange, find
from tests.rankmap.helpers import layouts, named, slots


def test_column_major_goes_down_the_first_dimension():
    made = arrange(slots(named(1), 6), "stencil:2x3", "column-major")
    # Cell (i, j) has slot i + 2 j.
    assert made.slot_of_rank.tolist() == [0, 2, 4, 1, 3, 5]


def test_column_major_keeps_a_column_of_pencils_on_a_node():
    made = arrange(slots(named(*range(4)), 8), "fft:8x4", "column-major")
    assert made.node_of_rank.reshape(8, 4).tolist() == [[0, 1, 2, 3]] * 8


def dealt(counts, folds):
    """Deal ranks to nodes one by one, as the launcher does."""
    left, nodes = list(counts), []
    places = list(range(len(left)))
    while any(left):
        for node in places:
            if left[node]:
                nodes.append(node)
                left[node] -= 1
        if folds:
            places.reverse()
    return nodes


@pytest.mark.parametrize(("strategy", "folds"), [("round-robin", False), ("folded", True)])
@settings(deadline=None)
@given(layouts())
def test_ranks_are_dealt_as_by_hand(strategy, folds, on):
    made = arrange(on, "alltoall", strategy)
    assert made.node_of_rank.tolist() == dealt(on.counts.tolist(), folds)
    for node in range(len(on.names)):  # in ascending order inside every node
        mine = made.slot_of_rank[made.node_of_rank == node]
        assert (mine[1:] > mine[:-1]).all()


def test_folded_is_crays_method_2():
    made = arrange(slots(named(1, 2, 3, 4), 2), "ring", "folded")
    assert made.node_of_rank.tolist() == [0, 1, 2, 3, 3, 2, 1, 0]


@pytest.mark.parametrize("strategy", ["boxes:big", "row-major:1", "hilbert:"])
def test_options_are_refused_where_there_are_none(strategy):
    with pytest.raises(UsageError, match="takes no options"):
        find(strategy)
