# SPDX-License-Identifier: Apache-2.0
"""`nidmap nodes fold|expand|info`, as a user runs them."""

import io
import json
import sys

import pytest

import nidmap
from nidmap.placement.commands import run

MACHINE = "dragonfly:groups=4,chassis=2,blades=4,nodes=4"


@pytest.fixture
def call(capfd, monkeypatch):
    """Run ``nidmap nodes …`` and return exit code, stdout and stderr."""
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)

    def invoke(*argv, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run(["nodes", *argv])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return invoke


@pytest.fixture(scope="module")
def cray(tmp_path_factory):
    """A dump of one XC cabinet pair, written by the numbering rule."""
    rows = ["   NID    (HEX)    NODENAME     TYPE    STATUS        MODE"]
    for nid in range(384):
        col, rest = divmod(nid, 192)
        name = f"c{col}-0c{rest // 64}s{rest // 4 % 16}n{nid % 4}"
        status = "down" if nid == 5 else "up"
        rows.append(f"{nid:6d} {nid:#8x} {name:>11}  compute {status:>9}       batch")
    path = tmp_path_factory.mktemp("xc") / "xc.xtprocadmin"
    path.write_text("\n".join(rows) + "\n")
    return str(path)


@pytest.mark.parametrize(
    ("argv", "stdin", "out"),
    [
        (["fold", "nid00045", "nid00012", "nid00013"], b"", "nid[00045,00012-00013]\n"),
        (["fold", "nid00045,nid00012 nid00013"], b"", "nid[00045,00012-00013]\n"),
        (["fold"], b"n2\nn1\n", "n[2,1]\n"),
        (["fold", "-"], b"n2\nn1\n", "n[2,1]\n"),
        (["fold", "n3", "-"], b"n2\nn1\n", "n[3,2,1]\n"),
        (["fold", "--sort", "n10", "n9", "n9"], b"", "n[9,9-10]\n"),
        (["fold", "--unique", "n2*3,n1"], b"", "n[2,1]\n"),
        (["fold", "--sort", "--unique", "n2*3,n1"], b"", "n[1-2]\n"),
        (["fold", "45-47", "12"], b"", "nid[00045-00047,00012]\n"),
        (["fold", "[45-47],123456"], b"", "nid[00045-00047,123456]\n"),
        (["fold", "-m", MACHINE, "#0-3,nid00009"], b"", "nid[00000-00003,00009]\n"),
        (["expand", "r[1-2]n[01-02]"], b"", "r1n01\nr1n02\nr2n01\nr2n02\n"),
        (["expand", "--format", "comma", "n[2,1]"], b"", "n2,n1\n"),
        (["expand", "--format", "nids", "nid[00045,00012]"], b"", "45\n12\n"),
        (["expand", "--format", "comma", "45-47"], b"", "nid00045,nid00046,nid00047\n"),
        (["expand", "--unique", "-"], b"n1 slots=2\nn2 slots=2\n", "n1\nn2\n"),
        (["expand", "n1:2"], b"", "n1\nn1\n"),
        (["expand", "-"], b"NODELIST\nn[1-2]\n", "n1\nn2\n"),
    ],
)
def test_folding_and_expanding(call, argv, stdin, out):
    assert call(*argv, stdin=stdin) == (0, out, "")


def test_a_machine_gives_names_nids_and_cnames(call, cray):
    assert call("fold", "-m", cray, "c1-0c2s15") == (0, "nid[00380-00383]\n", "")
    assert call("expand", "-m", cray, "--format", "cnames", "nid00381,nid00004") == (
        0,
        "c1-0c2s15n1\nc0-0c0s1n0\n",
        "",
    )
    assert call("expand", "-m", cray, "--format", "nids", "c0-0c0s1") == (0, "4\n5\n6\n7\n", "")
    assert call("expand", "-m", cray, "380*2,c0-0c0s1n0")[1] == "nid00380\nnid00380\nnid00004\n"


def test_files_by_path_and_by_mark(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts").write_text("n2\nn1\n")
    (tmp_path / "n7").write_text("other1\n")
    assert call("fold", "hosts")[1] == "n[2,1]\n"
    assert call("fold", "@hosts", "n3")[1] == "n[2,1,3]\n"
    assert call("fold", "n7")[1] == "other1\n"  # the file wins, as the help says
    assert call("fold", "n8")[1] == "n8\n"


def test_json(call):
    code, out, _ = call("fold", "--json", "n[2,1]")
    assert code == 0
    assert json.loads(out) == {
        "schema": "nidmap.nodelist/1",
        "count": 2,
        "nodelist": "n[2,1]",
        "nodes": ["n2", "n1"],
    }
    assert call("expand", "--json", "n[2,1]")[1] == out


def test_info_is_a_table_with_a_summary(call, cray):
    code, out, err = call("info", "-m", cray, "c0-0c0s1n[1-2],380")
    assert (code, err) == (0, "")
    header, *rows, summary = out.splitlines()
    assert header.split() == (
        ["nid", "name", "cname", "group", "chassis", "blade", "node", "role", "state", "mode"]
    )
    assert [row.split() for row in rows] == [
        ["5", "nid00005", "c0-0c0s1n1", "0", "0", "1", "1", "compute", "down", "batch"],
        ["6", "nid00006", "c0-0c0s1n2", "0", "0", "1", "2", "compute", "up", "batch"],
        ["380", "nid00380", "c1-0c2s15n0", "0", "5", "15", "0", "compute", "up", "batch"],
    ]
    assert summary == "3 nodes of xc.xtprocadmin; they touch 1 group, 2 chassis, 2 blades"


def test_info_as_json(call, cray):
    code, out, _ = call("info", "-m", cray, "--json", "380,5,5")
    assert code == 0
    document = json.loads(out)
    assert document["schema"] == "nidmap.nodes/1"
    assert document["levels"] == ["group", "chassis", "blade", "node"]
    assert document["count"] == 2
    assert document["nodelist"] == "nid[00380,00005]"
    assert document["touches"] == {"group": 1, "chassis": 2, "blade": 2}
    assert [(n["nid"], n["cname"], n["chassis"], n["state"]) for n in document["nodes"]] == [
        (380, "c1-0c2s15n0", 5, "up"),
        (5, "c0-0c0s1n1", 0, "down"),
    ]


def test_info_agrees_with_the_machine(call):
    machine = nidmap.load_machine(MACHINE)
    nodes = json.loads(call("info", "-m", MACHINE, "--json", "#0-127")[1])["nodes"]
    assert [node["name"] for node in nodes] == machine.names.tolist()
    levels = machine.topology.levels
    assert [[node[level] for level in levels] for node in nodes] == machine.coords.tolist()


def test_info_takes_the_machine_from_the_environment(call, monkeypatch):
    monkeypatch.setenv("NIDMAP_MACHINE", MACHINE)
    code, out, _ = call("info", "nid00007")
    assert code == 0
    assert out.splitlines()[1].split()[:2] == ["7", "nid00007"]


@pytest.mark.parametrize(
    ("argv", "stdin", "code", "words"),
    [
        (["fold", ""], b"", 3, ["names no nodes"]),
        (["fold", "-"], b"", 3, ["-: names no nodes"]),
        (["fold", "-"], b"# all gone\n", 3, ["names no nodes"]),
        (["fold", "nid[1-"], b"", 3, ["'nid[1-' has an unmatched bracket"]),
        (["fold", "-"], b"n1\nn2\nn[3-1]\n", 3, ["-:3: '3-1'", "backwards"]),
        (["fold", "0-999999999"], b"", 3, ["1000000000 names", "4000000"]),
        (["expand", "nid[0-999999999]"], b"", 3, ["1000000000 names", "4000000"]),
        (["expand", "-"], b"n1\n\x1b[31mn2\n", 3, ["-:2: '\\x1b[31mn2'"]),
        (["expand", "-"], b"\x00\xff\xfe" * 100, 3, ["-:1: "]),
        (["fold", "@none"], b"", 3, ["none: cannot be read: No such file"]),
        (["fold", "#0-3"], b"", 2, ["'#0' is an index", "-m"]),
        (["fold", "-", "-"], b"n1", 2, ["only once"]),
        (["fold", "7-3"], b"", 3, ["backwards"]),
        (["expand", "--format", "cnames", "n1"], b"", 2, ["needs a machine"]),
        (["expand", "--format", "nids", "login"], b"", 2, ["'login' does not end in a number"]),
        (["expand", "--format", "cnames", "-m", MACHINE, "7"], b"", 2, ["has no cnames"]),
        (["info", "n1"], b"", 2, ["no machine given"]),
        (["info", "-m", MACHINE, "nid7"], b"", 3, ["did you mean nid00007?"]),
        (["info", "-m", MACHINE, ""], b"", 3, ["names no nodes"]),
        (["fold", "--wrong", "n1"], b"", 2, ["--wrong"]),
        (["bend"], b"", 2, ["bend"]),
    ],
)
def test_what_is_refused(call, argv, stdin, code, words):
    got, out, err = call(*argv, stdin=stdin)
    assert (got, out) == (code, "")
    assert err.startswith("nidmap: ")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


class Terminal(io.TextIOWrapper):
    """Standard input that is a terminal nobody types on."""

    def isatty(self):
        return True

    def read(self, *_):
        pytest.fail("waited for a terminal")


def test_without_a_list_on_a_terminal_nothing_hangs(capfd, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO()))
    assert run(["nodes", "fold"]) == 2
    assert "no node list given" in capfd.readouterr().err


def test_help_names_all_commands(call):
    code, out, _ = call("--help")
    assert code == 0
    for command in ("expand", "fold", "free", "info"):
        assert f"  {command} " in out
