# SPDX-License-Identifier: Apache-2.0
"""Orders that a library can be told: lengths of mappings, limits, and what they cost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap import load_machine
from nidmap.placement.commands import run as nidmap
from nidmap.placement.errors import UsageError
from nidmap.placement.placement import Origin
from nidmap.placement.sites import site_names
from nidmap.rankmap.emit.process_mapping import (
    CRAY_MPICH,
    HYDRA,
    hydra_vector,
    mapping_vector,
    parse_limit,
)
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.score.distance import job_distance
from nidmap.rankmap.score.traffic import cost_of
from nidmap.rankmap.search.short_orders import fit_format, renumber_nodes, shorten_order
from tests.effort import examples


def expanded(text):
    """Return the node of each rank that a plain vector says, as a reader of it would."""
    node = []
    for block in text.removeprefix("(vector,(").removesuffix("))").split("),("):
        first, nodes, ranks = map(int, block.split(","))
        node += [first + k for k in range(nodes) for _ in range(ranks)]
    return node


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_a_vector_says_the_node_of_every_rank(node):
    assert expanded(mapping_vector(np.array(node))) == node


@pytest.mark.parametrize(
    ("node", "text"),
    [
        # As MPICH 5.0.2's mpiexec hands them to its ranks, whatever -rankmap looked like.
        ([0, 0, 1, 1], "(vector,(0,2,2))"),
        ([0, 1, 1, 0], "(vector,0,(1,1,2),0)"),
        ([0, 1, 0, 1], "(vector,[(0,2,1)]x2)"),
        # These it hands on wrong, ranks 15 and 6 being lost.
        ([1, 3, 0, 3, 2, 1, 2, 2, 0, 1, 2, 0, 3, 0, 3, 1], ""),
        ([2, 0, 1, 2, 0, 1, 1, 0, 2], ""),
    ],
)
def test_hydra_has_words_of_its_own(node, text):
    assert hydra_vector(np.array(node)) == text


def job(name, nodes, ppn, pattern, strategy):
    machine = load_machine(name)
    on = place_ranks(machine, np.flatnonzero(machine.free)[:nodes], ppn)
    made = arrange(on, pattern, strategy)
    return made.sorted(), parse_pattern(pattern).on(made)


@pytest.mark.parametrize(
    ("case", "free", "length"),
    [
        (("perlmutter", 64, 4, "stencil:8x8x4", "hilbert"), 1352, 56),
        (("perlmutter", 128, 4, "stencil:8x8x8", "boxes"), 1151, 368),
    ],
)
def test_what_was_too_long_fits_with_its_nodes_in_other_places(case, free, length):
    order, pattern = job(*case)
    assert len(mapping_vector(order.node_of_rank)) == free
    found = shorten_order(order, CRAY_MPICH, 1023, pattern)
    assert (found.length, found.free_length, found.lost) == (length, free, 0)
    distance = job_distance(order)
    assert cost_of(pattern, found.order.node_of_rank, distance) == cost_of(
        pattern, order.node_of_rank, distance
    )
    assert "costs nothing" in found.words(CRAY_MPICH, 1023)


def test_what_a_limit_costs_is_said():
    order, pattern = job("perlmutter", 64, 32, "stencil:16x16x8", "boxes")
    found = shorten_order(order, CRAY_MPICH, 1023, pattern)
    assert found.length <= 1023 < found.free_length
    assert 0 < found.lost < 0.1
    assert f"with {found.lost:.1%} more J (cray-mpich 9.1" in found.words(CRAY_MPICH, 1023)
    assert shorten_order(order, CRAY_MPICH, None, pattern).order is order


def test_of_the_orders_that_fit_the_fastest_is_taken_where_time_is_known():
    order, pattern = job("frontier", 32, 8, "stencil:8x8x4", "boxes")
    by_j = shorten_order(order, CRAY_MPICH, 200, pattern)
    by_time = shorten_order(order, CRAY_MPICH, 200, pattern, Job("stencil:8x8x4"))
    assert (by_j.by, by_time.by) == ("J", "time")
    asked = Predictor(order.machine, Job(pattern, 8))
    seconds = [
        asked.time(asked.place(order.rows, one.slot_of_rank))
        for one in (order, by_j.order, by_time.order)
    ]
    assert seconds[2] <= seconds[1]
    assert by_time.lost == pytest.approx(max(seconds[2] / seconds[0] - 1, 0), abs=1e-3)
    assert "more time (cray-mpich" in by_time.words(CRAY_MPICH, 200) or by_time.lost == 0


def test_uneven_ranks_that_no_order_makes_short_are_said_to_be():
    machine = load_machine("torus:8x8x8")
    on = place_ranks(machine, None, [1 + k % 2 for k in range(512)])
    found = shorten_order(on.with_order(np.arange(on.ranks)), CRAY_MPICH, 1023)
    assert not found.fits
    assert "the job may not start" in found.words(CRAY_MPICH, 1023)


@given(st.data())
@examples(40)
def test_no_random_order_on_any_site_is_told_in_more_bytes_than_are_allowed(data):
    name = data.draw(st.sampled_from(site_names()))
    machine = load_machine(name)
    nodes = data.draw(st.integers(1, 40))
    ppn = data.draw(st.sampled_from([1, 2, 3, 4, 8, 16]))
    first = data.draw(st.integers(0, len(machine) - nodes - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    on = place_ranks(machine, np.arange(first, first + nodes), ppn)
    order = on.with_order(rng.permutation(on.ranks))
    mapping = data.draw(st.sampled_from([CRAY_MPICH, HYDRA]))
    limit = data.draw(st.sampled_from([60, 300, 1023]))
    found = shorten_order(order, mapping, limit)
    assert found.fits
    assert 0 < found.length == len(mapping.text(found.order.node_of_rank)) <= limit
    assert np.bincount(found.order.node_of_rank).tolist() == on.counts.tolist()


@given(st.data())
def test_nodes_change_places_only_with_their_like(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    counts = rng.integers(1, 4, size=12)
    machine = load_machine("tree:2x3x2,dist=1:2:3")
    on = place_ranks(machine, None, counts.tolist())
    order = on.with_order(rng.permutation(on.ranks))
    distance = job_distance(on)
    one = renumber_nodes(order, distance.blocks[:, 0])
    ranks = rng.integers(on.ranks, size=(2, 50))
    before, after = (distance.between(*each.node_of_rank[ranks]) for each in (order, one))
    assert before.tolist() == after.tolist()
    assert np.bincount(one.node_of_rank).tolist() == counts.tolist()


def test_a_format_is_fitted_in_its_readers_numbering_of_the_nodes():
    machine = load_machine("tree:4x4,dist=1:2")
    rng = np.random.default_rng(1)
    on = place_ranks(machine, rng.permutation(16), 4)
    order = on.with_order(rng.permutation(64), Origin("random", "stencil:8x8"))
    fitted, told = fit_format(order, "mpich", "sorted", "300")
    assert fitted.on_same_nodes(on)
    assert len(mapping_vector(fitted.sorted().node_of_rank)) <= 300
    assert "Cray MPICH's 300" in told
    assert fit_format(order, "openmpi", "sorted", None) == (order, "")


def test_limits_are_numbers_or_none():
    assert parse_limit(None, None) is None
    assert parse_limit("none", CRAY_MPICH) is None
    for text in ("0", "-3", "many", "1e3"):
        with pytest.raises(UsageError, match="not a number of bytes"):
            parse_limit(text, None)


def test_the_command_says_how_long_it_is_and_keeps_to_the_limit(capsys, tmp_path):
    command = ["order", "-m", "perlmutter", "--nodes", "#0-63", "--ppn", "4"]
    command += ["--pattern", "stencil:8x8x4", "--strategy", "hilbert"]
    command += ["-o", str(tmp_path / "MPICH_RANK_ORDER")]
    assert nidmap(command) == 0
    assert "1,023, not 1,352: ranks changed places" in capsys.readouterr().err
    assert nidmap([*command, "--mapping-limit", "none"]) == 0
    assert "uses 1,352 bytes (Cray MPICH, no limit)" in capsys.readouterr().err
    assert nidmap([*command, "--mapping-limit", "x"]) == 2
