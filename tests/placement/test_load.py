# SPDX-License-Identifier: Apache-2.0
"""What ``-m`` takes: names, files, standard input, specs, and what combines with what."""

import gzip
import io
import sys

import pytest

from nidmap.placement.errors import NidmapError, ParseError, SiteError, UsageError
from nidmap.placement.load import load_machine, open_sources
from nidmap.placement.sites import site_names
from nidmap.placement.specs import parse_spec
from nidmap.placement.topologies import links, router_names, wiring_text
from tests.placement import machine_shapes as shapes
from tests.same_machine import same_machine

XC = shapes.xc_cells(4, 1)


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "my.xtprocadmin"
    path.write_text(shapes.xtprocadmin(XC))
    return path


def test_a_spec():
    assert same_machine(load_machine("torus:4x4"), parse_spec("torus:4x4"))


def test_a_file_is_called_by_its_name(dump):
    machine = load_machine(str(dump))
    assert machine.name == "my.xtprocadmin"
    assert machine.sources == (str(dump),)


def test_a_gzip(dump, tmp_path):
    packed = tmp_path / "my.gz"
    packed.write_bytes(gzip.compress(dump.read_bytes()))
    assert same_machine(load_machine(str(packed)), load_machine(str(dump)))


def test_standard_input(dump, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(dump.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    machine = load_machine("-")
    assert machine.name == "-"
    assert len(machine) == len(XC)


def test_standard_input_twice_is_refused():
    with pytest.raises(UsageError, match="once"):
        load_machine("-", "-")


@pytest.mark.parametrize("name", site_names())
def test_every_site_is_a_machine(name):
    machine = load_machine(name)
    assert machine.site == machine.name == name
    assert machine.scheduler in ("slurm", "pbs", "alps")
    assert machine.free.any()
    found = links(machine)
    assert len(found) > 0
    assert wiring_text(machine)
    assert len(router_names(machine)) > int(machine.router.max())


def test_a_file_wins_with_a_slash(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edison").write_text(shapes.xtprocadmin(XC))
    assert load_machine("./edison").site == ""
    assert load_machine("edison").site == "edison"


def test_a_site_gives_a_dump_its_figures(tmp_path):
    path = tmp_path / "cells"
    theta = load_machine("theta")
    cells = [
        (int(nid), str(name))
        for nid, name, role in zip(theta.nid, theta.cname, theta.role, strict=True)
        if role == "compute"
    ]
    path.write_text(shapes.xtprocadmin(cells[:400], states={cells[3][0]: "down"}))
    machine = load_machine("theta", str(path))
    assert len(machine) == 400
    assert machine.topology.parameters["global"] == 48
    assert machine.site == "theta"
    assert machine.state[3] == "down"
    assert machine.cores.tolist() == theta.cores[theta.compute][:400].tolist()
    assert machine.cores.any()
    assert machine.notes == ()
    assert links(machine).count.sum() == links(theta).count.sum()


def test_a_dump_of_another_machine_than_the_site(dump, tmp_path):
    path = tmp_path / "other"
    path.write_text(shapes.xtprocadmin(shapes.xc_cells(14, 2)))
    with pytest.raises(ParseError, match="theta"):
        load_machine("theta", str(path))


def test_states_for_a_site(tmp_path):
    path = tmp_path / "states"
    path.write_text(shapes.sinfo([("n37", "idle"), ("n38", "alloc")]))
    machine = load_machine("tara", str(path))
    assert len(machine) == len(load_machine("tara"))
    assert int(machine.free.sum()) == 1
    assert machine.names[machine.free][0] == "n37"


def test_switches_and_states_for_a_synthetic_machine(tmp_path):
    tree = tmp_path / "topology.conf"
    tree.write_text(
        "SwitchName=a Nodes=nid[00000-00007]\nSwitchName=b Nodes=nid[00008-00015]\n"
        "SwitchName=t Switches=a,b\n"
    )
    states = tmp_path / "states"
    states.write_text(
        shapes.sinfo([(f"nid{i:05d}", "idle" if i % 3 else "down") for i in range(16)])
    )
    machine = load_machine("torus:4x4", str(tree), str(states))
    assert machine.topology == parse_spec("torus:4x4").topology
    assert machine.switches.leaf_of.tolist() == [0] * 8 + [1] * 8
    assert machine.free.tolist() == [bool(i % 3) for i in range(16)]
    assert machine.coords.tolist() == parse_spec("torus:4x4").coords.tolist()


def test_nics_of_a_synthetic_machine_survive(tmp_path):
    states = tmp_path / "states"
    states.write_text(shapes.sinfo([("nid00003", "idle")]))
    spec = "slingshot:groups=2,switches=4,nodes=2,nics=2"
    machine = load_machine(spec, str(states))
    assert machine.router.tolist() == parse_spec(spec).router.tolist()


def test_groups_of_xnames(tmp_path):
    path = tmp_path / "sls.json"
    path.write_text(shapes.sls(shapes.ex_nodes([1000], chassis=8)))
    assert load_machine(str(path)).topology.extents[0] == 1
    assert load_machine(str(path), "xname:group=half-cabinet").topology.extents[0] == 2


@pytest.mark.parametrize(
    ("specs", "error", "word"),
    [
        ((), UsageError, "no machine"),
        (("edison", "theta"), UsageError, "different machines"),
        (("torus:4", "torus:5"), UsageError, "different machines"),
        (("no/such/file",), ParseError, "no such file"),
        (("edisson",), ParseError, "edison"),
        (("torrus:4x4",), UsageError, "torus"),
        (("missing.toml",), SiteError, "missing.toml"),
        (("",), NidmapError, ""),
        (("torus:4x4", "xname:odd"), UsageError, "odd"),
    ],
)
def test_what_is_wrong_is_said(specs, error, word):
    with pytest.raises(error) as raised:
        load_machine(*specs)
    assert word in str(raised.value)
    assert "\n" not in str(raised.value)


def test_opening_reads_but_does_not_join(dump):
    found = open_sources("edison", str(dump))
    assert found.site.name == "edison"
    assert [d.format for d in found.dumps] == ["xtprocadmin"]
