# SPDX-License-Identifier: Apache-2.0
"""The machine that one is on: what names it, what Slurm says, what its nodes are called."""

import pytest

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import LaunchError, SiteError, UsageError
from nidmap.placement.live import ask_scheduler, places_by_name, with_own_interfaces
from nidmap.placement.load import load_machine
from nidmap.placement.machine_option import absolute_specs, configured_specs
from nidmap.placement.readers import read_text


@pytest.mark.parametrize(
    ("names", "extents"),
    [
        ("x1000c0s0b0n0 x1000c0s1b0n0 x1000c1s0b0n0 x1001c0s0b0n0", (2, 2, 2, 1)),
        ("c0-0c0s0n0 c0-0c0s0n3 c0-0c2s7n1 c1-0c0s0n0", (2, 2, 1, 2)),
        ("r1i0n0 r1i0n1 r1i1n0 r2i0n0", (2, 2, 2)),
        ("rack01-node1 rack01-node2 rack02-node1", (2, 2)),
        ("gpu-rack-1-node7 gpu-rack-2-node7", (2, 1)),
    ],
)
def test_names_that_say_where_nodes_are(names, extents):
    states = read_text(
        "NODELIST STATE\n" + "".join(f"{name} idle\n" for name in names.split()), "sinfo"
    )
    machine = assemble([*places_by_name(states), states])
    assert machine.names.tolist() == names.split()
    assert machine.topology.extents == extents
    assert machine.switches is None  # they are no switches of Slurm's: it does not know of them


@pytest.mark.parametrize(
    "names", ["n1 n2", "nid00001 nid00002", "r1i0n0 login1", "rack1-node1 rack1-node2", "gpu1 cpu2"]
)
def test_names_that_do_not(names):
    states = read_text(
        "NODELIST STATE\n" + "".join(f"{name} idle\n" for name in names.split()), "sinfo"
    )
    assert places_by_name(states) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# none\n", ()),
        ("machine = 'lumi'\n", ("lumi",)),
        ("machine = ['a.conf', 'b']", ("a.conf", "b")),
    ],
)
def test_the_users_own_file(monkeypatch, tmp_path, text, words):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert configured_specs() == ()
    (tmp_path / "nidmap").mkdir()
    (tmp_path / "nidmap" / "config.toml").write_text(text)
    assert configured_specs() == words


@pytest.mark.parametrize("text", ["machine = 3", "machin = 'lumi'", "machine ="])
def test_a_file_that_says_something_else(monkeypatch, tmp_path, text):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "nidmap").mkdir()
    (tmp_path / "nidmap" / "config.toml").write_text(text)
    with pytest.raises(SiteError, match=r"config\.toml"):
        configured_specs()


