"""Launchers' options are read as getopt_long reads them, or not at all."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.errors import LaunchError
from rankmap.launch import CRAY, INTEL, MPICH, OPENMPI, OTHER, find
from rankmap.launch.options import OptionTable

SMALL = OptionTable(
    valued="n=ntasks ntasks nodes cc",
    flags="l=label label ss",
    pairs="genv",
    refused="r=relative relative",
    letters="np",
)
WORDS = OptionTable(valued="n np=n", pairs="genv mca")


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
        ("x -n 64 ./app -n 3", {"ntasks": "64"}, "./app"),
        ("x -n64 ./app", {"ntasks": "64"}, "./app"),
        ("x --ntasks=64 ./app", {"ntasks": "64"}, "./app"),
        ("x --ntasks 64 ./app", {"ntasks": "64"}, "./app"),
        ("x -n 1 -n 2 ./app", {"ntasks": "2"}, "./app"),
        ("x -ln64 ./app", {"label": "", "ntasks": "64"}, "./app"),
        ("x -vK0ln64 ./app", {"label": "", "ntasks": "64"}, "./app"),
        ("x -cc cpu -ss ./app", {"cc": "cpu", "ss": ""}, "./app"),
        ("x --genv A B -n 2 ./app", {"genv": "A B", "ntasks": "2"}, "./app"),
        ("x --label=all -- --odd-name", {"label": "all"}, "--odd-name"),
        ("x -n 4 elsewhere -n 5", {"ntasks": "4"}, "elsewhere"),
        ("x -n 4 -", {"ntasks": "4"}, "-"),
        ("x -n 4", {"ntasks": "4"}, None),
        ("x", {}, None),
        # Options that are not known: the word behind is the program if it can be run here.
        ("x -p debug -n 4 elsewhere", {"ntasks": "4"}, "elsewhere"),
        ("x --mpi pmi2 -n 4 ./app -n 5", {"ntasks": "4"}, "./app"),
        ("x --mpi=pmi2 --exact ./app -n 5", {}, "./app"),
        ("x --exclusive -n 4 ./app", {"ntasks": "4"}, "./app"),
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
        ("x --job-name tool -n 4 ./app", "not clear at --job-name; write --job-name=VALUE, or --"),
        ("x --job-name tool --nodes=4 ./app", "not clear at --job-name"),
        ("x --exclusive elsewhere -n 3", "not clear at --exclusive"),
        ("x --exclusive elsewhere -n 3 input.dat", "not clear at --exclusive"),
        ("x --mpi pmi2", "not clear at --mpi"),
        ("x --nt 64 ./app", "option --nt is abbreviated; write --ntasks"),
        ("x --n=64 ./app", "option --n=64 is abbreviated; write --ntasks"),
        ("x --relative=2 ./app", "option relative of x places ranks in its own way"),
        ("x -r 2 ./app", "option relative of x places ranks in its own way"),
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


#: Commands as users write them: the launcher, the MPI, the line; always 4 ranks of ./app -n 9.
LINES = [
    ("srun", OTHER, "-p debug -t 10 -A me -J tool -n 4 -N2 -c 2 --mpi pmi2 -l ./app"),
    ("srun", CRAY, "--exclusive --exact --ntasks=4 --cpu-bind=cores -K1 -ul ./app"),
    ("srun", OTHER, "-vvn4 --overlap --mem 0 ./app"),
    ("aprun", CRAY, "-n 4 -N 2 -d 2 -cc cpu -j1 -ss -e A=B -F exclusive ./app"),
    ("flux run", OTHER, "-n 4 -N 2 -o cpu-affinity=off --env=A=B -x ./app"),
    ("mpiexec", MPICH, "-genv A B -n 4 -l -bind-to core -prepend-rank ./app"),
    ("mpiexec", MPICH, "-launcher ssh -launcher-exec ./app -n 4 ./app"),
    ("srun", OTHER, "--task-prolog ./app -n 4 ./app"),
    ("mpiexec", INTEL, "-bootstrap ssh -np 4 -genvall -s all ./app"),
    ("mpirun", OPENMPI, "--mca btl self,tcp -x PATH -np 4 --tag-output ./app"),
    ("mpirun", OPENMPI, "--bind-to core --report-bindings -c 4 -wdir /tmp ./app"),
    ("mpiexec", CRAY, "-n 4 --ppn 2 -d 2 --cpu-bind depth --env A=B --label ./app"),
]


@pytest.mark.parametrize(("program", "mpi", "line"), LINES)
def test_lines_of_real_users(program, mpi, line):
    how = find(program.split()[0], mpi)([*program.split(), *line.split(), "-n", "9"], {})
    assert how.step.argv[how.step.program :] == ("./app", "-n", "9")
    assert how.ranks(2) == 4


def test_options_are_taken_out_one_after_the_other():
    words = ["x", "-n", "4", "--nodes=2", "-I", "-n", "5", "./app", "-n", "6"]
    step = SMALL.parse(words)
    assert step.without("ntasks").argv == ("x", "--nodes=2", "-I", "./app", "-n", "6")
    both = step.without("nodes").without("ntasks")
    assert (both.argv, both.program) == (("x", "-I", "./app", "-n", "6"), 2)
    assert both.values == {}
    for shared in ("-ln64", "-vn64"):
        with pytest.raises(LaunchError, match=f"{shared} holds several options"):
            SMALL.parse(["x", shared, "./app"]).without("ntasks")


@settings(deadline=None)
@given(st.lists(st.sampled_from(["-n 4", "--nodes=3", "-l", "-I9", "--label"]), max_size=8))
def test_what_is_left_reads_as_if_the_rest_had_never_been_there(options):
    argv = ["x", *" ".join(options).split(), "./app", "-n", "3"]
    kept = [option for option in options if "label" not in option and option != "-l"]
    left = SMALL.parse(argv).without("label")
    assert left == SMALL.parse(["x", *" ".join(kept).split(), "./app", "-n", "3"])


def test_an_option_with_two_values():
    got = WORDS.parse(["x", "--mca", "rmaps", "seq", "-np", "3", "./app"])
    assert got.values == {"mca": "rmaps seq", "n": "3"}
    assert got.argv[got.program] == "./app"
    with pytest.raises(LaunchError, match="has no value"):
        WORDS.parse(["x", "--mca", "rmaps"])
