# SPDX-License-Identifier: Apache-2.0
"""Times, terms and bottlenecks; what must hold of every prediction."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.machine import LISTED, Links
from nidmap.placement.network.channel_loads import Sending
from nidmap.placement.options import with_figures
from nidmap.placement.specs import parse_spec
from nidmap.placement.support.quantities import time_text
from nidmap.placement.topologies import links, router_coords
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.pattern.structured import Stencil
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Job, Predictor, predict
from nidmap.rankmap.predict.background import Other, from_file
from nidmap.rankmap.predict.constants import RunSeconds
from nidmap.rankmap.predict.job import algorithms, size_of
from nidmap.rankmap.predict.model import Model
from nidmap.rankmap.predict.phase_cost import run_ahead
from nidmap.rankmap.predict.phases import _busiest_partners
from tests.effort import examples
from tests.rankmap.helpers import placed, time_of

MACHINES = {
    spec: parse_spec(spec)
    for spec in (
        "torus:4x3x2,nodes=2,bw=2,injection=5",
        "torus:5x5,bw=4.68",
        "dragonfly:groups=3,chassis=2,blades=3,nodes=2,injection=10,global=4",
        "slingshot:groups=3,switches=4,nodes=4,nics=2,injection=25",
        "fattree:leaf=4,leaves=6,spines=2,bw=12.5",
        "tree:4x3x2,bw=10:20:40",
    )
}
SMALL = "dragonfly:groups=3,chassis=2,blades=3,nodes=2,injection=10,global=4"
PATTERNS = ("alltoall", "sort", "ring", "fft:{n}", "stencil:{n}x2", "stencil:{n}x2,periodic")


@st.composite
def jobs(draw):
    """Draw a machine, some of its nodes in any order, ranks a node and a pattern on them."""
    machine = MACHINES[draw(st.sampled_from(sorted(MACHINES)))]
    rows = draw(st.lists(st.integers(0, len(machine) - 1), min_size=1, max_size=12, unique=True))
    ppn = draw(st.sampled_from([2, 4]))
    ranks = ppn * len(rows)
    text = draw(st.sampled_from(PATTERNS))
    pattern = text.format(n=ranks if text.startswith("fft") else ranks // 2)
    order = np.array(draw(st.permutations(range(ranks))))
    return machine, np.array(rows), ppn, pattern, order


@given(jobs(), st.sampled_from(["", "pairwise", "ring", "bruck"]))
def test_no_time_is_below_its_bound_or_its_injection(job, algorithm):
    machine, rows, ppn, pattern, order = job
    algorithm = "" if pattern.startswith(("stencil", "ring")) else algorithm
    model = Predictor(with_figures(machine, latency=0), Job(pattern, ppn, 1e6, algorithm=algorithm))
    found = model.predict(placed(model, rows, order))
    assert found.time_s >= found.bound_s >= 0
    assert found.time_s >= max(found.by_class.values()) * (1 - 1e-12)
    assert found.time_s >= found.bottleneck.seconds * (1 - 1e-12)
    assert found.bottleneck.seconds == pytest.approx(max(found.by_class.values()))
    assert found.time_s == pytest.approx(sum(term.seconds for term in found.terms))
    assert 0 <= found.share <= 1


@given(jobs())
def test_a_prediction_is_the_same_twice_and_what_the_quick_way_says(job):
    machine, rows, ppn, pattern, order = job
    first = Predictor(machine, Job(pattern, ppn, 1e6, algorithm=""))
    one = first.predict(placed(first, rows, order))
    asked = Predictor(machine, Job(pattern, ppn, 1e6, algorithm=""))
    two = asked.predict(placed(asked, rows, order))
    assert one.document() == two.document()
    assert time_of(asked, rows, order) == pytest.approx(one.time_s, rel=1e-12)


@given(jobs(), st.floats(1e-3, 1e3))
def test_time_is_linear_in_bytes_without_latency(job, factor):
    machine, rows, ppn, pattern, order = job
    one = time_of(
        Predictor(with_figures(machine, latency=0), Job(pattern, ppn, 1e6, algorithm="")),
        rows,
        order,
    )
    more = time_of(
        Predictor(with_figures(machine, latency=0), Job(pattern, ppn, 1e6 * factor, algorithm="")),
        rows,
        order,
    )
    assert more == pytest.approx(one * factor, rel=1e-9)


@given(jobs(), st.floats(0, 50), st.data())
def test_background_never_makes_it_faster(job, load, data):
    machine, rows, ppn, pattern, order = job
    alone = time_of(Predictor(machine, Job(pattern, ppn, 1e6, algorithm="")), rows, order)
    others = []
    before = alone
    for _ in range(data.draw(st.integers(1, 3))):
        nodes = data.draw(
            st.lists(st.integers(0, len(machine) - 1), min_size=1, max_size=10, unique=True)
        )
        others.append(Other(np.array(nodes), load))
        now = time_of(
            Predictor(machine, Job(pattern, ppn, 1e6, background=others, algorithm="")), rows, order
        )
        assert now >= before * (1 - 1e-9)
        before = now


@examples(40)
@given(st.permutations(range(4)), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_relabelled_groups_change_nothing(names, count, seed):
    machine = parse_spec("dragonfly:groups=4,chassis=2,blades=3,nodes=2,injection=10,global=5")
    other, row = _relabelled(machine, np.array(names))
    rows = np.random.default_rng(seed).permutation(len(machine))[:count]
    for routing in ("minimal", "valiant"):
        job = Job("alltoall", 1, 1e6, algorithm="")
        models = [Predictor(with_figures(m, routing=routing), job) for m in (machine, other)]
        one = models[0].predict(models[0].place(rows))
        two = models[1].predict(models[1].place(row[rows]))
        assert two.time_s == pytest.approx(one.time_s, rel=1e-12)
        assert two.by_class == pytest.approx(one.by_class)


def _relabelled(machine, names):
    """Return the machine with group g called names[g], and where each node went."""
    coords = router_coords(machine)
    found = links(machine)
    each = int(np.bincount(coords[:, 0])[0])
    router = np.arange(len(coords)).reshape(len(names), each)
    went = np.empty(len(coords), dtype=np.int64)
    for g, name in enumerate(names):
        went[router[g]] = router[name]
    a, b = went[found.a], went[found.b]
    turned = Links(
        np.minimum(a, b).astype(np.int32),
        np.maximum(a, b).astype(np.int32),
        found.kind,
        found.kinds,
        found.count,
        found.bandwidth,
    )
    topology = dataclasses.replace(machine.topology, wiring=LISTED + "a test")
    made = dataclasses.replace(machine, links=turned, topology=topology, _cache={})
    nodes = len(machine) // len(coords)
    row = (went[:, None] * nodes + np.arange(nodes)).ravel()
    return made, row


def test_the_busiest_link_of_a_torus_plane():
    machine = nidmap.load_machine("torus:8x8x8,bw=4.68")
    found = predict(with_figures(machine, latency=0), "0-63", Job("alltoall", bytes=1e6))
    # a ring of 8 with ties to +: the + link before a place is on 1+2+3+4 of the ways to its
    # right for each of the 8 rows that send there
    assert found.bottleneck.load == 10 * 8 * 1e6
    assert found.time_s == pytest.approx(80e6 / 4.68e9)
    assert found.by_class["injection"] == pytest.approx(63e6 / 10.4e9)
    assert sum("nodes inject 10.4 GB/s as on Gemini" in note for note in found.notes) == 1
    free = predict(
        nidmap.load_machine("torus:8x8x8,bw=4.68,injection=inf"), "0-63", Job("alltoall")
    )
    assert free.by_class["injection"] == 0
    assert any("injection is unlimited" in note for note in free.notes)


def test_injection_is_the_bottleneck_where_it_is_the_slowest():
    machine = nidmap.load_machine("torus:4x4,bw=100,injection=1")
    found = predict(with_figures(machine, latency=0), None, Job("alltoall", bytes=1e6))
    assert found.time_s == pytest.approx(15e6 / 1e9)
    assert found.bottleneck.kind == "injection"
    assert found.share == 1
    assert "100 % of the limit" in found.sentence


def test_latency_grows_with_messages_in_turn_and_hops():
    machine = nidmap.load_machine("torus:9,bw=1e6")
    at_once = predict(with_figures(machine, latency=2.0), None, Job("alltoall", bytes=0))
    ring = predict(
        with_figures(machine, latency=2.0), None, Job("alltoall", bytes=0, algorithm="ring")
    )
    terms = {term.name: term.seconds for term in ring.terms}
    assert terms["latency"] == pytest.approx(8 * 2e-6)  # no bytes: no hop can be counted
    assert at_once.time_s == pytest.approx(2e-6 + 7 * 0.5e-6)  # the first is in the latency
    far = predict(with_figures(machine, latency=2.0), None, Job("alltoall", bytes=1))
    mean = (1 + 2 + 3 + 4) * 2 / 8
    terms = {term.name: term.seconds for term in far.terms}
    assert terms["latency"] == pytest.approx(2e-6 + mean * 105e-9)


def test_steps_add_up():
    machine = nidmap.load_machine("torus:3,bw=1")
    for name in ("pairwise", "ring"):
        found = predict(
            with_figures(machine, latency=0), None, Job("alltoall", bytes=1e9, algorithm=name)
        )
        assert found.time_s == pytest.approx(1.5)  # half way between 2 steps and all at once
    # 16 ranks of 4 nodes on one link a node pair: Bruck sends 32 blocks a rank, not 15
    machine = nidmap.load_machine("torus:16,bw=1")
    direct = predict(with_figures(machine, latency=0), None, Job("alltoall", bytes=1e6))
    bruck = predict(
        with_figures(machine, latency=0), None, Job("alltoall", bytes=1e6, algorithm="bruck")
    )
    assert bruck.phases[0].demand.total == pytest.approx(direct.phases[0].demand.total * 32 / 15)


def test_the_two_phases_of_a_pencil_are_added():
    machine = nidmap.load_machine("torus:4x4,bw=1")
    both = predict(with_figures(machine, latency=0), None, Job("fft:4x4", bytes=1e9))
    assert [phase.name for phase in both.phases] == ["row", "column"]
    assert both.time_s == pytest.approx(sum(phase.seconds for phase in both.phases))
    assert both.by_class["x"] == both.by_class["y"] == pytest.approx(both.time_s / 2)


def test_memory_counts_only_beyond_the_network():
    machine = nidmap.load_machine("torus:4,bw=1")
    free = predict(with_figures(machine, latency=0), "0-1", Job("alltoall", ppn=4, bytes=1e9))
    assert any("copied at 20 GB/s: assumed" in note for note in free.notes)
    slow = predict(
        with_figures(machine, latency=0, memory=0.5), "0-1", Job("alltoall", ppn=4, bytes=1e9)
    )
    assert slow.time_s == pytest.approx(12e9 / 0.5e9)
    fast = predict(
        with_figures(machine, latency=0, memory=100), "0-1", Job("alltoall", ppn=4, bytes=1e9)
    )
    assert fast.time_s == free.time_s == pytest.approx(16.0)


def test_copies_inside_one_node_take_time_where_nothing_states_it():
    machine = nidmap.load_machine("torus:4,bw=1")
    usual = predict(with_figures(machine, latency=0), "0", Job("alltoall", ppn=4, bytes=1e9))
    assert usual.time_s == pytest.approx(12 / 20)
    assert usual.limited_by == "memory"
    (unsure,) = [u for u in usual.between.unknowns if u.name == "memory"]
    assert unsure.high == pytest.approx(12 / 10)
    none = predict(
        with_figures(machine, latency=0, memory=float("inf")),
        "0",
        Job("alltoall", ppn=4, bytes=1e9),
    )
    assert none.time_s == 0


def test_a_sort_has_rounds_before_its_exchange():
    machine = nidmap.load_machine("torus:4x4,bw=1,injection=1")
    found = predict(machine, None, Job("sort", ppn=2, bytes=32e6))
    terms = {term.name: term.seconds for term in found.terms}
    assert terms["histogram"] > 0
    assert found.phases[0].demand.total == pytest.approx(32 * 30 * 1e6)
    assert (
        predict(with_figures(machine, latency=0), None, Job("sort", ppn=2, bytes=32e6))
        .terms[-1]
        .seconds
        == 0
    )


def test_one_node_sends_nothing_over_the_network():
    machine = nidmap.load_machine("torus:4x4")
    for pattern in ("alltoall", "stencil:2x2", "ring", "sort"):
        found = predict(
            with_figures(machine, latency=0, memory=math.inf), "5", Job(pattern, ppn=4, bytes=1e6)
        )
        assert (found.time_s, found.bound_s, found.share) == (0, 0, 1)
        assert found.document()["bottleneck"]["seconds"] == 0
    alone = predict(machine, "5", Job("alltoall", bytes=1e6))
    assert alone.time_s == 0
    assert "0 s" in alone.sentence


def test_an_order_matters_to_a_stencil():
    machine = nidmap.load_machine("torus:8,bw=1")
    slots = place_ranks(machine, None, 8)
    asked = Predictor(machine, Job("stencil:8x8", 8, 1e6, algorithm=""))
    rows = slots.rows
    assert rows is not None
    column = arrange(slots, "stencil:8x8", "column-major")
    assert asked.time(asked.place(rows)) == time_of(asked, rows, column)  # a square grid, turned
    shuffled = np.random.default_rng(0).permutation(64)
    assert asked.time(asked.place(rows, shuffled)) > asked.time(asked.place(rows))


def test_background_takes_its_share_and_no_more():
    machine = nidmap.load_machine("torus:8,bw=4")
    alone = predict(with_figures(machine, latency=0), "0-1", Job("alltoall", bytes=1e9))
    rows = np.array([7, 2])  # their way leads over 0 and 1
    for load, left in ((1.0, 3.0), (1000.0, 2.0)):
        found = predict(
            with_figures(machine, latency=0),
            "0-1",
            Job("alltoall", bytes=1e9, background=[Other(rows, load)]),
        )
        assert found.time_s == pytest.approx(alone.time_s * 4 / left)
        assert found.bottleneck.bandwidth == pytest.approx(left)
    assert "1 other job is assumed to send 1000 GB/s" in " ".join(found.notes)
    own = predict(
        with_figures(machine, latency=0),
        "0-1",
        Job("alltoall", bytes=1e9, background=[Other(np.array([0, 1]), 1.0)]),
    )
    assert own.time_s == alone.time_s


def test_bad_figures_are_refused():
    machine = MACHINES["torus:5x5,bw=4.68"]
    for bad in (
        {"bytes": -1.0},
        {"bytes": math.nan},
        {"bytes": math.inf},
        {"bytes": 1e300},
        {"algorithm": "nope"},
    ):
        with pytest.raises(UsageError):
            predict(machine, "0-3", Job("alltoall", **bad))
    with pytest.raises(UsageError, match="background load nan"):
        Other(np.array([0, 1]), math.nan)
    with pytest.raises(UsageError, match="16 ranks, but there are 4 slots"):
        predict(machine, "0-3", Job("stencil:4x4", bytes=1.0))
    with pytest.raises(PlanError, match="3 ranks for 4 slots"):
        predict(machine, "0-3", Job("alltoall", bytes=1.0), order=np.arange(3))


def test_links_without_a_figure_are_said():
    found = predict(parse_spec("tree:2x2x2,latency=0"), None, Job("alltoall", bytes=1e6))
    assert found.time_s == 0
    assert any("no bandwidth is stated for links of class up1" in note for note in found.notes)
    assert found.document()["bottleneck"]["bandwidth"] is None


def test_weights_that_cannot_be_added_are_refused(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("0,1e308,1e308\n1e308,0,1e308\n1e308,1e308,0\n")
    with pytest.raises(UsageError, match="more than can be counted"):
        predict(MACHINES["torus:5x5,bw=4.68"], "0-2", Job(f"matrix:{path}", bytes=1e18))


def test_the_document_is_plain_json():
    import json

    machine = MACHINES["slingshot:groups=3,switches=4,nodes=4,nics=2,injection=25"]
    text = json.dumps(predict(machine, None, Job("sort", bytes=1e6)).document(), allow_nan=False)
    found = json.loads(text)
    assert {
        "time_s", "bottleneck", "by_class", "terms", "bound_s", "routing", "wiring", "notes",
    } <= set(found)  # fmt: skip
    assert {"class", "link", "load", "bandwidth"} <= set(found["bottleneck"])
    assert {"injection", "ejection", "local", "global"} == set(found["by_class"])


@given(st.floats(0, 1e6))
def test_times_are_spoken_in_three_digits(seconds):
    number, unit = time_text(seconds).split()
    scale = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]
    assert float(number) * scale == pytest.approx(seconds, rel=6e-3)


@pytest.mark.parametrize(
    ("spec", "count", "pattern"),
    [
        ("torus:4x3,bw=2,injection=5", 4, "alltoall"),
        ("torus:6,bw=2", 3, "stencil:3,periodic"),
        ("dragonfly:groups=3,chassis=1,blades=2,nodes=2,injection=10,global=1", 4, "fft:4x2"),
        ("fattree:leaf=3,leaves=3,spines=1,bw=2", 5, "sort"),
    ],
)
def test_no_placement_at_all_is_below_the_limit(spec, count, pattern):
    import itertools

    machine = parse_spec(spec)
    ppn = 2 if pattern == "fft:4x2" else 1
    asked = Predictor(with_figures(machine, latency=0), Job(pattern, ppn, 1e6, algorithm=""))
    every = itertools.combinations(range(len(machine)), count)
    placements = [asked.place(np.array(rows)) for rows in every]
    limits = [asked.predict(placement).bound_s for placement in placements[::7]]
    best = min(map(asked.time, placements))
    if pattern in ("alltoall", "sort", "stencil:3,periodic"):  # one node is like another
        assert max(limits) == pytest.approx(min(limits))
    assert 0 < max(limits) <= best * (1 + 1e-9)


@pytest.mark.parametrize(
    ("spec", "asked", "limited_by", "words"),
    [
        ("torus:8,bw=1,injection=9", {}, "link", "limited by an x link"),
        ("torus:8,bw=9,injection=1", {}, "link", "limited by the injection of nid00000"),
        ("torus:8,bw=9,injection=9,process=0.1", {}, "process", "what one rank can send (7 MB"),
        ("torus:8,bw=9,injection=9,memory=0.1", {"ppn": 4}, "memory", "limited by memory (120 ms"),
        ("torus:8,bw=9,injection=9,latency=50", {"bytes": 1}, "latency", "limited by latency"),
        ("torus:8,bw=9,latency=0.1", {"bytes": 0, "ppn": 9}, "messages", "limited by messages"),
        ("torus:6,bw=1", {"algorithm": "pairwise"}, "steps", "limited by 5 successive steps"),
        ("torus:4", {"nodes": "0"}, "", "nothing takes any time"),
    ],
)
def test_the_sentence_names_the_real_bottleneck(spec, asked, limited_by, words):
    spec += "" if "latency" in spec else ",latency=0"
    job = {"bytes": 1e6, **asked}
    nodes = job.pop("nodes", None)
    found = predict(parse_spec(spec), nodes, Job("alltoall", **job))
    assert found.limited_by == found.document()["limited_by"] == limited_by
    assert words in found.sentence
    spent = {term.name: term.seconds for term in found.terms}
    spent["moved"] = spent.pop("bandwidth") + spent.pop("memory")
    moved = limited_by in ("link", "process", "steps", "memory")
    assert spent["moved" if moved else limited_by or "moved"] == max(spent.values())


def test_comparison_names_the_real_bottleneck():
    from nidmap.rankmap.commands.compare import as_text
    from nidmap.rankmap.compare import compare

    found = compare(
        parse_spec("torus:4x4,bw=1,process=0.1"),
        4,
        Job("alltoall", algorithm=""),
        strategies=["hilbert"],
    )
    assert {row["limited_by"] for row in found.document()["rows"]} == {"process"}
    assert " process     - " in as_text(found)


def test_one_message_in_turn_is_one():
    found = predict(parse_spec("torus:4x4"), "0-3", Job("alltoall", bytes=1e6))
    assert "1 message in turn, " in {t.name: t for t in found.terms}["latency"].rests_on


def test_run_seconds_with_messages():
    assert RunSeconds(1.0, 3.0).with_messages(4.0) == 8.0
    assert RunSeconds(meanwhile=3.0).with_messages(4.0) == 5.0


def test_from_file():
    m = nidmap.load_machine("torus:4x4")
    assert [(j.rows.tolist(), j.load) for j in from_file(m, "0-1\n4,5 load=2 # b\n", "jobs")] == [
        ([0, 1], 1.0),
        ([4, 5], 2.0),
    ]


def test_size_of():
    assert size_of(parse_pattern("alltoall"), None) == (1000000.0, "1 MB per message assumed")


def test_algorithms():
    assert algorithms(parse_pattern("fft:4x64"), "library", 100, "cray-mpich") == [
        "scattered",
        "bruck",
    ]
    assert algorithms(parse_pattern("bcast").fit(64), "library", 1e6, "") == ["scatter-ring"]


def test_model():
    from nidmap.rankmap.predict.job import Job

    m = nidmap.load_machine("torus:4x4,bw=1,latency=0")
    one = Model(m, Job("alltoall", 1, 1e9, "at-once"))
    assert [one.time(one.place(np.array(rows))) for rows in ([0, 1, 2, 3], [0, 1, 4, 5])] == [
        3.0,
        2.0,
    ]


def test_busiest_partners():
    assert _busiest_partners(Stencil((4, 4, 2))) == 5.0
    assert _busiest_partners(Stencil((4, 4), reach=2)) == 8.0
    assert _busiest_partners(Stencil((4, 4, 2), weights=(1.0, 2.0, 4.0)), weighted=True) == 10.0


def test_run_ahead():
    assert [
        round(run_ahead(Sending(2.0, 0.5, 0), 4.0, ahead, 0.2), 2) for ahead in (0.0, 0.5, 1.0)
    ] == [4.4, 3.15, 2.0]
