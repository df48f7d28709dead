# SPDX-License-Identifier: Apache-2.0
"""Slurm's files, and when there can be no Slurm."""

import dataclasses

import pytest

import nidmap
from nidmap.placement.nodelist import NodeList
from nidmap.workloads.minicray import slurm
from nidmap.workloads.minicray.net import design_network


def given(version=(22, 5, 8), topology="tree"):
    return slurm.Slurm(version, dict.fromkeys(slurm._PROGRAMS, "/bin/true"), topology)


def said(folder, monkeypatch, text):
    """Pretend that Slurm is what prints this for its version."""
    for name in slurm._PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\necho '{text}'\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(slurm, "_ids_missing", lambda: "")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("slurm-wlm 22.05.8", (22, 5, 8)),
        ("slurm 24.11.5", (24, 11, 5)),
        ("slurm 20.11.0-pre1", (20, 11, 0)),
    ],
)
def test_the_version_is_read(tmp_path, monkeypatch, text, version):
    said(tmp_path, monkeypatch, text)
    found, why = slurm.find_slurm("none")
    assert (found.version, found.topology, why) == (version, "none", "")


@pytest.mark.parametrize(
    ("text", "why"),
    [("slurm 19.05.2", "Slurm 19.5.2 is too old"), ("what?", "of an unknown version")],
)
def test_a_slurm_that_is_too_old_is_left_out(tmp_path, monkeypatch, text, why):
    said(tmp_path, monkeypatch, text)
    found, reason = slurm.find_slurm()
    assert found is None
    assert why in reason


def test_no_slurm_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(slurm, "_PATH", str(tmp_path))
    assert slurm.find_slurm() == (
        None,
        "slurmctld, slurmd, sinfo, squeue, srun, scontrol not installed",
    )


def test_without_root_and_mapped_ids_slurm_is_left_out(tmp_path, monkeypatch):
    said(tmp_path, monkeypatch, "slurm 22.05.8")
    monkeypatch.setattr(slurm, "_ids_missing", lambda: "slurmd needs several user ids")
    found, why = slurm.find_slurm()
    assert found is None
    assert why.endswith("as root, or with mapped ids, it can run")


def test_topology_conf_names_every_switch_and_node():
    net = design_network(nidmap.load_machine("minicray:dragonfly"))
    text = slurm.slurm_files(net, given())["topology.conf"][0]
    assert text.count("Nodes=") == 12
    lines = [dict(w.split("=") for w in line.split()) for line in text.splitlines()]
    nodes = [n for line in lines for n in NodeList.parse(line.get("Nodes", ""))]
    assert sorted(nodes) == sorted(net.names)
    above = [s for line in lines for s in NodeList.parse(line.get("Switches", ""))]
    assert len(set(above)) == len(above) == len(lines) - 1  # a tree of one root


def test_nodes_that_are_not_there_are_in_no_switch_and_no_partition():
    machine = nidmap.load_machine("minicray:dragonfly")
    role = machine.role.copy().astype("U8")
    role[[0, 1, 7]] = "service"
    net = design_network(dataclasses.replace(machine, role=role, _cache={}))
    files = slurm.slurm_files(net, given())
    switches = files["topology.conf"][0].splitlines()
    lines = [dict(w.split("=") for w in line.split()) for line in switches]
    nodes = [n for line in lines for n in NodeList.parse(line.get("Nodes", ""))]
    assert sorted(nodes) == sorted(net.names)
    assert "nid00000" not in net.names
    text = files["slurm.conf"][0]
    assert "nid00000" not in text
    assert "nid00007" not in text
    assert "nid00006" in text


def test_nodes_that_are_down_are_drained_and_not_waited_for():
    machine = nidmap.load_machine("minicray:dragonfly")
    state = machine.state.copy().astype("U8")
    state[3] = "down"
    net = design_network(dataclasses.replace(machine, state=state, _cache={}))
    assert "nid00003" not in slurm.slurm_programs(net, given())["up"]
    lines = slurm.slurm_files(net, given())["slurm.conf"][0].splitlines()
    assert [x.split()[0] for x in lines if "DRAIN" in x] == ["NodeName=nid00003"]


@pytest.mark.parametrize(
    ("version", "topology", "words"),
    [
        ((22, 5), "none", ("autodetect", "")),
        ((24, 11), "tree", ("disabled", "topology/tree")),
        ((24, 11), "dragonfly", ("disabled", "TopologyParam=Dragonfly")),
    ],
)
def test_settings_follow_version_and_topology(version, topology, words):
    net = design_network(nidmap.load_machine("minicray:torus"))
    files = slurm.slurm_files(net, given(version, topology))
    assert words[0] in files["cgroup.conf"][0]
    assert words[1] in files["slurm.conf"][0]
    assert ("topology.conf" in files) == (topology != "none")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("printf '0 1000 1\\n1 100000 65536\\n'", ""),
        ("printf '0 1000 1\\n'", "slurmd needs several user ids (this user namespace has one)"),
        (
            "echo 'unshare: failed to find subid range' >&2; exit 1",
            "slurmd needs several user ids (unshare: failed to find subid range)",
        ),
    ],
)
def test_ids_are_those_that_unshare_maps(tmp_path, monkeypatch, script, why):
    (tmp_path / "unshare").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(slurm, "may_administer", lambda: False)
    assert slurm._ids_missing() == why
