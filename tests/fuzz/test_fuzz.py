# SPDX-License-Identifier: Apache-2.0
"""A short run of the fuzzer over everything, what it has found before, and that it finds faults."""

import os
import subprocess
import sys

import pytest

from nidmap.placement.commands import run
from nidmap.rankmap.pattern import parse_pattern
from tests.fuzz import targets
from tests.fuzz.__main__ import turn


def python(*words, **options):
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=1000, check=False,
        **options,
    )  # fmt: skip


def test_whatever_is_read_is_answered_in_one_line():
    done = python("-m", "tests.fuzz", "--cases", "4", "--seconds", "1000", "--patience", "900")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (70, "nidmap: internal error\n"),
        (2, ""),
        (3, "nidmap: a\nand more\n"),
        (3, "Traceback\n"),
        (0, "a \x1b[31m"),
        (3, "nidmap: out of memory; a smaller machine or pattern is needed\n"),
    ],
)
def test_other_ends_are_faults(code, words):
    assert targets.wrong(code, words)
    assert not targets.wrong(3, "nidmap: in.txt:3: 'x' is not a NID\n")


def test_a_case_that_ends_its_process_is_named():
    def ask(data, folder):
        del data, folder
        os._exit(3)

    found = list(turn("dies", targets.Target([b"a"], ask), range(2), float("inf"), 900.0))
    assert [case for case, _ in found] == [0, 1]
    assert found[0][1] == "its process ended with 3"


# --- found by it, or by hand ----------------------------------------------------------


@pytest.mark.parametrize("option", ["-o", "--order-out", "--exclude", "-m", "--pattern"])
def test_a_nul_in_a_path_is_refused(option, capsys):
    assert run(["plan", "-m", "torus:4x4", "-N", "4", "--pattern", "ring", option, "a\0b"]) == 2
    assert capsys.readouterr().err == ("nidmap: an argument contains a NUL byte\n")


@pytest.mark.parametrize(("words", "code"), [(("n1", "n2"), 5), (("n1,[",), 3), (("--wrong",), 2)])
def test_closed_outputs_leave_the_exit_code(words, code):
    argv = [sys.executable, "-m", "nidmap", "nodes", "fold", *words]
    done = subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *argv], check=False)
    assert done.returncode == code


#: A file cannot be read, nor its bytecode: the one whose path holds the last word.
ONE_FAULT = """
import importlib._bootstrap_external as loading, sys
whole, name = loading.FileLoader.get_data, sys.argv.pop()
def faulty(self, path):
    if name in path.replace("/__pycache__", ""):
        raise OSError(5, "Input/output error", path)
    return whole(self, path)
loading.FileLoader.get_data = faulty
import nidmap
nidmap.main()
"""


@pytest.mark.parametrize(
    "name", ["placement/__init__", "placement/hooks", "commands/common", "placement/plan", "/heapq"]
)
def test_a_fault_of_the_disk_during_start_is_one_line(name):
    done = python("-c", ONE_FAULT, "plan", "-m", "torus:4x4", "-N", "2", name)
    assert done.returncode in (2, 5), done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("nidmap: ")
    assert done.stderr.count("\n") == 1


def test_a_small_file_asks_for_little_memory(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("0,1\n1,0\n")
    code = (
        "import resource, nidmap\n"
        "from nidmap.rankmap.pattern import parse_pattern\n"
        "import nidmap.rankmap.readers.csv\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (2**30, -1))\n"
        f"print(parse_pattern('matrix:{path}').ranks)"
    )
    assert python("-c", code, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}).stdout == "2\n"


def test_a_grid_that_no_machine_has_memory_for_is_refused(capsys):
    argv = ["score", "-m", "torus:4x4", "--pattern", "transposition:2147483647x6"]
    assert run([*argv, "--strategy", "row-major"]) == 2
    assert "has 12884901882 ranks, but there are 16 slots" in capsys.readouterr().err
    assert parse_pattern("transposition:2x3").ranks == 6
