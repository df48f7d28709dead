# SPDX-License-Identifier: Apache-2.0
"""What people paste: the output of schedulers and launchers, whole."""

import io
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import ParseError
from nidmap.placement.names.hostlist import TextPiece
from nidmap.placement.names.pasted import (
    exec_host,
    flux_resource_set,
    pe_hosts,
    pieces,
    read_list,
    scontrol,
    table,
)
from nidmap.placement.nodelist import NodeList
from nidmap.placement.support.reading import LIMIT

SQUEUE = "%18.18s %9.9s %8.8s %8.8s %2.2s %10.10s %6.6s %s"
HEADER = SQUEUE % ("JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)")

job_names = st.text(alphabet="ab1 ()[]-,|;=", min_size=1, max_size=12).filter(str.strip)
allocations = st.lists(st.integers(0, 60), min_size=1, max_size=8, unique=True)
jobs = st.lists(st.tuples(job_names, st.one_of(allocations, st.just("(Resources)"))), max_size=6)


def row(number, name, nodes):
    """Return one row as squeue prints it by default."""
    waits = isinstance(nodes, str)
    text = nodes if waits else NodeList(f"nid{n:05d}" for n in nodes).fold()
    count = 4 if waits else len(nodes)
    state, time = ("PD", "0:00") if waits else ("R", "1-02:03:04")
    return SQUEUE % (number, "workq", name, "ada", state, time, count, text)


@given(jobs)
def test_the_nodes_of_all_running_jobs(table):
    lines = [row(k + 1, name, nodes) for k, (name, nodes) in enumerate(table)]
    wanted = [f"nid{n:05d}" for _, nodes in table if not isinstance(nodes, str) for n in nodes]
    text = "".join(f"{line}\n" for line in [HEADER, *lines])
    assert list(NodeList.parse(text)) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "Fri Nov 21 11:55:42 2025\n"
        "  JOBID PARTITION     NAME     USER    STATE      TIME TIME_LIMI  NODES NODELIST(REASON)\n"
        "      1     workq my (own)     root  RUNNING      0:00 UNLIMITED      2 n[1-2]\n"
        "      2     workq    waits     root  PENDING      0:00 UNLIMITED     40"
        " (ReqNodeNotAvail, UnavailableNodes:n[7-9])\n",
        "NODELIST\nn[1-2]\n",
        "JOBID NODELIST\n1 n1\n2 \n3 n2\n",
        "JOBID NAME NODELIST ST\n2 waits  PD\n1 my (own) job n[1-2] R\n",
        "NODELIST NODES NAME\nn1 1 a b c\nn2 1 d\n",
        "NAME ST NODES NODELIST(REASON)\n"
        "a b c R 2 n[1-2]\n"
        "x y PD 4 (launch failed requeued held)\n",
        "JOBID  ST  NODES NODELIST\n7      CG      9 n[1-2]\n",
        "NODELIST   NODES PARTITION STATE \n"
        "n1             1    workq* idle\n"
        "n1             1     debug idle\n"
        "n2             1    workq* mix-\n",
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
        "workq*       up   infinite      2  alloc n[1-2]\n"
        "debug        up   infinite      1  alloc n1\nold        down   infinite      0    n/a \n",
        "HOSTNAMES STATE\nn1 idle\nn2 idle\n",
        "JobID           NodeList \n"
        "------------ -----------\n"
        "7                 n[1-2]\n"
        "7.batch               n1\n"
        "7.0               n[1-2]\n8          None assigned\n",
        "JobId=7 JobName=x\n"
        "   ReqNodeList=(null) ExcNodeList=n9\n"
        "   NodeList=n[1-2]\n"
        "   BatchHost=n1\n\n"
        "JobId=8 JobName=y\n   ReqNodeList=n5 ExcNodeList=(null)\n   NodeList=(null)\n",
        "JobId=7 JobName=NodeListy ReqNodeList=n5 ExcNodeList=n6 NodeList=n[1-2] BatchHost=n1\n",
        "NodeName=n1 Arch=x86_64 CoresPerSocket=1\n"
        "   NodeAddr=n7 State=IDLE\n\n"
        "NodeName=n2 Arch=x86_64\n",
        "StepId=7.0 UserId=0\n   State=RUNNING Partition=p NodeList=n[1-2]\n",
        "ReservationName=r StartTime=2025-11-21T11:55:42\n   Nodes=n[1-2] NodeCnt=2 CoreCnt=2\n",
        "PartitionName=p\n"
        "   AllocNodes=ALL Default=YES\n"
        "   Nodes=n[1-2]\n"
        "   State=UP TotalNodes=2\n",
        "exec_host = n1/0+n2/0\n",
        "Job Id: 7.pbs\n"
        "    Job_Name = x\n"
        "    exec_host = n1/0\n"
        "\t+n2/0\n"
        "    exec_vnode = (n1:ncpus=1)+(n2:ncpus=1)\n",
        "n1/0+n2/3\n",
        "\ufeff# from Windows\r\nn1\r\nn2\r\n",
    ],
)  # fmt: skip
def test_two_nodes_however_they_are_said(text):
    assert list(NodeList.parse(text, "paste")) == ["n1", "n2"]


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("n1/0*24+n2/0*24", {"n1": 24, "n2": 24}),
        ("exec_host = n1/0*2+n2/1*3\n", {"n1": 2, "n2": 3}),
        ("n1/0-3,5+n2/7", {"n1": 5, "n2": 1}),
        ("n1/0+n1/1+n2/0+n1/2", {"n1": 3, "n2": 1}),
        ("n1\nn1\nn2\nn1\n", {"n1": 3, "n2": 1}),
        ("n1 slots=2\nn2 slots=4 max_slots=8\n", {"n1": 2, "n2": 4}),
        ("n1:2\nn2:4\n", {"n1": 2, "n2": 4}),
        ("n1:2 binding=rr\nn2\n", {"n1": 2, "n2": 1}),
        ("n1 5 n2 4", {"n1": 5, "n2": 4}),  # LSB_MCPU_HOSTS
        ("n1 5\nn2 4\n", {"n1": 5, "n2": 4}),
        ("n1 slots = 2\nn2 slots= 4  max-slots =8\n", {"n1": 2, "n2": 4}),
        ("n1 cpu=2\nn2 count=3 cpu-max=4\nn3\tslots=2\tslots_max=2\n", {"n1": 2, "n2": 3, "n3": 2}),
        ("n1.cm 8 all.q@n1.cm UNDEFINED\nn2.cm 4 all.q@n2.cm <NULL>\n", {"n1.cm": 8, "n2.cm": 4}),
        ("n1 2 UNDEFINED UNDEFINED\n", {"n1": 2}),
        ("10.0.0.1\n10.0.0.1 \n10.0.0.2 3\n", {"10.0.0.1": 2, "10.0.0.2": 3}),
    ],
)
def test_slots_of_a_node_are_repeats(text, counts):
    assert Counter(NodeList.parse(text)) == counts


