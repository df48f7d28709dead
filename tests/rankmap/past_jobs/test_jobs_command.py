# SPDX-License-Identifier: Apache-2.0
"""``nidmap jobs`` as a user meets it: every form of answer, and one line for what is wrong."""

import csv
import io
import json

import pytest

from nidmap.placement.commands import run
from nidmap.rankmap.past_jobs import read_applications

MACHINE = "fattree:leaf=4,leaves=6,spines=1,bw=1"

TABLE = """\
JobID|JobName|User|State|Start|End|NodeList
1|lammps-1|ada|COMPLETED|2024-05-01T00:00:00|2024-05-01T10:00:00|nid[00000-00001,00004-00005]
1.batch|batch||COMPLETED|2024-05-01T00:00:00|2024-05-01T10:00:00|nid00000
2|=cmd|bob|CANCELLED by 7|2024-05-01T01:00:00|2024-05-01T02:00:00|nid[00008-00009]
3|lammps-2|ada|RUNNING|2024-05-01T01:00:00|Unknown|nid[00002-00003,00006-00007],elsewhere1
4|x|ada|PENDING|Unknown|Unknown|None assigned
"""

APPLICATIONS = """\
[[application]]
name = "lammps*"
pattern = "alltoall"
communication = 0.3
"""


@pytest.fixture
def tool(tmp_path, monkeypatch, capfd):
    """Run the command in an empty folder with a table of jobs and a file of applications."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)
    (tmp_path / "jobs.txt").write_text(TABLE)
    (tmp_path / "mine.toml").write_text(APPLICATIONS)

    def call(*words):
        capfd.readouterr()
        code = run(["jobs", *words])
        out, err = capfd.readouterr()
        return code, out, err

    return call


def test_a_sentence_two_tables_and_what_they_rest_on(tool):
    code, out, _ = tool("jobs.txt", "-m", MACHINE, "--applications", "mine.toml")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith(
        "2 of the last 3 jobs were placed at least 10 % worse than they could have been; "
    )
    assert lines[0].endswith("above all lammps on 4 nodes")
    assert any(line.split()[:4] == ["lammps", "4", "2", "2"] for line in lines)
    assert "note: not in the machine: 1 node of the jobs" in lines
    assert "note: 1 job of unknown pattern: judged for stencil:auto and for alltoall" in lines


def test_json_adds_up(tool):
    code, out, _ = tool("jobs.txt", "-m", MACHINE, "--applications", "mine.toml", "--json")
    found = json.loads(out)
    assert (code, found["schema"], found["jobs_judged"]) == (0, "nidmap.jobs/1", 3)
    first = next(job for job in found["jobs"] if job["id"] == "1")
    assert (first["nodes"], first["touches"], first["free"]) == (4, {"leaf": 2}, 24)
    assert first["slowdown"]["likely"] == pytest.approx(4 / 3, rel=1e-3)
    assert first["node_hours"] == 40
    saved = 40 * 0.3 * (1 - 1 / first["slowdown"]["likely"])
    assert first["saved_node_hours"]["likely"] == pytest.approx(saved, rel=1e-3)
    third = next(job for job in found["jobs"] if job["id"] == "3")
    assert (third["nodes"], third["end"], third["free"]) == (4, None, 24 - 4 - 2)
    total = sum(job["saved_node_hours"]["high"] for job in found["jobs"])
    assert found["saved_node_hours"]["high"] == pytest.approx(total, abs=1e-3)


def test_users_and_the_last_jobs(tool):
    count = lambda *words: json.loads(tool("jobs.txt", "-m", MACHINE, "--json", *words)[1])  # noqa: E731
    assert [job["id"] for job in count("--user", "ada")["jobs"]] == ["1", "3"]
    assert len(count("--last", "1")["jobs"]) == 1
    assert len(count("--last", "0", "--user", "all")["jobs"]) == 3
    assert count("--user", "ada", "--last", "1")["sentence"].startswith("ada's last job was placed")


def test_down_nodes_could_not_be_had(tool, tmp_path):
    (tmp_path / "sinfo.txt").write_text(
        "NODELIST NODES PARTITION STATE\n" + "".join(
            f"nid{k:05d} 1 main {'down*' if k > 11 else 'idle'}\n" for k in range(24)
        )
    )  # fmt: skip
    _, out, err = tool("jobs.txt", "-m", MACHINE, "--state", "sinfo.txt", "--json")
    assert not err
    found = json.loads(out)
    assert found["jobs"][0]["free"] == 12
    assert any(note.startswith("12 nodes left out, which are down") for note in found["notes"])


def test_csv_has_a_row_a_job_and_no_formulas(tool, tmp_path):
    assert tool("jobs.txt", "-m", MACHINE, "-o", "out.csv")[0] == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert [row["id"] for row in rows] == ["1", "2", "3"]
    assert rows[1]["name"] == "'=cmd"
    assert float(rows[0]["slowdown_high"]) >= float(rows[0]["slowdown_low"]) >= 1


def test_pictures(tool, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("out.png", "out.svg"):
        code, _, err = tool("jobs.txt", "-m", MACHINE, "-o", name)
        assert (code, "placed at least 10 % worse" in err) == (0, True)
    assert "<svg" in (tmp_path / "out.svg").read_text()
    assert (tmp_path / "out.png").read_bytes()[:4] == b"\x89PNG"


def test_without_bandwidths_no_node_hours_are_told(tool):
    machine = "tree:4x6,dist=1:2"
    _, out, _ = tool("jobs.txt", "-m", machine)
    assert "by distance (node-hours unknown: " in out.splitlines()[0]
    found = json.loads(tool("jobs.txt", "-m", machine, "--json")[1])
    assert found["saved_node_hours"] is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["none.txt"], 3, "cannot be read"),
        (["jobs.txt", "--user", "eve"], 2, "no job of user eve"),
        (["jobs.txt", "--state", "jobs.txt"], 3, "jobs.txt"),
        (["jobs.txt", "-o", "x.pdf"], 2, ".pdf is not supported"),
        (["jobs.txt", "--json", "-o", "x.csv"], 2, "give either --json or -o x.csv"),
        (["jobs.txt", "--applications", "bad.toml"], 3, "bad.toml: "),
        (["jobs.txt", "--applications", "worse.toml"], 3, "worse.toml: "),
        (["broken.txt"], 3, "broken.txt:2: start 'x' is not a time"),
        (["waiting.txt"], 3, "lists no jobs with nodes"),
        (["elsewhere.txt"], 3, "no job has a node of"),
        ([], 4, "sacct"),
    ],
)
def test_what_is_wrong_is_one_line(tool, tmp_path, monkeypatch, words, code, said):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "bad.toml").write_text("[[application]]\npatern = 'alltoall'\n")
    (tmp_path / "worse.toml").write_text("[[application]]\npattern = 'nonsense'\n")
    (tmp_path / "broken.txt").write_text("JobID|NodeList|Start|End\n1|nid00001|x|\n")
    (tmp_path / "waiting.txt").write_text("JobID|NodeList|Start|End\n1|None assigned|5|\n")
    (tmp_path / "elsewhere.txt").write_text("JobID|NodeList|Start|End\n1|other1|5|\n")
    found, out, err = tool("-m", MACHINE, *words)
    assert (found, out) == (code, "")
    assert said in err
    assert err.count("\n") == 1


def test_shares_and_their_names(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("[[application]]\nuser = 'ada'\ncommunication = [0.2, 0.4]\nppn = 32\n")
    (found,) = read_applications(str(path))
    assert (found.share.low, found.share.high, found.ppn, found.patterns[1]) == (
        0.2, 0.4, 32, "alltoall",
    )  # fmt: skip
