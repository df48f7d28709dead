# SPDX-License-Identifier: Apache-2.0
"""The readers against a real slurmctld: what it prints, what it refuses."""

import io
import json
import sys
from types import SimpleNamespace

import pytest

from nidmap.placement.commands import run
from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.readers import read_text
from nidmap.placement.readers.sinfo import QUERY
from tests.real_slurm import needs_slurm, real_slurm
from tests.same_machine import same_machine


@pytest.fixture
def nidmap(capfd, monkeypatch):
    """Run a command on text piped into it."""
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)

    def invoke(*argv, stdin):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = run(list(argv))
        captured = capfd.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return invoke


NAMES = [f"nid{i:05d}" for i in range(24)]
FOREST = """\
# two halls without a common root, one of them uneven
switchname=hall Switches=row,lone
SwitchName = row switches="a,b"
SwitchName=a Nodes=nid[00000-00004] LinkSpeed=7
SwitchName=b Nodes=nid[00005,00007,\\
00006]
SwitchName=lone Nodes=nid00008   # one node
SwitchName=other Nodes=nid[00009-00022]
"""


@needs_slurm
def test_what_slurm_prints_of_a_topology_and_of_its_nodes():
    states = {"nid00003": "drained", "nid00004": "down", "nid00005": "fail"}
    with real_slurm(
        NAMES,
        plugin="tree",
        topology_conf=FOREST,
        real=0,
        features={"nid00007": "gpu,a_long_feature"},
        weights={"nid00008": 7},
        partitions={"all": NAMES, "some": NAMES[:9]},
    ) as slurm:
        shown = slurm.run(["scontrol", "show", "topology"]).stdout
        slurm.scontrol(
            [
                "update nodename=nid00003 state=drain reason=|",
                "update nodename=nid00004 state=down reason=x",
                "update nodename=nid00005 state=fail reason=x",
                "update partitionname=some state=down",
            ]
        )
        query = ["-N", "-o", QUERY]
        printed = {
            " ".join(args): slurm.run(["sinfo", *args]).stdout
            for args in ([], ["-l"], ["-N"], ["-N", "-l"], query)
        }
        words = dict(
            line.split() for line in slurm.run(["sinfo", "-hN", "-o%N %T"]).stdout.splitlines()
        )
    conf, own = assemble([read_text(FOREST)]), assemble([read_text(shown)])
    assert same_machine(own, conf)
    assert set(states) <= {n for n, word in words.items() if not word.startswith("idle")}
    for args, text in printed.items():
        dump = read_text(text, args or "sinfo")
        nodes = dict(zip(dump.nodes.name.tolist(), dump.nodes.state.tolist(), strict=True))
        assert dump.format == "sinfo"
        assert dump.counts.total == len(text.splitlines())
        expected = {n: word.rstrip("*") for n, word in words.items()}
        expected = {n: states.get(n, expected[n]) for n in NAMES}
        silent = {n for n, word in words.items() if word == "idle*"}
        assert nodes == {n: "down" if n in silent else word for n, word in expected.items()}
    full = read_text(printed[f"-N -o {QUERY}"]).nodes
    row = full.name.tolist().index("nid00007")
    assert (full.features[row], full.cores[row]) == ("gpu,a_long_feature", 16)
    assert full.weight[full.name.tolist().index("nid00008")] == 7


@needs_slurm
def test_what_slurm_prints_of_states_is_read_for_its_states(nidmap):
    """Piped into the commands, every form names the nodes that sinfo calls idle, and no other."""
    commands = {
        "sinfo": ["sinfo"],
        "paragraphs": ["scontrol", "show", "nodes"],
        "oneliner": ["scontrol", "--oneliner", "show", "node"],
        "json": ["sinfo", "--json"],
    }
    jobs = {
        "squeue": ["squeue"],
        "long": ["squeue", "-l"],
        "json": ["squeue", "--json"],
        "records": ["scontrol", "show", "job"],
    }
    with real_slurm(NAMES, plugin="none", real=0) as slurm:
        slurm.occupy(["nid00000", "nid00002"], "a job R of")
        slurm.run(["salloc", "--no-shell", "-n1", "-w", "nid00010", "-J", "part"])
        slurm.run(["sbatch", "-N24", "--wrap=true", "-J", "waits"])
        slurm.drain(["nid00002", "nid00003"])
        slurm.scontrol(["update nodename=nid00004 state=down reason=State=IDLE"])
        printed = {name: slurm.run(argv).stdout for name, argv in commands.items()}
        listed = {name: slurm.run(argv).stdout for name, argv in jobs.items()}
        idle = slurm.run(["sinfo", "-hN", "-t", "idle", "-o", "%N %T"]).stdout.splitlines()
    free = sorted(line.split()[0] for line in idle if line.endswith(" idle"))
    assert not {"nid00000", "nid00002", "nid00003", "nid00004", "nid00010"} & set(free)
    for name, text in printed.items():
        for machine in ([], ["-m", "torus:24"]):
            done = nidmap("nodes", "free", *machine, "--from", "-", "--json", stdin=text)
            assert json.loads(done.out)["nodes"] == free, (name, done.err)
        plan = ["plan", "-m", "torus:24", "-N", str(len(free)), "--from", "-", "--json"]
        assert sorted(json.loads(nidmap(*plan, stdin=text).out)["nodes"]) == free
    rest = [n for n in NAMES if n not in ("nid00000", "nid00002", "nid00010")]
    for name, text in listed.items():
        done = nidmap("nodes", "free", "-m", "torus:24", "--from", "-", "--json", stdin=text)
        assert json.loads(done.out)["nodes"] == rest, name
        done = nidmap("nodes", "free", "--from", "-", stdin=text)
        assert (done.code, done.out) == (3, "")
        assert "lists the nodes with jobs" in done.err


@needs_slurm
@pytest.mark.parametrize(
    "text",
    [
        "SwitchName=a Nodes=nid00000\nSwitchName=top Switches=a,b\n",
        "SwitchName=a Switches=a\n",
        "SwitchName=a Switches=b\nSwitchName=b Switches=a\n",
        "SwitchName=a Nodes=nid00000\nSwitchName=a Nodes=nid00001\n",
        "SwitchName=a Nodes=nid00000 Colour=red\n",
        "SwitchName=a Nodes=nid00000\nSwitchName=top Switches=b,a\n",
    ],
)
def test_what_slurm_refuses_is_refused(text):
    with pytest.raises(AssertionError, match="slurmctld ended"):
        _start(text)
    with pytest.raises(Exception, match=r"^t:[12]: "):
        assemble([read_text(text, "t")])


def _start(text):
    with real_slurm(NAMES[:2], plugin="tree", topology_conf=text, real=0):
        pass
