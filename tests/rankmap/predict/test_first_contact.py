"""First contact: so many others of other nodes at so many seconds each, and only where asked."""

import pytest

import nidmap
from placement.errors import UsageError
from rankmap.predict import predict

MACHINE = nidmap.load_machine("torus:4x4,bw=10")


def contact(pattern, ppn, **more):
    found = predict(MACHINE, "0-15", pattern, ppn=ppn, bytes=8.0, first_contact=0.5, **more)
    return next(term.seconds for term in found.terms if term.name == "first contact")


@pytest.mark.parametrize(
    ("pattern", "ppn", "others"),
    [
        ("alltoall", 1, 15),
        ("alltoall", 4, 60),
        ("fft:4x4", 1, 6),
        ("ring", 1, 2),
        ("ring", 2, 1),
        ("stencil:4x4", 1, 4),
        ("stencil:8x4", 2, 3),
        ("transposition:4x4", 1, 1),
        ("barrier", 1, 7),
        ("training:tp=1,dp=16", 1, 2),
    ],
)
def test_the_busiest_rank_s_partners_on_other_nodes_count(pattern, ppn, others):
    assert contact(pattern, ppn, algorithm="library") == pytest.approx(0.5 * others)


def test_bruck_s_algorithm_and_a_binomial_tree_meet_few():
    assert contact("alltoall", 1, algorithm="bruck") == pytest.approx(0.5 * 7)
    assert contact("bcast", 1, algorithm="binomial") == pytest.approx(0.5 * 4)


def test_nothing_is_said_where_nobody_asks():
    found = predict(MACHINE, "0-15", "alltoall", ppn=1)
    assert "first contact" not in [term.name for term in found.terms]
    slow = predict(MACHINE, "0-15", "alltoall", ppn=1, first_contact=1.0)
    assert slow.time_s == pytest.approx(found.time_s + 15)
    assert slow.binds == "first contact"
    assert slow.between.likely == pytest.approx(slow.time_s)


def test_a_time_below_nothing_is_refused():
    with pytest.raises(UsageError, match="first contact -1 s"):
        predict(MACHINE, "0-15", "alltoall", ppn=1, first_contact=-1.0)
