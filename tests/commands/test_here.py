# SPDX-License-Identifier: Apache-2.0
"""Commands without a machine file, in an empty home, on a real Slurm that no site file knows."""

import json
import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from tests.real_slurm import needs_slurm, real_slurm

NAMES = [f"cn{i:03d}" for i in range(48)]
LEAVES = [",".join(NAMES[k::6]) for k in range(6)]
CONF = "".join(f"SwitchName=leaf{k} Nodes={leaf}\n" for k, leaf in enumerate(LEAVES))
CONF += "SwitchName=top Switches=leaf[0-5]\n"


@pytest.fixture
def home(tmp_path):
    """Return the environment of a user who has nothing."""
    return {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": "",
        "XDG_CACHE_HOME": "",
        "NIDMAP_MACHINE": "",
    }


@pytest.fixture(scope="module", params=["none", "tree", "dragonfly"])
def cluster(request):
    conf = None if request.param == "none" else CONF
    with real_slurm(NAMES, plugin=request.param, topology_conf=conf, real=0) as slurm:
        slurm.drain([NAMES[0]])
        slurm.plugin = request.param
        yield slurm


@needs_slurm
def test_every_command_knows_where_it_is(inside, cluster, home):
    env = {**home, "SLURM_CONF": cluster.env["SLURM_CONF"]}
    switched = cluster.plugin != "none"
    said = "switches by scontrol show topology" if switched else "count as equally near"
    listed = "cn001,cn002,cn007,cn008"
    commands = (
        ("machine", "show"),
        ("machine", "export", "--format", "csv"),
        ("nodes", "info", listed),
        ("nodes", "sort", listed),
        ("plan", "-N", "8"),
        ("order", "--nodes", listed, "--pattern", "stencil:2x2"),
        ("score", "--nodes", listed, "--pattern", "stencil:2x2", "--strategy", "row-major"),
        ("predict", "--nodes", listed, "--pattern", "alltoall", "--bytes", "1MB"),
        ("compare", "-N", "8", "--pattern", "alltoall", "--strategies", "compact,spread"),
    )
    for command in commands:
        done = inside(*command, env=env)
        assert done.code == 0, (command, done.err)
        assert done.err.count("machine nidmaptest (48 nodes, tree) detected from Slurm") == 1
        assert said in done.err
    nodes = json.loads(inside("nodes", "sort", listed, "--json", env=env).out)["nodes"]
    sorted_nodes = ["cn001", "cn007", "cn002", "cn008"]
    assert nodes == (sorted_nodes if switched else listed.split(","))
    planned = inside("plan", "-N", "8", "--json", env=env)
    expected = set(LEAVES[1].split(",")) if switched else set(NAMES[1:9])
    assert set(json.loads(planned.out)["nodes"]) == expected
    shown = json.loads(inside("machine", "show", "--json", env=env).out)
    assert shown["nodes"]["free"] == 47
    assert said in shown["taken"]


@needs_slurm
def test_a_file_of_the_user_comes_before_slurm_and_the_variable_before_both(inside, cluster, home):
    folder = f"{home['HOME']}/own/nidmap"
    os.makedirs(folder)
    with open(f"{folder}/config.toml", "w") as stream:
        stream.write('machine = "torus:4x4"\n')
    env = {
        **home,
        "SLURM_CONF": cluster.env["SLURM_CONF"],
        "XDG_CONFIG_HOME": f"{home['HOME']}/own",
    }
    assert "torus:4x4" in inside("machine", "show", env=env).out
    env["NIDMAP_MACHINE"] = "torus:3x3"
    assert "torus:3x3" in inside("machine", "show", env=env).out
    assert "torus:2x2" in inside("machine", "show", "-m", "torus:2x2", env=env).out


@needs_slurm
def test_what_is_asked_is_never_older_than_the_last_reconfigure(inside, home, tmp_path):
    with real_slurm(NAMES, plugin="tree", topology_conf=CONF, real=0) as slurm:
        env = {**home, "SLURM_CONF": slurm.env["SLURM_CONF"]}
        before = inside("nodes", "sort", "cn000,cn001,cn006", env=env)
        assert before.out == "cn000\ncn006\ncn001\n"
        (slurm.folder / "topology.conf").write_text(
            "SwitchName=a Nodes=cn[000-023]\nSwitchName=b Nodes=cn[024-047]\n"
            "SwitchName=top Switches=a,b\n"
        )
        slurm.run(["scontrol", "reconfigure"])
        deadline = time.monotonic() + 60
        while "SwitchName=leaf0" in slurm.run(["scontrol", "show", "topology"]).stdout:
            assert time.monotonic() < deadline
        after = inside("nodes", "sort", "cn000,cn001,cn006", env=env)
        assert after.out == "cn000\ncn001\ncn006\n"


@needs_slurm
def test_a_slurm_that_is_down_or_hangs_is_one_line(nidmap, refused, home):
    with real_slurm(NAMES[:4], real=0) as slurm:
        env = {**home, "SLURM_CONF": slurm.env["SLURM_CONF"]}
        slurm.freeze_controller()
        for command in (("plan", "-N", "2"), ("nodes", "sort", "cn001,cn002"), ("machine", "show")):
            refused(nidmap(*command, env=env), 4, "scontrol did not answer in 1.5 s")
        slurm.stop_controller()
        refused(nidmap("plan", "-N", "2", env=env), 4)


@needs_slurm
def test_a_job_script_sorts_its_own_nodes_and_srun_starts_ranks_so(home):
    """Nothing is named: no machine, no nodes, no ranks."""
    conf = "SwitchName=a Nodes=cn000,cn002\nSwitchName=b Nodes=cn001,cn003\n"
    conf += "SwitchName=top Switches=a,b\n"
    nidmap = f"{shlex.quote(sys.executable)} -m nidmap"
    script = f"""
        {nidmap} nodes sort --format slurm -o hosts </dev/null &&
        SLURM_HOSTFILE=hosts srun sh -c 'echo "$SLURM_PROCID $SLURMD_NODENAME"'"""
    with real_slurm(NAMES[:4], plugin="tree", topology_conf=conf, real=4) as slurm:
        root = Path(__file__).parents[2]
        env = {**home, "PYTHONPATH": str(root), "SLURM_CPU_BIND": "cores", "SLURM_MPI_TYPE": "none"}
        job = ["salloc", "-Q", "--exclusive", "-N4", "--ntasks=8", "--ntasks-per-node=2"]
        done = slurm.run([*job, "bash", "-c", script], env=env)
    ranks = sorted(line.split() for line in done.stdout.splitlines())
    nodes = ["cn000", "cn000", "cn002", "cn002", "cn001", "cn001", "cn003", "cn003"]
    assert ranks == [[str(rank), node] for rank, node in enumerate(nodes)]
    assert "4 nodes of nidmaptest in switch order" in done.stderr
    assert "1 of 3 consecutive pairs crosses a leaf switch (3 in the original order)" in done.stderr
