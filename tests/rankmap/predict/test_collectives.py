# SPDX-License-Identifier: Apache-2.0
"""Collectives on nodes: closed forms where only the nodes' own links bind, and who chooses."""

import math

import numpy as np
import pytest

import nidmap
from nidmap.placement.errors import UsageError
from nidmap.placement.options import with_figures
from nidmap.rankmap.collectives import FAMILIES
from nidmap.rankmap.collectives.algorithms import algorithms_of, collective_parts
from nidmap.rankmap.collectives.libraries import LIBRARIES
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Job, predict
from nidmap.rankmap.score.distance import job_distance
from nidmap.rankmap.score.traffic import traffic

#: One switch: only nodes' own links, 1 GB/s, take time.
SWITCH = nidmap.load_machine("fattree:leaf=64,leaves=1,spines=1,bw=1")
TORUS = nidmap.load_machine("torus:4x4x2,bw=1")


def seconds(pattern, nodes, algorithm="library", ppn=1, machine=SWITCH):
    found = predict(
        with_figures(machine, latency=0),
        f"0-{nodes - 1}",
        Job(pattern, ppn=ppn, bytes=1e9, algorithm=algorithm),
    )
    return found.time_s


@pytest.mark.parametrize("p", [2, 3, 8, 12, 61])
def test_times_are_the_textbook_s_where_only_the_nodes_links_bind(p):
    rounds = math.ceil(math.log2(p))
    assert seconds("bcast", p, "binomial") == pytest.approx(rounds)
    assert seconds("reduce", p, "binomial") == pytest.approx(rounds)
    assert seconds("gather", p, "linear") == pytest.approx(p - 1)
    assert seconds("gather", p, "binomial") == pytest.approx(p - 1)
    assert seconds("allgather", p, "ring") == pytest.approx(p - 1)
    assert seconds("allgather", p, "bruck") == pytest.approx(p - 1)
    assert seconds("reducescatter", p, "pairwise") == pytest.approx(p - 1)
    if p & (p - 1) == 0:
        assert seconds("allreduce", p, "rabenseifner") == pytest.approx(2 * (p - 1) / p)
        assert seconds("allreduce", p, "doubling") == pytest.approx(rounds)


def test_a_barrier_takes_the_latency_of_its_rounds():
    found = predict(SWITCH, "0-63", Job("barrier", ppn=1))
    latency = next(term.seconds for term in found.terms if term.name == "latency")
    assert latency == pytest.approx(6 * 1.2e-6)
    assert found.asked["bytes"] == 0
    assert " of 0 B" not in found.sentence


def test_what_stays_inside_a_node_takes_its_memory():
    stated = predict(
        with_figures(SWITCH, latency=0, memory=0.1),
        "0-7",
        Job("allgather", ppn=4, bytes=1e6, algorithm="ring"),
    )
    # three of four neighbours on the ring are on the node: 31 steps of 3 MB at 0.1 GB/s
    assert stated.time_s == pytest.approx(31 * 3e6 / 1e8)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_bytes_between_nodes_are_those_of_the_messages(family):
    ranks, ppn = 30, 2
    order = np.random.default_rng(1).permutation(ranks)
    node = order // ppn
    for name in algorithms_of(family):
        found = predict(
            with_figures(TORUS, latency=0),
            "0-14",
            Job(family, ppn=ppn, bytes=1000.0, algorithm=name),
            order=order,
        )
        sent = 0.0
        for part in collective_parts(family, name, ranks, 0, 1000.0):
            for k in range(part.steps):
                a, b, _, blocks = np.broadcast_arrays(*part.step(k))
                sent += part.block * blocks[node[a] != node[b]].sum()
        total = sum(phase.demand.total for phase in found.phases)
        assert total == pytest.approx(sent), name


