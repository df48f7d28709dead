# SPDX-License-Identifier: Apache-2.0
"""Figures of a machine behind its name, of any kind: ``-m shaheen2,routing=adaptive,process=2``."""

import json

import numpy as np
import pytest

from nidmap.placement.commands import run
from nidmap.placement.errors import UsageError
from nidmap.placement.load import load_machine
from nidmap.placement.network import Demand, loads, routings
from nidmap.placement.options import with_figures
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.gain import Gains
from nidmap.rankmap.predict.unknowns import unknowns_of
from tests.same_machine import same_machine

SPEC = "dragonfly:groups=4,chassis=2,blades=4,nodes=2,global=8,injection=10"

OVERLAY = """[sending]
process = { value = 3.0, mark = "measured", source = "nidmap calibrate" }
"""


def test_a_stated_routing_is_what_is_taken():
    plain, stated = load_machine(SPEC), load_machine(f"{SPEC},routing=single,mpi=mpich")
    assert routings(plain)[0] == "minimal"
    assert routings(stated)[0] == "single"
    assert set(routings(stated)) == set(routings(plain))
    demand = Demand.of(stated, Traffic.of(np.array([0]), np.array([40]), 1.0))
    assert loads(stated, demand).routing == "single"
    assert Predictor(stated, Job("alltoall", algorithm="")).routing == "single"
    assert stated.topology.parameters["mpi"] == "mpich"
    assert stated.name == SPEC


def test_a_stated_routing_is_no_unknown_of_a_gain():
    xc = load_machine("edison,process=inf"), load_machine("edison,process=inf,routing=minimal")
    rows = np.flatnonzero(xc[0].free)[:64]
    apart = np.flatnonzero(xc[0].free)[::80][:64]
    models = [Predictor(m, Job("permutation:seed=1", 4)) for m in xc]
    gains = [Gains(model, model.place(rows)).of(model.place(apart)) for model in models]
    names = [[one.name for one in gain.unknowns] for gain in gains]
    assert "routing" in names[0]
    assert "routing" not in names[1]


def test_what_a_rank_sends_is_no_unknown_where_it_is_stated():
    for word, unsure in (("mpi=mpich", True), ("process=inf", False)):
        model = Predictor(load_machine(f"{SPEC},{word}"), Job("alltoall", bytes=1e6, algorithm=""))
        questions = unknowns_of(model, [])
        assert ("process" in [question.name for question in questions]) == unsure
        assert model.constants.process_gbs is None
    stated = load_machine(f"{SPEC},process=2.5")
    assert Predictor(stated, Job("alltoall", algorithm="")).constants.process_gbs == 2.5


@pytest.mark.parametrize("form", ["site", "file, with a comma.toml", "synthetic", "stdin"])
def test_every_kind_of_machine_takes_them(form, tmp_path, monkeypatch):
    figures = "latency=5,memory=7,process=2,payload=0.5,loss=0.3,background-load=4"
    if form.startswith("file"):
        path = tmp_path / form
        path.write_text(OVERLAY)
        machine = load_machine("shaheen2", f"{path},{figures}")
    elif form == "stdin":
        dump = tmp_path / "dump"
        monkeypatch.chdir(tmp_path)
        assert (
            run(["machine", "export", "-m", "tree:4x4", "--format", "topology-conf", "-o", "dump"])
            == 0
        )
        with dump.open() as stream:
            monkeypatch.setattr("sys.stdin", stream)
            machine = load_machine(f"-,{figures}")
    else:
        machine = load_machine(f"{'shaheen2' if form == 'site' else SPEC},{figures}")
    found = Predictor(machine, Job("alltoall", algorithm="")).constants
    assert (found.mpi_us, found.memory_gbs, found.process_gbs, found.payload) == (5, 7, 2, 0.5)
    parameters = machine.topology.parameters
    assert (parameters["loss"], parameters["background_load"]) == (0.3, 4)


def test_what_is_typed_counts_before_a_file_and_python_says_the_same(tmp_path):
    path = tmp_path / "calibrated.toml"
    path.write_text(OVERLAY)
    assert load_machine("edison", str(path)).topology.parameters["process"] == 3
    typed = load_machine("edison,process=2,latency=0", str(path))
    assert typed.topology.parameters["process"] == 2
    same = with_figures(load_machine("edison"), process=2, latency=0)
    assert same_machine(same, load_machine("edison,process=2,latency=0"))


@pytest.mark.parametrize("machine", ["torus:4x4", "shaheen2"])
@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("routing", "'routing' is not key=value"),
        ("colour=red", "unknown option 'colour'; choose from .*routing, mpi, process, memory"),
        ("proces=2", "unknown option 'proces'; did you mean process"),
        ("mpi=mpich,mpi=mpich", "'mpi' is given twice"),
        ("mpi=lam", "unknown mpi 'lam'; choose from cray-mpich"),
        ("process=-1", "process: '-1' is not a bandwidth in GB/s above 0"),
        ("memory=0", "memory: '0' is not a bandwidth in GB/s above 0"),
        ("latency=-1", "latency: '-1' is not a latency in us of 0 or more"),
        ("payload=2", "payload: '2' is not a share of the wire above 0, at most 1"),
        ("background-load=-1", "background-load: '-1' is not a bandwidth in GB/s of 0 or more"),
        ("loss=-1", "loss: '-1' is not a share of 0 or more"),
        ("routing=d-mod-k", "unknown routing 'd-mod-k' on a (torus|dragonfly); choose from"),
    ],
)
def test_what_makes_no_sense_is_refused_in_the_same_words(machine, word, says):
    with pytest.raises(UsageError, match=says):
        load_machine(f"{machine},{word}")


def test_a_command_takes_them_where_it_takes_the_machine(capsys):
    line = ["predict", "--nodes", "#0-7", "--pattern", "alltoall", "--bytes", "1e6", "--json"]
    seconds = []
    for figures in ("", ",process=0.01"):
        assert run([*line, "-m", f"shaheen2{figures}"]) == 0
        seconds.append(json.loads(capsys.readouterr().out)["time_s"])
    assert seconds[1] > 10 * seconds[0]
