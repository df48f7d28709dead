# SPDX-License-Identifier: Apache-2.0
"""Traces in every format, and what is wrong with them: one line, or counted and said."""

import gzip

import numpy as np
import pytest

from nidmap.placement.errors import ParseError, UsageError
from nidmap.workloads.replay import readers
from nidmap.workloads.replay.readers import read_trace
from nidmap.workloads.replay.synthetic import parse_synthetic, synthetic_trace
from nidmap.workloads.replay.trace import fit_trace

HEAD = "; Version: 2.2\n; MaxNodes: 4\n; MaxProcs: 64\n;\n"


def swf(*jobs):
    """Return SWF of (id, submit, wait, run, processors, limit)."""
    return HEAD + "".join(
        f"{j} {s} {w} {r} {p} -1 -1 {p} {limit} -1 1 7 1 3 1 -1 -1 -1\n"
        for j, s, w, r, p, limit in jobs
    )


@pytest.fixture
def write(tmp_path):
    def put(text, name="trace"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return put


def test_swf_plain_and_packed(write):
    text = swf((1, 100, 5, 60, 16, 120), (2, 130, -1, 10, 17, -1))
    for raw in (text.encode(), gzip.compress(text.encode())):
        trace = read_trace(write(raw))
        assert trace.submit.tolist() == [0, 30]
        assert trace.run.tolist() == [60, 10]
        assert trace.limit.tolist() == [120, 10]
        assert trace.nodes.tolist() == [1, 2]
        assert (trace.user[0], trace.name[0]) == ("user7", "program3")
        assert "16 processors per node (64 on 4 nodes), rounded up" in trace.remarks
        assert any("1 job without a time limit" in remark for remark in trace.remarks)
    assert read_trace(write(text), 1.0).nodes.tolist() == [16, 17]


def test_what_cannot_be_replayed_is_counted(write):
    jobs = [(1, 50, 0, -1, 16, 60), (2, -5, 0, 60, 16, 60), (3, 20, 0, 60, 0, 60),
            (4, 10, 0, 60, 16, 30), (5, 5, 0, 60, 16, 90)]  # fmt: skip
    trace = read_trace(write(swf(*jobs)))
    assert trace.ids.tolist() == ["5", "4"]
    for remark in ("1 job left out: no time of submission", "1 job left out: no run time",
                   "1 job left out: no number of nodes", "1 job out of order: sorted by submission",
                   "1 job ran past the limit: the run time is taken"):  # fmt: skip
        assert remark in trace.remarks


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (HEAD + "1 2 3\n", 5, "3 fields, but a job in SWF has 18"),
        (swf((1, 0, 0, 1, 1, 1)) + "2 0 0 1 1 -1 -1", 6, "7 fields"),
        (swf((1, 0, 0, 1, 1, 1)) + "2 0 x" + " 0" * 15 + "\n", 6, "'x' is not a number"),
        (HEAD + "1" * (1 << 21), 5, "a line of more than 1,048,576 bytes"),
        ("hello\n", 1, "'hello' is not the start of a trace"),
        ("", 0, "is empty"),
        (HEAD, 0, "no job that can be replayed"),
        ("JobID|Start|End|NodeList\n1|x|2024-05-01|n1\n", 2, "start 'x' is not a time"),
    ],
)  # fmt: skip
def test_a_bad_trace_is_one_line(write, text, line, words):
    with pytest.raises(ParseError) as error:
        read_trace(write(text))
    assert words in str(error.value)
    assert error.value.line == line


def test_traces_are_read_in_blocks_and_errors_named_by_their_line(write, monkeypatch):
    monkeypatch.setattr(readers, "_BLOCK", 7)
    text = swf(*[(k, k, 0, 5 if k % 3 else -1, 16, 60) for k in range(1, 101)])
    trace = read_trace(write(text))
    assert trace.ids.tolist() == [str(k) for k in range(1, 101) if k % 3]
    assert "33 jobs left out: no run time" in trace.remarks
    with pytest.raises(ParseError) as error:
        read_trace(write(text + "101 x\n"))
    assert error.value.line == text.count("\n") + 1
    head, job = "JobID|Start|End|NodeList\n", "1|2024-05-01|2024-05-02|n1\n"
    assert len(read_trace(write(head + 20 * job))) == 20
    with pytest.raises(ParseError) as error:
        read_trace(write(head + 20 * job + "1|x|2024-05-01|n1\n"))
    assert error.value.line == 22


