# SPDX-License-Identifier: Apache-2.0
"""Layouts and orders for the tests of this room."""

import numpy as np
from hypothesis import strategies as st

from nidmap.placement.placement import Placement


def slots(names, counts):
    """Return slots on nodes of no known machine."""
    counts = [counts] * len(names) if isinstance(counts, int) else counts
    return Placement(np.array(names), np.array(counts, dtype=np.int64))


def named(*numbers):
    """Return node names by NID."""
    return [f"nid{number:05d}" for number in numbers]


@st.composite
def layouts(draw, most=12):
    """Draw slots on a few nodes: any names, any order, any ranks a node."""
    numbers = draw(st.lists(st.integers(0, 99), min_size=1, max_size=most, unique=True))
    counts = draw(st.lists(st.integers(1, 5), min_size=len(numbers), max_size=len(numbers)))
    return slots(named(*numbers), counts)


@st.composite
def orders(draw):
    """Draw an order: any permutation on any layout."""
    on = draw(layouts())
    return on.with_order(np.array(draw(st.permutations(range(on.ranks)))))


def levelled(made):
    """Return the order that a list of hosts says: the same ranks a node, ascending within."""
    return made.with_ranks_on(made.node_of_rank)


def placed(model, rows, order=None):
    """Return ranks on rows of a model's machine, by an order or an array of slots if any."""
    return model.place(rows, getattr(order, "order", order))


def time_of(model, rows, order=None):
    """Return the seconds of ranks on rows of a model's machine; see `placed`."""
    return model.time(placed(model, rows, order))