@pytest.mark.parametrize("text", ["5 n1", "n1 5 6", "n1\n5\nn2", "n1 0", "n1 00005", "n1,5 n2"])
def test_a_bare_number_among_names_is_refused(text):
    with pytest.raises(ParseError, match="is a bare number among names"):
        NodeList.parse(text)


@pytest.mark.parametrize("text", ["n1 5 n2", "n1 n2 5", "n1 5 n2 4 n3", "n0\nn1 5 n2\n"])
def test_a_name_without_a_count_among_counted_ones_is_refused(text):
    """LSF counts every host of LSB_MCPU_HOSTS: an odd number of words is a list cut off."""
    with pytest.raises(ParseError, match="has no count, but others on its line do"):
        NodeList.parse(text)


@pytest.mark.parametrize(
    "text", ["2001:db8::1", "fe80::1%eth0", "[fe80::1]:2", "::1", "n1 fe80:0:0:0:0:0:0:1:2"]
)
def test_an_ipv6_address_is_refused_as_one(text):
    """Never taken for a name with a count of slots."""
    with pytest.raises(ParseError, match="is an IPv6 address, not a node name"):
        NodeList.parse(text)


@pytest.mark.parametrize(
    "text", ["45 12", "45-47 12", "[45-47] 12", "n1,5", "n1, 5 ,n2", "45*3 12"]
)
def test_nids_alone_and_between_commas_stay_words(text):
    assert any(word.isdigit() for word in NodeList.parse(text))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("n1 2 q@n1 UNDEFINED\nn2 q@n2\n", 2, ["not a line of Grid Engine's PE_HOSTFILE"]),
        (
            HEADER + "\n" + row(1, "a", [1, 2]).replace("     2 nid", "     9 nid"),
            2,
            ["2 nodes, but the row says 9"],
        ),
        ("NODELIST NODES\nnid[00001-00004,0000 4\n", 2, ["unmatched bracket"]),
        (HEADER + "\n" + row(1, "a", [1]) + "\nslurm_load_jobs error\n", 3, ["does not fit"]),
        (row(1, "a", [1]), 1, ["without its header", "squeue -h -o %N"]),
        (row(1, "a (b)", "(Priority)"), 1, ["without its header"]),
        ("n1 1 workq* idle\nn1 1 debug idle\n", 1, ["'n1 1 workq* idle' is a row"]),
        ("n1 idle\nn2 alloc*\n", 1, ["'n1 idle' is a row of a table without its header"]),
        ("workq*   up   infinite   2  alloc n[1-2]\n", 1, ["without its header"]),
        ("JOBID NAME NODELIST COMMENT\n1 my job n1 so so\n", 2, ["does not fit"]),
        ("JobId=7 JobName=x\n   NodeList=n99\n   NodeList=n1\n", 3, ["NodeList= is given twice"]),
        ("JobId=7 JobName=x NodeList=n99 a=b NodeList=n1\n", 1, ["NodeList= is given twice"]),
        ("exec_host = n1/0*24+n2\n", 1, ["'n2' is not part of a PBS host list"]),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_understood_is_refused(text, line, words):
    with pytest.raises(ParseError) as caught:
        NodeList.parse(text, "paste")
    assert (caught.value.source, caught.value.line) == ("paste", line)
    for word in words:
        assert word in str(caught.value)


