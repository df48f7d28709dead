# SPDX-License-Identifier: Apache-2.0
"""``nidmap calibrate``: what it writes, what it refuses, and on real ranks."""

import json
import os

import numpy as np
import pytest

from nidmap.placement.commands import run
from nidmap.placement.errors import UsageError
from nidmap.placement.load import load_machine
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.support import child
from nidmap.rankmap.predict.constants import machine_constants
from nidmap.workloads.calibrate import command
from nidmap.workloads.calibrate.choice import pairs_by_level, ranks_by_host
from nidmap.workloads.calibrate.words import document, overlay_text, table_text
from tests.workloads.calibrate.test_result import measured
from tests.workloads.conftest import started

MACHINE = "dragonfly:groups=2,chassis=1,blades=2,nodes=2,injection=10"
ABOUT = {
    "machine": "minicray:dragonfly",
    "date": "2026-11-22T12:00:00Z",
    "nodes": "nid[00000-00023]",
    "count": 24,
    "ppn": 2,
    "rounds": 10,
}
NAMES = "NIDMAP_PROCESSOR_NAMES"


def test_what_is_written_is_what_a_machine_takes(tmp_path):
    result = measured("minicray:dragonfly", np.full(4, 0.5), 0.005)
    path = tmp_path / "calibrated.toml"
    path.write_text(overlay_text(result, ABOUT))
    machine = load_machine("minicray:dragonfly", str(path))
    figures = {one.key: one.value for one in result.figures}
    for key in ("injection", "green", "black", "blue"):
        stated = machine.topology.bandwidth[key]
        assert stated == pytest.approx(figures[f"bandwidth.{key}"], rel=1e-5)
    assert injection_bandwidth(machine)[0] == pytest.approx(
        figures["bandwidth.injection"], rel=1e-5
    )
    known = machine_constants(machine)
    assert known.process_gbs == pytest.approx(figures["sending.process"], rel=1e-5)
    assert known.memory_gbs == pytest.approx(figures["sending.memory"], rel=1e-5)
    assert (known.payload, known.source) == (1.0, str(path))
    assert run(["site", "check", str(path)]) == 0
    assert "2026-11-22, 24 nodes nid[00000-00023]" in path.read_text()
    assert "interval = [" in path.read_text()


def test_ranks_are_started_in_an_allocation_as_the_environment_says(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "nid[00000-00003]")
    monkeypatch.setenv("NIDMAP_MPIEXEC", "srun --mpi=pmi2 -K")
    started_with = []

    def become(words, env):
        started_with.append(words[:5])
        raise UsageError("started")

    assert command.become is child.become  # each has its own before one is replaced
    monkeypatch.setattr(child, "become", become)
    assert run(["calibrate", "-m", MACHINE]) == 2
    assert started_with == [["srun", "--mpi=pmi2", "-K", "-n", "4"]]


def test_a_table_and_json_say_the_same():
    result = measured("minicray:dragonfly,routing=minimal", np.full(4, 0.5), 0.005)
    text = table_text(result)
    found = json.loads(json.dumps(document(result, ABOUT)))
    assert (found["routing"]["name"], found["routing"]["explains"]) == ("minimal", True)
    assert "routing minimal explains the times: off by" in text
    assert set(found["figures"]) == {one.key for one in result.figures}
    assert found["figures"]["bandwidth.blue"]["stated"] == 4.6875


def test_ranks_are_to_be_equal_on_several_nodes():
    assert ranks_by_host(["a", "a", "b", "b"]) == {"a": [0, 1], "b": [2, 3]}
    with pytest.raises(UsageError, match="all ranks are on one node, a"):
        ranks_by_host(["a", "a"])
    with pytest.raises(UsageError, match="1 on b, 2 on a"):
        ranks_by_host(["a", "a", "b"])


@pytest.mark.parametrize(
    ("spec", "levels"),
    [
        ("minicray:dragonfly", ["node", "blade", "chassis", "group", "beyond"]),
        ("minicray:torus", ["node", "1 hop", "2 hops", "3 hops"]),
        ("minicray:fattree", ["node", "leaf", "beyond"]),
        ("torus:4x4,nodes=2", ["node", "router", "1 hop", "3 hops", "4 hops"]),
    ],
)
def test_pairs_of_nodes_by_level(spec, levels):
    machine = load_machine(spec)
    found = pairs_by_level(machine, np.arange(len(machine)), 2)
    assert list(found) == levels
    assert all(pairs for pairs in found.values())


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["-m", MACHINE], 2, "no allocation in which to start them"),
        (["-m", MACHINE, "-n", "2", "-o", "no/such/folder.toml"], 5, "cannot write"),
        (["-m", MACHINE, "-n", "2", "-o", "figures.csv"], 2, "written as .toml"),
        (["-m", MACHINE, "--", "no-such-launcher"], 4, "cannot start no-such-launcher"),
        (["-m", "no-such-machine", "-n", "2"], 3, "no such file"),
    ],
)
def test_bad_input_is_one_line(capfd, monkeypatch, words, code, told):
    for name in [name for name in os.environ if name.startswith(("SLURM_", "PBS_", "COBALT_"))]:
        monkeypatch.delenv(name)
    assert run(["calibrate", *words]) == code
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert told in said


@pytest.mark.mpi
def test_one_node_only_is_refused_on_ranks(place):
    env = {NAMES: "nid00000"}
    done = started(place, 2, ["-m", "nidmap", "calibrate", "-m", MACHINE], env, check=False)
    assert done.returncode == 2
    assert "nidmap: all ranks are on one node, nid00000" in done.stderr


@pytest.mark.mpi
@pytest.mark.usefixtures("once")
def test_ranks_of_one_computer_are_measured_as_nodes(place, tmp_path):
    """Names of nodes stand in for nodes: all that is written must be read again."""
    path = tmp_path / "calibrated.toml"
    words = ["-m", "nidmap", "calibrate", "-m", MACHINE, "--rounds", "6", "--seconds", "0.002"]
    env = {NAMES: "nid00000,nid00001,nid00002,nid00005"}
    done = started(place, 4, [*words, "-o", str(path), "--json"], env)
    found = json.loads(done.stdout)
    assert found["schema"] == "nidmap.calibrate/1"
    assert (found["count"], found["ppn"], found["rounds"]) == (4, 1, 6)
    machine = load_machine(MACHINE, str(path))
    assert machine.topology.bandwidth["injection"] == pytest.approx(
        found["figures"].get("bandwidth.injection", {"value": 10})["value"], rel=1e-4
    )
    assert machine_constants(machine).process_gbs > 0


INTERRUPTED = """
import os, signal, sys
from nidmap.workloads.calibrate.readings import Rounds
from nidmap.workloads.options import Common

class Fake:
    name, taken = "x", 0

    def __call__(self):
        self.taken += 1
        if session.root and self.taken == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGINT)
        return {"x": 1.0}

session = Rounds(Common(repeat=20), "calibrate", {})
with session:
    session.measure_rounds([Fake()])
if session.root:
    print(session.ended, len(session.rounds), session.enough, session.exit_code)
"""


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("taken", "found", "told"),
    [
        ("4", "interrupted 2 False 130", "interrupted after 2 of 20 rounds: nothing is written"),
        ("9", "interrupted 7 True 130", "interrupted after 7 of 20 rounds: the figures rest on"),
    ],
)
def test_an_interrupt_says_what_counts(launch, taken, found, told):
    done = launch(INTERRUPTED, 2, words=[taken])
    assert done.stdout.strip() == found
    assert f"nidmap: {told}" in done.stderr
