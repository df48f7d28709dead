# SPDX-License-Identifier: Apache-2.0
"""Training jobs: groups counted out one by one, the golden cases, and bytes by the formulas."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.pattern.training import DEFAULT_ORDER, ModelSizes, Training
from tests.rankmap.helpers import named, slots

GOLDEN = {"cp": [0, 2], "dp": [0, 4], "dp-cp": [0, 2, 4, 6], "pp": [0, 8]}


def test_the_golden_case():
    job = parse_pattern("training:tp=2,cp=2,dp=2,pp=2")
    assert job.ranks == 16
    assert {axis: job.groups(axis)[0].tolist() for axis in GOLDEN} == GOLDEN
    experts = parse_pattern("training:tp=2,cp=2,dp=2,pp=2,ep=4,etp=1")
    assert experts.groups("ep")[0].tolist() == [0, 1, 2, 3]
    assert experts.groups("edp")[0].tolist() == [0, 4]


def numbered(order, sizes):
    """Number ranks by counting through the axes, the leftmost fastest."""
    axes = [name for name in order if name in sizes]
    points = itertools.product(*(range(sizes[name]) for name in reversed(axes)))
    return [dict(zip(reversed(axes), point, strict=True)) for point in points]


def grouped(order, sizes, names):
    """Return the ranks that agree in all axes but these."""
    found = {}
    for rank, place in enumerate(numbered(order, sizes)):
        key = tuple(sorted((k, v) for k, v in place.items() if k not in names))
        found.setdefault(key, []).append(rank)
    return sorted(found.values())


@settings(deadline=None)
@given(
    st.tuples(*[st.integers(1, 3)] * 4),
    st.permutations(["tp", "cp", "dp", "pp"]),
    st.sampled_from(["tp", "cp", "dp", "pp", "dp-cp", "tp-pp", "tp-cp-dp"]),
)
def test_groups_are_those_counted_out(sizes, order, axis):
    tp, cp, dp, pp = sizes
    text = "-".join([*order[:2], "ep", *order[2:]])
    job = parse_pattern(f"training:tp={tp},cp={cp},dp={dp},pp={pp},order={text}")
    extents = {"tp": tp, "cp": cp, "dp": dp, "pp": pp}
    assert sorted(job.groups(axis).tolist()) == grouped(order, extents, axis.split("-"))


@pytest.mark.parametrize(("etp", "ep"), [(1, 2), (1, 4), (2, 2), (2, 1), (1, 8)])
def test_experts_are_numbered_on_their_own(etp, ep):
    job = parse_pattern(f"training:tp=2,cp=2,dp=2,pp=2,ep={ep},etp={etp}")
    extents = {"etp": etp, "ep": ep, "edp": 8 // (etp * ep), "pp": 2}
    for axis in ("etp", "ep", "edp"):
        want = grouped(["etp", "ep", "edp", "pp"], extents, [axis])
        assert sorted(job.groups(axis).tolist()) == want


def test_bytes_are_those_of_the_formulas():
    z = ModelSizes(
        layers=24, hidden=1024, seq=2048, batch=2, microbatches=4, kv=4, head=64, params=3e8, topk=2
    )
    job = Training(tp=4, cp=2, dp=8, pp=2, ep=8, etp=1, sizes=z)
    s = 2 * 2048 * 2 * 1024 / 2
    per = 24 / 2 * 4
    assert job.sent() == pytest.approx(
        {
            "tp": 10 * 3 / 4 * s * per,
            "cp": 3 * 1 * (2 * 2 * (2048 / 2) * 2 * 4 * 64 / 4) * per,
            "ep": 4 * 7 / 8 * (2048 * 2 / (2 * 4)) * 2 * 1024 * 2 * per,
            "dp": 15 / 16 * (3e8 / 8) * 6,
            "pp": s / 4 * 4,
        }
    )
    plain = Training(tp=4, cp=2, dp=8, pp=2, sizes=ModelSizes(**{**vars_of(z), "sp": 0})).sent()
    assert plain["tp"] == pytest.approx(8 * 3 / 4 * s * per)
    assert plain["pp"] == pytest.approx(s * 4)


def vars_of(sizes):
    return {name: getattr(sizes, name) for name in ModelSizes.__dataclass_fields__}


def test_without_sequence_parallelism_tp_is_the_sc21_papers():
    # 8 b s h (t-1)/t elements a layer a microbatch (Narayanan et al., SC21, section 3.2).
    z = ModelSizes(layers=1, hidden=512, seq=128, batch=3, microbatches=1, sp=0, bytes=2)
    assert Training(tp=8, sizes=z).sent()["tp"] == 8 * 3 * 128 * 512 * 7 / 8 * 2


def weights(job):
    """Return a dense matrix of the edges' weights."""
    found = np.zeros((job.ranks, job.ranks))
    for edges in job.edges(block=7):
        assert (edges.source < edges.target).all()
        np.add.at(found, (edges.source, edges.target), edges.bytes)
    return found


