"""Launchers' own options are read as getopt_long reads them, or not at all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.errors import LaunchError
from rankmap.launch.aprun import GRAMMAR as APRUN
from rankmap.launch.options import NONE, OPTIONAL, PAIR, REQUIRED, Grammar
from rankmap.launch.srun import GRAMMAR as SRUN

SMALL = Grammar(
    long={"ntasks": REQUIRED, "nodes": REQUIRED, "label": NONE, "immediate": OPTIONAL},
    short={"n": ("ntasks", REQUIRED), "l": ("label", NONE), "I": ("immediate", OPTIONAL)},
    single={"ss": NONE, "cc": REQUIRED},
)


@pytest.mark.parametrize(
    ("line", "values", "program"),
    [
        ("x ./app -n 3", {}, "./app"),
        ("x -n 64 ./app -n 3", {"ntasks": "64"}, "./app"),
        ("x -n64 ./app", {"ntasks": "64"}, "./app"),
        ("x --ntasks=64 ./app", {"ntasks": "64"}, "./app"),
        ("x --ntasks 64 ./app", {"ntasks": "64"}, "./app"),
        ("x --nt 64 ./app", {"ntasks": "64"}, "./app"),
        ("x -n 1 -n 2 ./app", {"ntasks": "2"}, "./app"),
        ("x -ln64 ./app", {"label": "", "ntasks": "64"}, "./app"),
        ("x -I ./app", {"immediate": ""}, "./app"),
        ("x -I60 ./app", {"immediate": "60"}, "./app"),
        ("x --immediate ./app", {"immediate": ""}, "./app"),
        ("x --immediate=60 ./app", {"immediate": "60"}, "./app"),
        ("x -cc cpu -ss ./app", {"cc": "cpu", "ss": ""}, "./app"),
        ("x --label -- --odd-name", {"label": ""}, "--odd-name"),
        ("x -n 4 -", {"ntasks": "4"}, "-"),
        ("x -n 4", {"ntasks": "4"}, None),
        ("x", {}, None),
    ],
)
def test_reading(line, values, program):
    words = line.split()
    got = SMALL.parse(words)
    assert got.values == values
    assert words[got.program :][:1] == ([] if program is None else [program])


@pytest.mark.parametrize(
    "line", ["x --n 4 ./app", "x --odd ./app", "x -q ./app", "x -lq", "x --label=1"]
)
def test_what_is_not_known_or_ambiguous_is_an_error(line):
    with pytest.raises(LaunchError, match="is not known"):
        SMALL.parse(line.split())


@pytest.mark.parametrize("line", ["x -n", "x --ntasks"])
def test_a_missing_value_is_an_error(line):
    with pytest.raises(LaunchError, match="has no value"):
        SMALL.parse(line.split())


@pytest.mark.parametrize("value", ["0", "-1", "2-4", "4k", "", "9" * 30, "٤"])
def test_a_number_that_is_none(value):
    with pytest.raises(LaunchError, match="is not understood"):
        SMALL.parse(["x", f"--ntasks={value}"]).number("ntasks")
    assert SMALL.parse(["x"]).number("ntasks") is None


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


def test_the_real_grammars_agree_with_themselves():
    for grammar in (SRUN, APRUN):
        assert {name for name, _ in grammar.short.values()} <= set(grammar.long)
    srun = "srun -n 4 -N2 -c 2 --cpu-bind=cores --mpi pmi2 -l ./a"
    assert SRUN.parse(srun.split()).values["ntasks"] == "4"
    aprun = "aprun -n 4 -N 2 -d 2 -cc cpu -j1 ./a"
    assert APRUN.parse(aprun.split()).values["cc"] == "cpu"


def test_options_are_taken_out_one_after_the_other():
    words = ["x", "-n", "4", "--nodes=2", "-I", "-n", "5", "./app", "-n", "6"]
    step = SMALL.parse(words)
    assert step.without("ntasks").argv == ("x", "--nodes=2", "-I", "./app", "-n", "6")
    both = step.without("nodes").without("ntasks")
    assert (both.argv, both.program) == (("x", "-I", "./app", "-n", "6"), 2)
    assert both.values == {"immediate": ""}
    with pytest.raises(LaunchError, match="-ln64 holds several options"):
        SMALL.parse(["x", "-ln64", "./app"]).without("ntasks")


@settings(deadline=None)
@given(st.lists(st.sampled_from(["-n 4", "--nodes=3", "-l", "-I9", "--label"]), max_size=8))
def test_what_is_left_reads_as_if_the_rest_had_never_been_there(options):
    argv = ["x", *" ".join(options).split(), "./app", "-n", "3"]
    kept = [option for option in options if "label" not in option and option != "-l"]
    left = SMALL.parse(argv).without("label")
    assert left == SMALL.parse(["x", *" ".join(kept).split(), "./app", "-n", "3"])


def test_an_option_with_two_values():
    grammar = Grammar({"mca": PAIR, "n": REQUIRED}, {}, {"mca": PAIR, "n": REQUIRED})
    got = grammar.parse(["x", "--mca", "rmaps", "seq", "-n", "3", "./app"])
    assert got.values == {"mca": "rmaps seq", "n": "3"}
    assert got.argv[got.program] == "./app"
    with pytest.raises(LaunchError, match="has no value"):
        grammar.parse(["x", "--mca", "rmaps"])
