# SPDX-License-Identifier: Apache-2.0
"""Bad input gets one clear line and the right exit code, whatever the command."""

import gzip
import os

import pytest

from tests.commands.shapes import HEADER, row, xc_dump


@pytest.fixture
def nidmap(inside):
    """Run the command line in this process: a hundred of them take half a minute."""
    return inside


PLAN = ("plan", "-N", "4", "--strategy", "compact", "-m")


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "m.xtprocadmin"
    path.write_text(xc_dump(columns=4, rows=1))
    return path


def spoilt(tmp_path, text, name="bad.txt"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_the_sound_dump_is_planned(nidmap, dump):
    done = nidmap(*PLAN, str(dump))
    assert (done.code, done.out) == (0, "nid[00000-00003]\n")


BAD_DUMPS = {
    "empty": ("", "empty"),
    "blank lines only": ("\n\n\n", "bad.txt"),
    "prose": ("these are not nodes\nat all\n", "bad.txt"),
    "header only": (HEADER, "no row"),
    "binary": (bytes(range(256)) * 40, "bad.txt"),
    "NUL inside": (HEADER + row(1, "c0-0c0s0n1") + "\0\0\0\n", "bad.txt:3"),
    "truncated row": (HEADER + row(1, "c0-0c0s0n1") + "     2      0x2 c0-0c0s", "bad.txt:3"),
    "impossible cage": (HEADER + row(1, "c0-0c7s0n1"), "bad.txt:2"),
    "impossible slot": (HEADER + row(1, "c0-0c0s16n1"), "bad.txt:2"),
    "impossible node": (HEADER + row(1, "c0-0c0s0n4"), "bad.txt:2"),
    "no number": (HEADER + row(1, "c0-0c0s0n1").replace("     1 ", "    x1 ", 1), "bad.txt:2"),
    "negative": (HEADER + row(1, "c0-0c0s0n1").replace("     1 ", "    -1 ", 1), "bad.txt:2"),
    "huge": (HEADER + row(10**12, "c0-0c0s0n1"), "bad.txt:2"),
    "hex apart": (HEADER + row(1, "c0-0c0s0n1").replace("0x1", "0x2"), "bad.txt:2"),
    "nid twice": (HEADER + row(1, "c0-0c0s0n1") + row(1, "c0-0c0s0n2"), "bad.txt:3"),
    "name twice": (HEADER + row(1, "c0-0c0s0n1") + row(2, "c0-0c0s0n1"), "bad.txt:3"),
    "unknown type": (HEADER + row(1, "c0-0c0s0n1").replace("compute", "compote"), "bad.txt:2"),
    "mixed": (
        HEADER + row(1, "c0-0c0s0n1") + "2 c0-0c0s0n2 compute 0 0 1\n",
        "bad.txt:3",
    ),
}


@pytest.mark.parametrize("case", BAD_DUMPS)
def test_a_bad_dump_is_refused(nidmap, refused, tmp_path, case):
    text, word = BAD_DUMPS[case]
    refused(nidmap(*PLAN, spoilt(tmp_path, text)), 3, word)


def test_standard_input_is_named_as_a_dash(nidmap, refused):
    refused(nidmap(*PLAN, "-", stdin=b"junk\n"), 3, "-")


def test_a_broken_gzip(nidmap, refused, tmp_path, dump):
    whole = gzip.compress(dump.read_bytes())
    refused(nidmap(*PLAN, spoilt(tmp_path, whole[: len(whole) // 2], "bad.gz")), 3, "bad.gz")


def test_a_gzip_bomb_is_refused(nidmap, refused, tmp_path):
    bomb = spoilt(tmp_path, gzip.compress(b"\n" * (300 << 20), 1), "bomb.gz")
    refused(nidmap(*PLAN, bomb), 3, "bomb.gz", "more than 64 MiB")


def test_a_missing_file(nidmap, refused):
    refused(nidmap(*PLAN, "no/such/file"), 3, "no/such/file")


def test_a_folder(nidmap, refused, tmp_path):
    refused(nidmap(*PLAN, str(tmp_path)), 3, str(tmp_path))


@pytest.mark.skipif(os.getuid() == 0, reason="root reads every file")
def test_an_unreadable_file(nidmap, refused, dump):
    dump.chmod(0)
    refused(nidmap(*PLAN, str(dump)), 3, str(dump))


def test_unknown_site(nidmap, refused):
    refused(nidmap(*PLAN, "shaheen3"), 3, "shaheen3", "shaheen2")


@pytest.mark.parametrize(
    "spec",
    ["torus:0x4", "torus:axb", "torus:", "dragonfly:groups=x", "tree:4x4,dst=1:2", "moebius:3"],
)
def test_bad_specs(nidmap, spec):
    done = nidmap(*PLAN, spec)
    assert done.code in (2, 3)
    assert done.out == ""
    assert "Traceback" not in done.err
    assert spec.split(":")[0] in done.err


def test_a_huge_spec_is_refused_at_once(nidmap):
    done = nidmap(*PLAN, "torus:100000x100000x100000")
    assert done.code in (2, 3)
    assert "Traceback" not in done.err


def test_more_than_the_machine(nidmap, refused, dump):
    refused(nidmap("plan", "-m", str(dump), "-N", "100000"), 1, "100000", "missing")


@pytest.mark.parametrize("count", ["0", "-3"])
def test_no_nodes_wanted(nidmap, refused, dump, count):
    refused(nidmap("plan", "-m", str(dump), "-N", count), 2, count)


def test_an_occupied_list(nidmap, tmp_path):
    rows = [row(i, f"c0-0c0s0n{i}", status="down" if i else "up") for i in range(4)]
    path = spoilt(tmp_path, HEADER + "".join(rows))
    done = nidmap("plan", "-m", path, "-N", "2", "--from", "nid[00000-00002]")
    assert done.code == 1
    assert done.out == ""
    assert "2 nodes of --from not free, left out" in done.err
    assert "1 missing" in done.err


def test_an_included_node_that_is_down(nidmap, refused, tmp_path):
    text = HEADER + row(0, "c0-0c0s0n0") + row(1, "c0-0c0s0n1", status="down")
    path = spoilt(tmp_path, text)
    refused(nidmap("plan", "-m", path, "-N", "1", "--include", "nid00001"), 1, "nid00001", "down")


def test_an_empty_list(nidmap, refused, dump):
    refused(
        nidmap("plan", "-m", str(dump), "-N", "1", "--from", "-", stdin=b""), 3, "-: names no nodes"
    )


def test_an_unknown_node(nidmap, refused, dump):
    refused(nidmap("plan", "-m", str(dump), "-N", "1", "--exclude", "nid77777"), 3, "nid77777")


def test_included_and_excluded(nidmap, refused, dump):
    both = ("--include", "nid00003", "--exclude", "nid00003")
    refused(nidmap("plan", "-m", str(dump), "-N", "1", *both), 2, "nid00003")


def test_unknown_strategy(nidmap, refused, dump):
    done = nidmap("plan", "-m", str(dump), "-N", "1", "--strategy", "best")
    refused(done, 2, "best", "hilbert")


def test_a_planner_of_another_topology(nidmap, refused):
    refused(nidmap("plan", "-m", "torus:4x4x4", "-N", "8", "--strategy", "blades"), 2, "torus")


def test_no_machine(nidmap):
    done = nidmap("plan", "-N", "4")
    assert done.code == 2
    assert "NIDMAP_MACHINE" in done.err


def test_a_header_for_another_scheduler(nidmap, refused):
    done = nidmap("plan", "-m", "shaheen2", "-N", "4", "--format", "pbs")
    refused(done, 2, "Slurm", "sbatch")


def test_hostile_bytes_do_not_reach_the_terminal(nidmap, tmp_path):
    text = HEADER + row(1, "c0-0c0s0n1") + "   \x1b[31m2 0x2 c0-0c0s0n2 compute up batch\n"
    done = nidmap(*PLAN, spoilt(tmp_path, text))
    assert done.code == 3
    assert "\x1b" not in done.err


RAW = bytes(range(1, 256)) * 12


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (
            "order -m torus:4 --pattern ring --nodes /no/such",
            3,
            "'/no/such' is neither an existing file",
        ),
        ("plan -m torus:4 -N 1 --exclude c0-0*", 3, "'*' is not a wildcard, it repeats a name"),
        ("order -m torus:4 --pattern matrix:raw", 3, "raw:1: neither numbers nor a known format"),
        ("order -m torus:4 --pattern raw.npz", 2, "measured:FILE is a recording; matrix:FILE"),
        ("record show raw", 3, "raw: no recording; nidmap record writes one; matrix:FILE"),
        ("record show empty", 3, "empty: the file is empty"),
        ("plan -m states -N 2", 1, "2 idle ones that do not respond (idle*)"),
        ("nodes free -m states", 1, "0 free of 3 nodes (1 allocated, 2 not_responding)"),
    ],
)
def test_a_slip_is_answered_with_what_helps(nidmap, tmp_path, monkeypatch, words, code, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").write_bytes(RAW)
    (tmp_path / "empty").touch()
    (tmp_path / "states").write_text("NODELIST STATE\nn[1-2] idle*\nn3 alloc\n")
    done = nidmap(*words.split())
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("output", ["/no/x", "a.nids"])
def test_both_files_of_a_plan_are_written_or_none(nidmap, tmp_path, monkeypatch, output):
    monkeypatch.chdir(tmp_path)
    order = "b.slots" if output == "/no/x" else "/no/b.slots"
    (tmp_path / "b.slots").write_text("old\n")
    words = ["plan", "-m", "torus:4x4,bw=1", "-N", "4", "--pattern", "ring", "-q"]
    assert nidmap(*words, "-o", output, "--order-out", order).code == 5
    assert os.listdir() == ["b.slots"]
    assert (tmp_path / "b.slots").read_text() == "old\n"
    assert nidmap(*words, "-o", "a.nids", "--order-out", "b.slots").code == 0
    assert sorted(os.listdir()) == ["a.nids", "b.slots"]
    assert (tmp_path / "b.slots").read_text() != "old\n"
