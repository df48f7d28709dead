# SPDX-License-Identifier: Apache-2.0
"""A PBS node file that names the first host alone: the others by qstat, or it is said."""

import json
import stat

import pytest

from nidmap.placement.commands import run as nidmap
from nidmap.placement.errors import LaunchError, ParseError
from nidmap.placement.nodelist import NodeList
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.launch.allocation import allocation, job_on

TOPOLOGY = """SwitchName=leaf1 Nodes=node[1-4]
SwitchName=leaf2 Nodes=node[5-8]
SwitchName=root Switches=leaf[1-2]
"""
#: PBS Pro cuts long values and goes on behind a tab.
FULL = """Job Id: 7600424.pbs02
    Job_Name = exec_host = node7/0
    Job_Owner = u@login001.example
    job_state = R
    exec_host = node1/1*2+node5/1*2+node5/2*2+n
\tode3/0*2
    exec_vnode = (node1:ncpus=2:mem=1048576kb:ngpus=0)+(node5:ncp
\tus=2:mem=1048576kb)+(node5:ncpus=2)+(node3:ncpus=2)
    Hold_Types = n
"""
#: Torque's slots are numbers.
TORQUE = "Job Id: 7.s\n    job_state = R\n    exec_host = node1/0-1+node5/0-3+node3/0,2\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A job script's folder: PATH with a qstat of ours, a node file of one line."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topology.conf").write_text(TOPOLOGY)
    (tmp_path / "nodes").write_text("node1\nnode1\n")

    def job(script="", **more):
        if script:
            path = tmp_path / "qstat"
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        env = {"PBS_NODEFILE": "nodes", "PBS_JOBID": "7600424.pbs02",
               "PATH": f"{tmp_path}:/usr/bin:/bin", **more}  # fmt: skip
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        return env

    return job


def printing(text):
    """Return a shell script that prints a text where it is asked for the job by its id."""
    return f"[ \"$*\" = '-f 7600424.pbs02' ] || exit 3\ncat <<'EOF'\n{text}EOF"


@pytest.mark.parametrize("text", [FULL, TORQUE])
def test_qstat_says_the_other_hosts(here, text):
    job = allocation(here(printing(text)))
    assert list(job.nodes) == ["node1", "node5", "node3"]
    assert job.cpus.tolist() == [2, 4, 2]
    assert "PBS_NODEFILE names node1 alone: hosts by qstat -f" in job.words


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("", "there is no qstat to ask for more"),
        ("echo 'qstat: Unknown Job Id 7600424' >&2; exit 153", "(exit code 153): qstat: Unknown"),
        (printing("Job Id: 7600424.pbs02\n    job_state = R\n"), "has no exec_host"),
        (printing("    exec_host = node1;node2\n"), "is not part of a PBS host list"),
    ],
)
def test_what_qstat_does_not_say_is_said(here, script, said):
    env = here(script)
    if not script:
        env["PATH"] = "/nowhere"
    job = allocation(env)
    assert list(job.nodes) == ["node1"]
    assert job.tasks.tolist() == [2]
    assert job.words.startswith("the 1 node of this job (PBS_NODEFILE names one node; ")
    assert said in job.words


def test_one_node_that_is_all_is_no_note(here):
    job = allocation(here(printing("    exec_host = node1/0*2\n")))
    assert (list(job.nodes), job.note, job.words) == (["node1"], "", "the 1 node of this job")


def test_torque_that_states_more_nodes_is_refused(here):
    env = here("exit 1", PBS_NUM_NODES="3")
    with pytest.raises(
        LaunchError, match=r"names one node of 3 .PBS_NUM_NODES.; qstat -f"
    ) as caught:
        allocation(env)
    assert "use --nodes" in str(caught.value)


def test_several_lines_ask_nobody(here, tmp_path):
    env = here(f"touch {tmp_path}/asked")
    (tmp_path / "nodes").write_text("node1\nnode2\n")
    assert list(allocation(env).nodes) == ["node1", "node2"]
    assert not (tmp_path / "asked").exists()


def test_a_service_node_alone_is_refused_with_what_was_asked(here, tmp_path):
    env = here("exit 2")
    machine = parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=2")
    machine.role[0] = "service"
    (tmp_path / "nodes").write_text("nid00000\n")
    with pytest.raises(
        ParseError, match="not a compute node; PBS_NODEFILE names one node; qstat -f"
    ):
        job_on(machine, env)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("nodes sort -m topology.conf", "node1 node3 node5"),
        ("order -m topology.conf --pattern ring --strategy row-major --format seq",
         "node1 node5 node3"),
        ("plan -m topology.conf", "node[1,3,5]"),
    ],
)  # fmt: skip
def test_every_command_is_on_the_whole_job(here, capsys, monkeypatch, words, expected):
    here(printing(FULL))
    with open("/dev/null") as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert nidmap(words.split()) == 0
    said = capsys.readouterr()
    assert " ".join(said.out.split()) == expected
    assert "3 nodes of this job (PBS_NODEFILE names node1 alone: hosts by qstat -f)" in said.err


def test_a_list_of_qstat_as_json():
    """``qstat -f -F json``: slashes may be escaped, jobs that wait have no hosts."""
    jobs = {
        "7.s": {"Job_Name": "a", "exec_host": "n1/0*48+n2/0*48", "exec_vnode": "(n1:ncpus=48)"},
        "8.s": {"Job_Name": "b", "job_state": "Q"},
    }
    text = json.dumps({"timestamp": 1, "pbs_version": "20.0.1", "Jobs": jobs})
    for written in (text, text.replace("/", "\\/")):
        assert NodeList.parse(written).unique == ("n1", "n2")
        assert len(NodeList.parse(written)) == 96
    with pytest.raises(ParseError, match="not JSON that qstat printed; is it complete"):
        NodeList.parse(text[:-9], "jobs.json")
    with pytest.raises(ParseError, match="has no Jobs with an exec_host"):
        NodeList.parse('{"exec_host": 7}', "jobs.json")