def test_an_argument_is_a_list_a_file_or_standard_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts").write_text("n1\nn2\n")
    (tmp_path / "n7").mkdir()
    assert read_list("hosts", "--nodes") == ("n1\nn2\n", "hosts")
    assert read_list("@hosts") == ("n1\nn2\n", "hosts")
    assert read_list(str(tmp_path / "hosts")) == ("n1\nn2\n", str(tmp_path / "hosts"))
    assert read_list("n[1-2]", "--nodes") == ("n[1-2]", "--nodes")
    assert read_list("n7", "--nodes") == ("n7", "--nodes")  # a folder is not a list
    assert read_list("", "--nodes") == ("", "--nodes")
    assert read_list("a\0b", "--nodes") == ("a\0b", "--nodes")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfn3\n")))
    assert read_list("-", "--nodes") == ("\ufeffn3\n", "--nodes -")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert read_list("-") == ("", "-")


@pytest.mark.parametrize(
    ("argument", "words"),
    [("@none", ["none", "No such file"]), ("@n7", ["n7", "directory"]), ("@", ["@"])],
)
def test_a_file_that_cannot_be_read(tmp_path, monkeypatch, argument, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n7").mkdir()
    with pytest.raises(ParseError) as caught:
        read_list(argument)
    for word in words:
        assert word in str(caught.value)


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ParseError, match="standard input is closed"):
        read_list("-")
    gone = io.TextIOWrapper(io.BytesIO(b"n1"))
    gone.close()
    monkeypatch.setattr(sys, "stdin", gone)
    with pytest.raises(ParseError, match="standard input is closed"):
        read_list("-")


def test_a_file_larger_than_any_list(tmp_path):
    path = tmp_path / "hosts"
    with path.open("wb") as stream:
        stream.truncate(LIMIT + 1)
    with pytest.raises(ParseError, match=f"holds more than {LIMIT >> 20} MiB"):
        read_list(str(path))


def test_bytes_that_are_no_text_name_no_node(tmp_path):
    path = tmp_path / "hosts"
    path.write_bytes(b"n1\nn2\xff\xfe\n")
    text, source = read_list(str(path))
    with pytest.raises(ParseError) as caught:
        NodeList.parse(text, source)
    assert caught.value.line == 2


def test_pieces():
    found, once = pieces("NODELIST   NODES\nn[1-2]   2\n", "")
    assert found == [TextPiece(text="n[1-2]", line=2, expected=2)]
    assert not once


def test_pe_hosts():
    assert pe_hosts("n1.cm 8 all.q@n1.cm UNDEFINED\nn2.cm 4 all.q@n2.cm <NULL>\n", "")[
        1
    ] == TextPiece(text="n2.cm:4", line=2, expected=0)


def test_scontrol():
    assert scontrol("JobId=7 JobName=a\n   ReqNodeList=(null)\n   NodeList=n[1-2]\n", "") == [
        TextPiece(text="n[1-2]", line=3, expected=0)
    ]


def test_exec_host():
    assert [piece.text for piece in exec_host("n1/0*24+n2/0-3,5", 1, "")] == ["n1:24", "n2:5"]


def test_flux_resource_set():
    assert flux_resource_set(
        '{"version":1,"execution":{"R_lite":[],"nodelist":["n[1-2]"]}}', ""
    ) == [TextPiece(text="n[1-2]", line=1, expected=0)]


def test_table():
    rows = "JOBID NAME ST TIME NODES NODELIST(REASON)\n7 my job R 0:01 2 n[1-2]\n"
    assert table(rows + "8 b PD 0:00 2 (Priority)\n", "") == (
        [TextPiece(text="n[1-2]", line=2, expected=2)],
        False,
    )
