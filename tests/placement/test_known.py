"""What a machine is known to have: ``known:routing=…,mpi=…`` beside the other words of ``-m``."""

import numpy as np
import pytest

from placement.errors import UsageError
from placement.load import load_machine
from placement.network import Demand, loads, routings
from placement.traffic import Traffic
from rankmap.predict import Predictor
from rankmap.predict.gain import Gains, Placed

SPEC = "dragonfly:groups=4,chassis=2,blades=4,nodes=2,global=8,injection=10"


def test_the_known_routing_is_what_is_taken_where_none_is_asked_for():
    plain, known = load_machine(SPEC), load_machine(SPEC, "known:routing=single,mpi=mpich")
    assert routings(plain)[0] == "minimal"
    assert routings(known)[0] == "single"
    assert set(routings(known)) == set(routings(plain))
    demand = Demand.of(known, Traffic.of(np.array([0]), np.array([40]), 1.0))
    assert loads(known, demand).routing == "single"
    assert Predictor(known, "alltoall").routing == "single"
    assert Predictor(known, "alltoall", routing="valiant").routing == "valiant"
    assert known.topology.parameters["mpi"] == "mpich"


def test_a_known_routing_is_no_unknown_of_a_gain():
    xc = load_machine("edison"), load_machine("edison", "known:routing=minimal")
    rows = np.flatnonzero(xc[0].free)[:64]
    apart = np.flatnonzero(xc[0].free)[::80][:64]
    gains = [Gains(Predictor(m, "alltoall", 4), Placed(rows)).of(Placed(apart)) for m in xc]
    names = [[one.name for one in gain.unknowns] for gain in gains]
    assert "routing" in names[0]
    assert "routing" not in names[1]


def test_what_a_rank_sends_is_no_unknown_where_it_is_known():
    for word, unsure in (("known:mpi=mpich", True), ("known:process=inf", False)):
        model = Predictor(load_machine(SPEC, word), "alltoall", bytes=1e6)
        assert model.process_stated != unsure
        assert model.constants.process_gbs is None
    assert (
        Predictor(load_machine(SPEC, "known:process=2.5"), "alltoall").constants.process_gbs == 2.5
    )


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("known:", "'' is not key=value"),
        ("known:routing", "'routing' is not key=value"),
        ("known:colour=red", "no option 'colour'; there are routing, mpi, process"),
        ("known:mpi=mpich,mpi=mpich", "'mpi' is given twice"),
        ("known:mpi=lam", "no mpi 'lam'; there are cray-mpich"),
        ("known:process=-1", "process: '-1' is not a bandwidth in GB/s above 0"),
        ("known:routing=d-mod-k", "no such routing on a torus; there are dimension-order"),
    ],
)
def test_what_nobody_can_know_is_refused(word, says):
    with pytest.raises(UsageError, match=says):
        load_machine("torus:4x4", word)