def test_a_cut_gzip_is_one_line(write):
    whole = gzip.compress(swf(*[(k, k, 0, k, 1, k) for k in range(1, 5000)]).encode())
    with pytest.raises(ParseError, match="truncated gzip"):
        read_trace(write(whole[: len(whole) // 2]))


def test_accounts_with_and_without_submission(write):
    text = (
        "JobID|User|Submit|Start|End|Timelimit|NodeList|JobName\n"
        "1|ada|2024-05-01T00:00:00|2024-05-01T00:01:00|2024-05-01T01:01:00|02:00:00|n[1-3]|lmp|1\n"
        "1.0|ada||2024-05-01T00:01:00|2024-05-01T01:01:00||n[1-3]|lmp\n"
        "2|bob|Unknown|2024-05-01T00:02:00|2024-05-01T00:03:00|UNLIMITED|n4|cp2k\n"
        "3|bob|2024-05-01T00:02:00|2024-05-01T00:02:30|Unknown|01:00|n5|cp2k\n"
    )
    trace = read_trace(write(text))
    assert trace.ids.tolist() == ["1", "2"]
    assert trace.submit.tolist() == [0, 120]
    assert trace.run.tolist() == [3600, 60]
    assert trace.limit.tolist() == [7200, 60]
    assert trace.nodes.tolist() == [3, 1]
    assert trace.name.tolist() == ["lmp|1", "cp2k"]
    assert "1 job left out: still running" in trace.remarks


def test_the_csv_of_nidmap_jobs(write, tmp_path, monkeypatch, capfd):
    from nidmap.placement.commands import run

    monkeypatch.chdir(tmp_path)
    table = "JobID|User|Start|End|NodeList\n7|ada|100|160|nid[00000-00003]\n8|bob|90|95|nid00007\n"
    write(table, "jobs.txt")
    assert run(["jobs", "jobs.txt", "-m", "tree:4x4,bw=1", "-o", "jobs.csv"]) == 0
    trace = read_trace("jobs.csv")
    assert trace.ids.tolist() == ["8", "7"]
    assert trace.nodes.tolist() == [1, 4]
    assert trace.run.tolist() == [5, 60]


def test_jobs_larger_than_the_machine_are_counted(write):
    trace = read_trace(write(swf((1, 0, 0, 60, 64, 60), (2, 1, 0, 60, 16, 60))))
    fitted = fit_trace(trace, 3)
    assert fitted.ids.tolist() == ["2"]
    assert "1 job left out: larger than the 3 nodes that are up" in fitted.remarks
    assert fit_trace(trace, 3, scale=0.5).nodes.tolist() == [2, 1]
    with pytest.raises(UsageError, match="no job fits on 3 nodes"):
        fit_trace(trace, 3, scale=10)


def test_the_synthetic_trace_is_as_lublin_and_feitelson_published():
    """Shares of one node and of powers of two, loads, a quiet night, the same for a seed."""
    trace = synthetic_trace(120, 0.7, 3, 128)
    again = synthetic_trace(120, 0.7, 3, 128)
    np.testing.assert_array_equal(trace.submit, again.submit)
    np.testing.assert_array_equal(trace.run, again.run)
    assert len(trace) > 10_000
    assert abs((trace.nodes == 1).mean() - 0.244) < 0.03
    parallel = trace.nodes[trace.nodes > 1]
    powers = (parallel & (parallel - 1) == 0).mean()
    assert 0.76 < powers < 0.85  # 0.576 of 0.756, and those of the others that are one by chance
    used = (trace.nodes * trace.run).sum() / (128 * 120 * 86400)
    assert used == pytest.approx(0.7, rel=0.01)
    hours = np.bincount((trace.submit % 86400 // 3600).astype(int), minlength=24)
    assert hours[9:16].mean() > 2 * hours[1:5].mean()
    assert (trace.limit >= trace.run).all()


def test_words_of_a_synthetic_trace():
    assert parse_synthetic("lublin:days=2,largest=16", 512).nodes.max() <= 16
    for words in ("lublin:day=2", "lublin:days=0", "lublin:load=x", "lublin:seed=-1"):
        with pytest.raises(UsageError):
            parse_synthetic(words, 64)