def test_the_usual_algorithm_is_taken_and_named():
    shaheen = nidmap.load_machine("shaheen2")
    found = predict(shaheen, "#0-63", Job("bcast", ppn=1, bytes=1e6))
    assert "(scatter-ring)" in found.sentence
    assert found.document()["algorithm"] == "scatter-ring"
    assert [phase.name for phase in found.phases] == ["scatter", "ring"]
    assert "libraries usually use scatter-ring (--algorithm chooses another)" in found.notes
    short = predict(shaheen, "#0-63", Job("bcast", ppn=1, bytes=1e3))
    assert short.document()["algorithm"] == "binomial"
    own = predict(shaheen, "#0-63", Job("bcast", ppn=1, bytes=1e6, algorithm="binomial"))
    assert "(binomial)" in own.sentence


def test_the_other_algorithm_is_an_unknown():
    found = predict(TORUS, "0-29", Job("bcast", ppn=1, bytes=1e6))
    assert "algorithm" in [u.name for u in found.between.unknowns]


@pytest.mark.parametrize(
    ("library", "call", "size", "ranks", "algorithm"),
    [
        ("mpich", "alltoall", 256, 8, "bruck"),
        ("mpich", "alltoall", 256, 7, "scattered"),
        ("mpich", "alltoall", 257, 64, "scattered"),
        ("mpich", "alltoall", 32768, 64, "scattered"),
        ("mpich", "alltoall", 32769, 64, "pairwise"),
        ("mpich", "alltoallv", 1e9, 64, "at-once"),
        ("openmpi", "alltoall", 8, 64, "bruck"),
        ("openmpi", "alltoall", 1024, 255, "at-once"),
        ("openmpi", "alltoall", 262144, 255, "pairwise"),
        ("openmpi", "alltoall", 2048, 10**6, "at-once"),
        ("openmpi", "alltoallv", 8, 64, "pairwise"),
    ],
)
def test_rules_of_an_all_to_all(library, call, size, ranks, algorithm):
    assert LIBRARIES[library].choose(call, size, ranks) == algorithm


@pytest.mark.parametrize(
    ("spec", "algorithm", "said"),
    [
        ("bcast:root=30", "library", "the root must be one of 30 ranks, 0 to 29"),
        ("bcast:root=x", "library", "not a whole number"),
        ("allreduce:root=1", "library", "unknown option .root=1.; it takes none"),
        ("bcast", "bruck", "for bcast"),
        ("alltoall", "binomial", "for an all-to-all"),
    ],
)
def test_what_cannot_be_is_refused(spec, algorithm, said):
    with pytest.raises(UsageError, match=said):
        predict(TORUS, "0-29", Job(spec, ppn=1, algorithm=algorithm))


@pytest.mark.parametrize("family", list(FAMILIES))
def test_j_counts_the_messages(family):
    on = place_ranks(TORUS, "0-6", 3)
    pattern = parse_pattern(family).on(on)
    weight = sum(edges.bytes.sum() for edges in pattern.edges())
    found = traffic(pattern, on.node_of_slot, job_distance(on))
    assert found.by_level.sum() == pytest.approx(weight)
    assert found.cost > 0


def test_steps_beyond_what_there_is_time_for_are_sampled():
    every = predict(
        with_figures(TORUS, latency=0), None, Job("allgather", ppn=40, bytes=1e3, algorithm="ring")
    )
    assert not any("represent all" in note for note in every.notes)
    assert every.phases[0].in_turn == 32 * 40 - 1


@pytest.mark.parametrize(("spec", "algorithm"), [("barrier", "dissemination"), ("permutation", "")])
def test_messages_without_bytes_queue_nowhere(spec, algorithm):
    machine = nidmap.load_machine("torus:4x4,bw=1,header=99")
    found = predict(
        with_figures(machine, routing="single"),
        None,
        Job(spec, ppn=1, bytes=0, algorithm=algorithm),
    )
    assert found.limited_by in ("latency", "messages")
    assert math.isfinite(found.between.high)
