# SPDX-License-Identifier: Apache-2.0
"""Outputs as people paste them: with prompts and messages, printed twice, in other tables."""

import json

import numpy as np
import pytest

from nidmap.placement.accounting import read_jobs
from nidmap.placement.errors import ParseError
from nidmap.placement.nodelist import NodeList
from nidmap.placement.readers import read_text
from nidmap.placement.scheduler.availability import read_availability
from nidmap.placement.specs import parse_spec
from nidmap.placement.support.prompts import without_messages, without_prompts
from tests.samples import SAMPLES


def states(text):
    nodes = read_text(text, "x").nodes
    return dict(zip(nodes.name.tolist(), nodes.state.tolist(), strict=True))


PROMPTS = (
    *("$ ", "% ", "> ", "[ann@login1 ~]$ ", "[root@sdb work dir]# ", "ann@login1:~/run$ "),
    *("ann@login1 ~ % ", "login1$ ", "smw:~> ", "sdb:~ # ", "crayadm@smw:/tmp> "),
)


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("name", ["sinfo", "xtprocadmin", "topology-conf", "pbsnodes", "bhosts"])
def test_a_prompt_above_and_below_is_none_of_the_output(prompt, name):
    text = f"{prompt}some-command --with x\n{SAMPLES[name]}{prompt.rstrip()}\n"
    pasted, plain = read_text(text, "x"), read_text(SAMPLES[name], "x")
    assert [f.text for f in pasted.findings] == [f.text for f in plain.findings]
    for column in ("name", "cname", "state"):
        assert np.array_equal(getattr(pasted.nodes, column), getattr(plain.nodes, column))
    assert pasted.nodes.line.tolist() == [line + 1 for line in plain.nodes.line.tolist()]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_list_of_names_below_a_prompt(prompt):
    text = f"{prompt}scontrol show hostnames\nn3\nn1\n{prompt}\n"
    assert NodeList.parse(text) == ("n3", "n1")


@pytest.mark.parametrize(
    "text",
    ["node1# the first\nnode2\n", "node1:4 # four\n", "node1 slots=2 # x\n", "#0-3\n", "n1 # a\n",
     "node1:2\n", "[1-3]\n", "nid[1-3],n5\n", "", "\n\n", "node1  %\n"],
)  # fmt: skip
def test_what_is_no_prompt_stays(text):
    assert without_prompts(text) == text


def test_messages_are_left_out_above_the_output_alone_and_said():
    rows = "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\na up 1:00 2 idle n[1-2]\n"
    text = f"-bash: warning: setlocale: no such locale\nsinfo: error: a plugin is old\n{rows}"
    dump = read_text(text, "x")
    assert dump.nodes.name.tolist() == ["n1", "n2"]
    (said,) = [f for f in dump.findings if f.kind == "message"]
    assert (said.fault, said.text.startswith("2 messages above the dump, such as: -bash:")) == (
        False,
        True,
    )
    alone = "sinfo: error: no controller\n"
    assert without_messages(alone) == (alone, [])
    with pytest.raises(ParseError, match="x:1: 'sinfo: error: no controller' is not in a format"):
        read_text(alone, "x")


def test_a_table_that_sinfo_prints_again_has_no_node_called_by_its_header():
    """As ``sinfo --iterate=60`` does, and who puts the tables of two partitions into one file."""
    head = "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\n"
    date = "Mon Nov 23 10:0{}:00 2026\n"
    text = date.format(0) + head + "a up 1:00 2 idle n[1-2]\n\n"
    text += date.format(1) + head + "a up 1:00 1 alloc n2\nb up 1:00 1 idle n3\n"
    assert states(text) == {"n1": "idle", "n2": "allocated", "n3": "idle"}
    counts = read_text(text, "x").counts
    assert (counts.rows, counts.headers, counts.blank) == (3, 4, 1)
    other = "PARTITION NODELIST AVAIL TIMELIMIT NODES STATE\na n3 up 1:00 1 idle\n"
    with pytest.raises(ParseError, match="x:3: 'PARTITION NODELIST"):
        read_text(head + "a up 1:00 2 idle n[1-2]\n" + other, "x")


@pytest.mark.parametrize(
    ("state", "busy"),
    [("RUNNING", True), ("COMPLETI", True), ("CONFIGUR", True), ("SUSPENDE", True),
     ("COMPLETED", False), ("CANCELLED by 1000", False), ("TIMEOUT", False), ("PENDING", False)],
)  # fmt: skip
@pytest.mark.parametrize("bar", [False, True])
def test_a_job_has_its_nodes_by_its_state_cut_off_or_not(state, busy, bar):
    """``squeue -l`` prints eight letters of a state, sacct ten."""
    if bar:
        text = f"JobID|JobName|State|NodeList|\n7|a b|{state}|n[1-2]|\n7.batch|x|{state}|n1|\n"
    else:
        word = state.split()[0]
        text = f"JOBID NAME STATE TIME NODES NODELIST(REASON)\n7 ab {word} 0:01 2 n[1-2]\n"
    dump = read_text(text, "x")
    assert dump.lists_jobs
    assert ([] if dump.nodes is None else dump.nodes.name.tolist()) == ["n1", "n2"] * busy
    assert NodeList.parse(text) == ("n1", "n2")