def test_files_are_named_by_their_whole_path_whatever_is_behind_them(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("fabric.txt", "a,b", "lumi"):
        (tmp_path / name).touch()
    words = {
        "fabric.txt": f"{tmp_path}/fabric.txt",
        "fabric.txt,rails=x[0,2]": f"{tmp_path}/fabric.txt,rails=x[0,2]",
        "a,b,latency=2": f"{tmp_path}/a,b,latency=2",
        "links-down:fabric.txt": f"links-down:{tmp_path}/fabric.txt",
        **{same: same for same in ("lumi", "torus:4x4,bw=2", "slurm:gpu", "gone.txt,process=2")},
    }
    assert absolute_specs(tuple(words)) == list(words.values())


@pytest.fixture
def commands(monkeypatch, tmp_path):
    """Return what makes the commands that there are: by a shell script, or by what it prints."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(name, text, script=""):
        (tmp_path / f"{name}.txt").write_text(text)
        (tmp_path / name).write_text(
            f"#!/bin/sh\n{script or f'exec /bin/cat {tmp_path}/{name}.txt'}\n"
        )
        (tmp_path / name).chmod(0o755)

    return put


CONFIG = "ClusterName             = elsewhere\nSLURM_VERSION           = 22.05.8\n"


@pytest.mark.parametrize(
    ("scontrol", "sinfo"),
    [
        ("nonsense\n", "NODELIST STATE\nn1 idle\n"),
        (CONFIG, "segmentation fault (core dumped)\n"),
        (CONFIG, ""),
        (CONFIG + "SwitchName=s Level=0 Nodes=n1\n", "NODELIST STATE\nn1 idle\n"),
    ],
)
def test_nonsense_of_slurm_is_an_error_of_slurm(commands, scontrol, sinfo):
    commands("scontrol", scontrol)
    commands("sinfo", sinfo)
    with pytest.raises(LaunchError):
        ask_scheduler("here:")


def test_a_site_is_known_by_the_clusters_name_and_the_nodes(commands):
    commands("scontrol", "", 'test "$2" = topology || echo ClusterName = tara')
    commands("sinfo", "NODELIST STATE\ngpu1 idle\ngpu2 idle\n")
    machine = load_machine("here:")
    assert (machine.name, machine.site, len(machine)) == ("tara", "", 2)
    names = load_machine("tara").names.tolist()
    commands("sinfo", "NODELIST STATE\n" + "".join(f"{name} idle\n" for name in names[:20]))
    machine = load_machine("here:")
    assert (machine.name, machine.site, len(machine)) == ("tara", "tara", len(names))


@pytest.mark.parametrize(("version", "topology"), [("24.11.5", "s1"), ("25.05.1", "s2")])
def test_a_partitions_own_topology_where_slurm_has_several(commands, version, topology):
    script = f"""case "$*" in
      "show config") printf 'ClusterName = c\\nSLURM_VERSION = {version}\\n';;
      *"show partition gpu") echo PartitionName=gpu AllowGroups=ALL Topology=pods;;
      "show topology pods") echo SwitchName=s2 Level=0 LinkSpeed=1 Nodes=n1;;
      "show topology") echo SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n1;;
    esac"""
    commands("scontrol", "", script)
    commands("sinfo", "NODELIST STATE\nn1 idle\n")
    assert ask_scheduler("here:gpu").dumps[0].switches[0].name == topology
    assert ask_scheduler("here:").dumps[0].switches[0].name == "s1"


def test_pbs_and_flux_are_asked_where_there_is_no_slurm(commands):
    with pytest.raises(UsageError, match="no machine given"):
        ask_scheduler("here:")
    with pytest.raises(LaunchError, match="not on PATH"):
        ask_scheduler("flux:")
    node = '{"state": "free", "resources_available": {"ncpus": 32}}'
    names = ["x3000c0s1b0n0", "x3000c0s7b0n0", "x3001c0s1b0n0"]
    nodes = ", ".join(f'"{name}": {node}' for name in names)
    commands("pbsnodes", f'{{"pbs_version": "2022.1", "nodes": {{{nodes}}}}}')
    machine = load_machine("here:")
    assert (machine.names.tolist(), machine.scheduler) == (names, "pbs")
    assert machine.topology.extents[:1] == (2,)
    torque = "n1\\n     state = free\\n     np = 4\\n\\nn2\\n     state = job-exclusive\\n"
    commands("pbsnodes", "", f"case $* in *json*) exit 1;; esac; printf '{torque}'")
    assert load_machine("pbs:").free.tolist() == [True, False]
    commands("pbsnodes", "", "exit 1")
    with pytest.raises(LaunchError, match="exit code 1"):
        ask_scheduler("here:")


def test_what_the_interfaces_of_this_host_send(tmp_path):
    machine = assemble([read_text("SwitchName=s0 Nodes=n[1-4]\n", "topology.conf")])
    assert with_own_interfaces(machine, str(tmp_path)) is machine
    for name, state in (("mlx5_0", "4: ACTIVE"), ("mlx5_1", "4: ACTIVE"), ("mlx5_2", "1: DOWN")):
        port = tmp_path / "class" / "infiniband" / name / "ports" / "1"
        port.mkdir(parents=True)
        (port / "rate").write_text("400 Gb/sec (4X NDR)\n")
        (port / "state").write_text(f"{state}\n")
    told = with_own_interfaces(machine, str(tmp_path))
    assert told.topology.bandwidth["injection"] == 100
    assert "mlx5_0 of 400 Gb/s, mlx5_1 of 400 Gb/s" in told.notes[-1]
    assert with_own_interfaces(told, str(tmp_path)) is told
    (tmp_path / "class" / "net" / "hsn0").mkdir(parents=True)
    (tmp_path / "class" / "net" / "hsn0" / "speed").write_text("200000\n")
    assert with_own_interfaces(machine, str(tmp_path)).topology.bandwidth["injection"] == 125
