# SPDX-License-Identifier: Apache-2.0
"""Launchers' options are read as getopt_long reads them, or not at all."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import LaunchError
from nidmap.rankmap.launch.options import OptionTable

SMALL = OptionTable(
    letters="np",
    ranks="n= ntasks=",
    nodes="nodes=",
    bind="cc=",
    label="l label",
    sorts="ss",
    variable="genv==",
    placing="r relative",
)
WORDS = OptionTable(ranks="n= np=", variable="genv== mca==")


@pytest.fixture(autouse=True)
def programs(tmp_path, monkeypatch):
    """Two programs that can be run: ./app here, and tool on the PATH."""
    (tmp_path / "bin").mkdir()
    for path in (tmp_path / "app", tmp_path / "bin" / "tool"):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("line", "values", "program"),
    [
        ("x ./app -n 3", {}, "./app"),
        ("x -n 64 ./app -n 3", {"ranks": "64"}, "./app"),
        ("x -n64 ./app", {"ranks": "64"}, "./app"),
        ("x --ntasks=64 ./app", {"ranks": "64"}, "./app"),
        ("x --ntasks 64 ./app", {"ranks": "64"}, "./app"),
        ("x -n 1 -n 2 ./app", {"ranks": "2"}, "./app"),
        ("x -ln64 ./app", {"label": "l", "ranks": "64"}, "./app"),
        ("x -vK0ln64 ./app", {"label": "l", "ranks": "64"}, "./app"),
        ("x -cc cpu -ss ./app", {"bind": "cpu", "sorts": "ss"}, "./app"),
        ("x --genv A B -n 2 ./app", {"variable": "A B", "ranks": "2"}, "./app"),
        ("x --label=all -- --odd-name", {"label": "all"}, "--odd-name"),
        ("x -n 4 elsewhere -n 5", {"ranks": "4"}, "elsewhere"),
        ("x -n 4 -", {"ranks": "4"}, "-"),
        ("x -n 4", {"ranks": "4"}, None),
        ("x", {}, None),
        # Options that are not known: the word behind is the program if it can be run here.
        ("x -p debug -n 4 elsewhere", {"ranks": "4"}, "elsewhere"),
        ("x --mpi pmi2 -n 4 ./app -n 5", {"ranks": "4"}, "./app"),
        ("x --mpi=pmi2 --exact ./app -n 5", {}, "./app"),
        ("x --exclusive -n 4 ./app", {"ranks": "4"}, "./app"),
        ("x --exclusive tool --fast", {}, "tool"),
        ("x --job-name tool", {}, "tool"),
        ("x --partition=debug elsewhere", {}, "elsewhere"),
    ],
)
def test_reading(line, values, program):
    words = line.split()
    got = SMALL.parse(words)
    assert got.values == values
    assert words[got.program :][:1] == ([] if program is None else [program])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "x --job-name tool -n 4 ./app",
            "cannot tell whether the word after --job-name is its value or the program;"
            " write --job-name=VALUE, or -- before the program",
        ),
        ("x --job-name tool --nodes=4 ./app", "after --job-name is its value or the program"),
        ("x --exclusive elsewhere -n 3", "after --exclusive is its value or the program"),
        ("x --exclusive elsewhere -n 3 input.dat", "after --exclusive is its value or the program"),
        ("x --mpi pmi2", "after --mpi is its value or the program"),
        ("x --nt 64 ./app", "option --nt is abbreviated; write --ntasks"),
        ("x --n=64 ./app", "option --n=64 is abbreviated; write --ntasks"),
        ("x --relative=2 ./app", "x --relative places ranks itself"),
        ("x -r 2 ./app", "x -r places ranks itself"),
        ("x -n 2 ./app : -n 3 ./other", "several programs in one launch"),
        ("x -n", "-n of x has no value"),
        ("x --ntasks", "--ntasks of x has no value"),
        ("x --genv A", "--genv of x has no value"),
    ],
)
def test_what_is_unclear_is_one_line(line, says):
    with pytest.raises(LaunchError) as caught:
        SMALL.parse(line.split())
    assert says in str(caught.value)


@pytest.mark.parametrize("value", ["0", "-1", "2-4", "4k", "", "9" * 30, "٤"])
def test_a_number_that_is_none(value):
    with pytest.raises(LaunchError, match=r"--ntasks=.* is not a plain number"):
        SMALL.parse(["x", f"--ntasks={value}"]).number("ranks")
    assert SMALL.parse(["x"]).number("ranks") is None


@settings(deadline=None)
@given(
    st.lists(st.text(max_size=8) | st.sampled_from(["-n", "--", "-lI", "--nodes=3"]), max_size=6)
)
def test_any_words_are_read_or_refused(words):
    try:
        got = SMALL.parse(["x", *words])
    except LaunchError:
        return
    assert 1 <= got.program <= len(words) + 1
    assert got.argv == ("x", *words)


def test_options_are_taken_out():
    words = ["x", "-n", "4", "--nodes=2", "-I", "-n", "5", "./app", "-n", "6"]
    parsed = SMALL.parse(words)
    assert parsed.without("ranks") == ("x", "--nodes=2", "-I", "./app", "-n", "6")
    assert parsed.without("nodes", "ranks") == ("x", "-I", "./app", "-n", "6")
    for shared in ("-ln64", "-vn64"):
        with pytest.raises(LaunchError, match=f"{shared} combines several options"):
            SMALL.parse(["x", shared, "./app"]).without("ranks")


@settings(deadline=None)
@given(st.lists(st.sampled_from(["-n 4", "--nodes=3", "-l", "-I9", "--label"]), max_size=8))
def test_what_is_left_is_as_if_the_rest_had_never_been_there(options):
    argv = ["x", *" ".join(options).split(), "./app", "-n", "3"]
    kept = [option for option in options if "label" not in option and option != "-l"]
    left = SMALL.parse(argv).without("label")
    assert left == ("x", *" ".join(kept).split(), "./app", "-n", "3")


def test_an_option_with_two_values():
    got = WORDS.parse(["x", "--mca", "rmaps", "seq", "-np", "3", "./app"])
    assert got.values == {"variable": "rmaps seq", "ranks": "3"}
    assert got.argv[got.program] == "./app"
    with pytest.raises(LaunchError, match="has no value"):
        WORDS.parse(["x", "--mca", "rmaps"])