@pytest.mark.parametrize(
    "text",
    ["JOBID|NODELIST(REASON)\n7|n[1-2]\n8|(Priority)\n9|\n",
     "JobID|NodeList|State\n7|n[1-2]|RUNNING\n8|None assigned|PENDING\nJobID|NodeList|State\n"],
)  # fmt: skip
def test_tables_with_bars_are_lists_of_jobs(text):
    assert states(text) == {"n1": "allocated", "n2": "allocated"}
    with pytest.raises(ParseError, match=r"does not fit the table above it: '7\|a\|b"):
        read_text(text + "7|a|b|c\n", "x")


LETTERS = {"R": True, "E": True, "S": True, "B": True, "T": True, "Q": False, "H": False,
           "C": False, "F": False, "X": False, "W": False}  # fmt: skip


@pytest.mark.parametrize("letter", LETTERS)
def test_a_pbs_job_has_its_nodes_by_its_state(letter):
    """``qstat -x -f`` and Torque's list jobs that ended, with the hosts that they had."""
    job = "Job Id: {0}.srv\n    Job_Name = j\n    job_state = {1}\n    exec_host = {2}\n\n"
    text = job.format(1, "R", "n1/0*8") + job.format(2, letter, "n2/0*8+n3/0-\n\t3")
    named = {"n2", "n3"} if LETTERS[letter] else set()
    assert states(text).keys() == {"n1"} | named
    jobs = {
        "1.srv": {"job_state": "R", "exec_host": "n1/0*8"},
        "2.srv": {"job_state": letter, "exec_host": "n2/0*8+n3/0*4"},
        "3.srv": {"job_state": "Q"},
    }
    document = {"timestamp": 1, "pbs_version": "23", "pbs_server": "srv", "Jobs": jobs}
    for indent in (None, 4):
        assert states(json.dumps(document, indent=indent)).keys() == {"n1"} | named
    waits = json.dumps(document | {"Jobs": {"3.srv": {"job_state": "Q"}}})
    assert read_text(waits, "x").nodes is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"nodes": [{"name": "n1"}]}', "node list:1: JSON, but neither"),
        ("rank 0=n1 slot=0\nrank 1=n2 slot=0\n", "node list:1: a rankfile of Open MPI"),
    ],
)
def test_what_is_no_list_of_nodes_says_what_it_is(text, said):
    with pytest.raises(ParseError, match=said):
        NodeList.parse(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-----\nLLDP neighbors:\n-----\nInterface:  swp1, via: LLDP\n", "output of lldpcli is"),
        ("lldp.swp1.via=LLDP\nlldp.swp1.chassis.name=n1\n", "lldpcli show neighbors -f json is"),
        ('CA: n1 mlx5_0:\n 0x01 1 1[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==> 1 1[  ] "s" ( )\n',
         "ibnetdiscover --ports lists the same"),
    ],
)  # fmt: skip
def test_other_forms_of_what_is_read_are_named(text, said):
    with pytest.raises(ParseError, match=said):
        read_text(text, "x")


def test_commas_in_an_option_of_a_host_part_no_words():
    text = "n1:2 binding=user:0,1\nn2:2 ifhn=n2-ib binding=user:0+1,2+3\nn3,n4\n"
    assert NodeList.parse(text) == ("n1", "n1", "n2", "n2", "n3", "n4")


@pytest.mark.parametrize("above", ["$ sinfo\n", "sinfo: error: one plugin is old\n"])
def test_states_that_were_pasted_are_no_plain_list_of_nodes(above):
    """Of a list of names the machine says which are free: here all are."""
    machine = parse_spec("tree:4x2")
    rows = "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\n"
    rows += "a up 1:00 2 idle nid0000[1-2]\na up 1:00 5 alloc nid0000[3-7]\n"
    for text in (rows, above + rows):
        free = read_availability(machine, text, "x").machine.free
        assert np.flatnonzero(free).tolist() == [1, 2]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_jobs_below_a_prompt(prompt):
    text = "JobID|User|State|Start|End|NodeList\n"
    text += "7|ann|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|n[1-2]\n"
    pasted = list(read_jobs(f"{prompt}sacct -X -P\n{text}{prompt}\n", "x"))
    assert pasted == list(read_jobs(text, "x"))
    assert pasted[0].nodes == ("n1", "n2")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("2*hosta:1*hostb", ("hosta", "hosta", "hostb")),
        ("hosta:hosta:hostb\n", ("hosta", "hosta", "hostb")),
        ("3*hosta\n", ("hosta",) * 3),
        ("hosta:2*hostb-ib.hpc\n\n2*hostc\n", ("hosta", *["hostb-ib.hpc"] * 2, *["hostc"] * 2)),
        ("hosta:2\nhostb:1\n", ("hosta", "hosta", "hostb")),  # Hydra's
        ("hosta*2,hostb", ("hosta", "hosta", "hostb")),  # Slurm's
        ("hosta", ("hosta",)),
    ],
)
def test_hosts_as_bjobs_prints_them(text, names):
    assert NodeList.parse(text) == names


@pytest.mark.parametrize("text", ["fe80:a:b:c", "2*fe80::1", "x*hosta:hostb", "0*hosta"])
def test_what_bjobs_would_not_print(text):
    with pytest.raises(ParseError):
        NodeList.parse(text)