@pytest.mark.parametrize(("spec", "axis"), [("tp=4", "tp"), ("cp=5", "cp"), ("dp=6", "dp")])
def test_a_collective_is_a_ring(spec, axis):
    job = parse_pattern(f"training:dp=1,{spec}" if axis != "dp" else f"training:{spec}")
    found = weights(job)
    n = job.ranks
    sent = job.sent()[axis] + (job.sent()["dp"] if axis == "cp" else 0)  # dp spans dp x cp
    for a, b in itertools.combinations(range(n), 2):
        near = b - a == 1 or (a == 0 and b == n - 1)
        assert found[a, b] == pytest.approx(sent / 2 if near else 0)


def test_two_ranks_send_both_ways_and_stages_are_a_chain():
    job = parse_pattern("training:tp=2,dp=1")
    assert weights(job)[0, 1] == job.sent()["tp"]
    stages = parse_pattern("training:pp=4,dp=1")
    assert np.argwhere(weights(stages)).tolist() == [[0, 1], [1, 2], [2, 3]]


def test_experts_all_send_to_all():
    job = parse_pattern("training:dp=4,ep=4")
    dense = parse_pattern("training:dp=4")
    pairs = np.triu_indices(4, 1)
    assert weights(job)[pairs] - weights(dense)[pairs] == pytest.approx(job.sent()["ep"] / 3)


def test_dp_left_open_takes_what_there_is():
    job = parse_pattern("training:tp=4,pp=2")
    assert job.ranks is None
    assert job.fit(48).spec == "training:tp=4,cp=1,dp=6,pp=2"
    with pytest.raises(UsageError, match="not a multiple of 8"):
        job.fit(20)
    with pytest.raises(UsageError, match="no rank count yet"):
        job.groups("tp")


@pytest.mark.parametrize(
    "spec",
    [
        "training:tp=8,cp=1,dp=16,pp=4",
        "training:tp=2,cp=2,dp=8,pp=2,ep=8,etp=1,hidden=2048,sp=0",
        "training:tp=2,dp=4,pp=2,order=tp-cp-ep-pp-dp,params=70e9",
    ],
)
def test_the_spec_is_read_back(spec):
    job = parse_pattern(spec)
    assert parse_pattern(job.spec) == job


def test_the_other_order_in_use():
    job = parse_pattern("training:tp=2,dp=2,pp=2,order=tp-cp-ep-pp-dp")
    assert job.groups("pp").tolist()[0] == [0, 2]
    assert job.groups("dp").tolist()[0] == [0, 4]
    assert job.order != DEFAULT_ORDER


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("training:", "nothing after the colon"),
        ("training", "no sizes given"),
        ("training:tp", "unknown option 'tp'"),
        ("training:tp=0", "not a whole number above 0"),
        ("training:tp=2,tp=2", "tp is given twice"),
        ("training:xp=2", "unknown option 'xp=2'"),
        ("training:dp=4,ep=3", "not divisible by"),
        ("training:dp=4,order=tp-dp", "once each"),
        ("training:dp=4,order=tp-cp-ep-dp-dp", "once each"),
        ("training:dp=4,pp=2,tp=2,ep=2,order=tp-cp-ep-pp-dp,etp=1", None),
        ("training:dp=4,pp=2,ep=2,order=tp-cp-ep-pp-dp", "pp must be last"),
        ("training:dp=4,params=none", "not a number of parameters"),
        ("training:dp=99999999,tp=8", "more ranks than any machine"),
    ],
)
def test_nonsense_is_refused(spec, says):
    if says is None:
        assert parse_pattern(spec).ranks == 16
        return
    with pytest.raises(UsageError, match=says):
        parse_pattern(spec)


def test_boxes_order_a_training_job():
    on = slots(named(*range(8)), 8)
    made = arrange(on, "training:tp=8,dp=4,pp=2", "boxes")
    assert made.slot_of_rank.tolist() == list(range(64))  # tp fills nodes as it is numbered
    wide = arrange(
        slots(named(*range(4)), 4), "training:tp=2,dp=4,pp=2,order=tp-cp-ep-dp-pp", "boxes"
    )
    assert sorted(wide.slot_of_rank.tolist()) == list(range(16))


def test_training_replicas():
    assert Training(tp=2, dp=2, pp=2).replicas().tolist() == [0, 0, 2, 2, 0, 0, 2, 2]
