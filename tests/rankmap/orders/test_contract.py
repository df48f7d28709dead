# SPDX-License-Identifier: Apache-2.0
"""The contract that every ordering keeps, on any grid, node set and ranks a node."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.placement.placement import Placement
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.orders import arrange, find, names
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.place_ranks import place_ranks
from tests.effort import examples
from tests.rankmap.helpers import named, slots

#: The guide's table of orders.
GUIDE = Path(__file__).parents[3] / "docs" / "reference" / "orders.md"

#: Orderings that are for some patterns or allocations only, and say so of the others.
PARTICULAR = {"aligned", "cells", "hierarchical"}

#: Orderings that leave a line of ranks a line, whatever the nodes.
STRAIGHT = {"boxes", "column-major", "hilbert", "morton", "row-major"}

MACHINES = [
    "tree:3x2x4,dist=1:2:5",
    "tree:5x3",
    "torus:4x3x2,nodes=2",
    "torus:7x5",
    "dragonfly:groups=3,chassis=2,blades=3,nodes=2,wiring=aligned",
    "slingshot:groups=3,switches=4,nodes=3",
    "fattree:leaf=3,leaves=5,spines=2",
]

grids = st.lists(st.integers(1, 9), min_size=1, max_size=4).filter(lambda d: math.prod(d) <= 600)


@st.composite
def jobs(draw):
    """Draw a pattern and slots that fit it: uneven ranks a node, nodes in any order."""
    dims = draw(grids)
    total = math.prod(dims)
    cuts = sorted(draw(st.sets(st.integers(1, max(1, total - 1)), max_size=7)))
    counts = np.diff([0, *(c for c in cuts if c < total), total])
    nodes = draw(st.permutations(range(len(counts))))
    shape = "x".join(map(str, dims))
    fitting = [f"stencil:{shape}", f"stencil:{shape},periodic", "alltoall", "sort", "ring"]
    fitting += [f"fft:{shape}"] if len(dims) <= 2 else []
    return draw(st.sampled_from(fitting)), slots(named(*nodes), counts)


@st.composite
def placed_jobs(draw):
    """Draw a pattern and slots on nodes of a machine: sparse, in any order, uneven."""
    machine = parse_spec(draw(st.sampled_from(MACHINES)))
    rows = draw(st.lists(st.integers(0, len(machine) - 1), min_size=1, max_size=12, unique=True))
    if draw(st.booleans()):
        counts = [draw(st.integers(1, 12))] * len(rows)
    else:
        counts = draw(st.lists(st.integers(1, 9), min_size=len(rows), max_size=len(rows)))
    on = place_ranks(machine, np.array(rows), counts)
    left, dims = sum(counts), []
    for _ in range(draw(st.integers(0, 3))):
        dims.append(draw(st.sampled_from([k for k in range(1, left + 1) if left % k == 0])))
        left //= dims[-1]
    grid = "x".join(map(str, [*dims, left]))
    weights = ",weights=" + ":".join(str(draw(st.integers(0, 3))) for _ in [*dims, left])
    fitting = [f"stencil:{grid}", f"stencil:{grid},periodic{weights}", "ring", "stencil:auto"]
    fitting += [f"stencil:{grid},points={3 ** (len(dims) + 1)}"] if len(dims) in (1, 2) else []
    fitting += [f"fft:{grid}"] if len(dims) <= 1 else []
    fitting += [f"training:tp={left},dp={sum(counts) // left}"]
    return draw(st.sampled_from(fitting)), on


#: Orders that are searched for take a tenth of a second a job.
SEARCHED = ("auto", "graph")


@pytest.mark.parametrize("strategy", sorted(set(names()) - set(SEARCHED)))
@settings(deadline=None)
@given(jobs() | placed_jobs())
def test_every_ordering_gives_each_rank_its_own_slot(strategy, job):
    keeps_the_contract(strategy, job)


@pytest.mark.parametrize("strategy", SEARCHED)
@examples(16)
@given(jobs() | placed_jobs())
def test_every_search_gives_each_rank_its_own_slot(strategy, job):
    keeps_the_contract(strategy, job)


def keeps_the_contract(strategy, job):
    pattern, on = job
    try:
        made = arrange(on, pattern, strategy)
    except UsageError as error:
        said = str(error)
        if strategy in PARTICULAR and (strategy in said or "multicore group" in said):
            return
        raise
    assert isinstance(made, Placement)
    assert made.on_same_nodes(on)
    assert sorted(made.slot_of_rank.tolist()) == list(range(on.ranks))
    assert np.bincount(made.node_of_rank, minlength=len(on.names)).tolist() == on.counts.tolist()
    assert arrange(on, pattern, strategy) == made  # nothing is drawn by lot


@pytest.mark.parametrize("strategy", names())
def test_every_ordering_says_what_it_does(strategy):
    assert find(strategy).__doc__


@pytest.mark.parametrize("strategy", sorted(set(names()) - {"aligned"}))
def test_one_rank_is_no_special_case(strategy):
    assert arrange(slots(named(3), 1), "stencil:1x1x1", strategy).slot_of_rank.tolist() == [0]


@pytest.mark.parametrize("strategy", sorted(STRAIGHT))
def test_a_line_of_ranks_stays_a_line(strategy):
    assert arrange(
        slots(named(1, 2), 5), parse_pattern("ring"), strategy
    ).slot_of_rank.tolist() == list(range(10))


def test_every_order_has_a_row_in_the_guide():
    rows = re.findall(r"^\| `([a-z-]+)", GUIDE.read_text(), re.MULTILINE)
    missing = [name for name in names() if name not in rows]
    assert not missing, "".join(f"| `{name}` | slot of each rank |\n" for name in missing)
