# SPDX-License-Identifier: Apache-2.0
"""Real programs whose ranks get an order inside: every call agrees with it."""

import os
import re
import sys
from pathlib import Path

import pytest

from nidmap.placement.commands import run as nidmap
from nidmap.rankmap.runtime.rerank import answer
from tests.rankmap.mpi_programs import COMPILERS, compiled_or_skipped, library_of
from tests.rankmap.mpis import patiently

pytestmark = pytest.mark.mpi

HERE = Path(__file__).parent
ROOT = str(HERE.parents[2])
ORDER = "3 1 5 0 4 2"

#: Each way to mix ranks, in the order of the program's, by words of the warning.
MIXED = [
    "neighbour's rank of a reordered communicator in the one it was made of",
    "a neighbour of the rank it had before",
    "never asked for its rank",
    "coordinates of the rank it had before",
    "never asked for its rank",
    "its place in a file by the rank that it had before",
]


@pytest.fixture(scope="session", params=COMPILERS, ids=lambda pair: "-".join(pair))
def built(request, tmp_path_factory):
    return compiled_or_skipped([request.param], HERE / "topologies.c", tmp_path_factory)


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    return compiled_or_skipped(COMPILERS, HERE / "topologies.c", tmp_path_factory)


@pytest.fixture(scope="session")
def mixing(tmp_path_factory):
    return compiled_or_skipped(COMPILERS, HERE / "mixed.c", tmp_path_factory)


def ran(built, folder, words, variables, ranks=6, front=()):
    """Run a program before which the library is loaded; return (code, stdout, stderr)."""
    env, program, more = built
    env = {**env, "PYTHONPATH": ROOT, **variables}
    if not front:
        env["LD_PRELOAD"] = library_of(built)
    command = [*front, "mpiexec", *more, "-n", str(ranks), str(program), *words]
    done = lambda out: out.count("good") == ranks  # noqa: E731  # a run that is judged
    return patiently(command, env, folder, done)


def ranks_said(out):
    """Return the rank of each process, where all that it has tried was right."""
    said = dict(re.findall(r"process (\d) rank (\d) good 1", out))
    return [int(said[process]) for process in sorted(said)]


def inverse(order=ORDER):
    slots = [int(word) for word in order.split()]
    return [slots.index(process) for process in range(len(slots))]


def ordered(folder, text=ORDER):
    (folder / "order.slots").write_text("\n".join(text.split()) + "\n")
    return {"NIDMAP_ORDER": str(folder / "order.slots")}


def test_every_topology_takes_the_order_of_a_file(built, tmp_path):
    code, out, talk = ran(built, tmp_path, ["order", tmp_path / "file"], ordered(tmp_path))
    assert code == 0, talk
    assert ranks_said(out) == inverse(), talk + out
    assert (tmp_path / "file").read_bytes()[::4] == bytes(range(6))


def test_topologies_are_left_alone_where_they_must(once, tmp_path):
    code, out, talk = ran(once, tmp_path, ["keep", tmp_path / "file", "7"], ordered(tmp_path))
    assert (code, ranks_said(out)) == (7, list(range(6))), talk


def test_the_world_itself_takes_an_order(built, tmp_path):
    code, out, talk = ran(built, tmp_path, ["world"], {**ordered(tmp_path), "NIDMAP_WORLD": "1"})
    assert (code, ranks_said(out)) == (0, inverse()), talk + out


@pytest.mark.parametrize("binding", [1, 2, 3], ids=["mpif.h", "mpi", "mpi_f08"])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_fortran_is_ordered_in_every_binding(tmp_path, tmp_path_factory, mpi, binding):
    source, flag = HERE / "topologies.F90", f"-DBINDING={binding}"
    built = compiled_or_skipped([(mpi, "mpif90")], source, tmp_path_factory, flag)
    order = ordered(tmp_path)
    for words, more, said in (
        ("grid", {}, inverse()),
        ("keep", {}, list(range(6))),
        ("world", {"NIDMAP_WORLD": "1"}, inverse()),
    ):
        code, out, talk = ran(built, tmp_path, [words], {**order, **more})
        assert (code, ranks_said(out)) == (0, said), talk + out


def test_spawned_programs_have_their_parents_in_order(once, tmp_path):
    # Over UCX the connection to a spawned program times out on a loaded machine, with our
    # library and without it; libfabric, which the same MPICH brings, waits.
    variables = {**ordered(tmp_path, "2 0 1"), "MPIR_CVAR_CH4_NETMOD": "ofi"}
    code, out, talk = ran(once, tmp_path, ["spawn"], variables, ranks=3)
    assert (code, ranks_said(out)) == (0, [1, 2, 0]), talk + out


def test_run_inside_asks_for_the_pattern_of_each_call(once, tmp_path):
    machine = "dragonfly:groups=2,chassis=2,blades=2,nodes=2"
    nodes = ["nid00000", "nid00006", "nid00006", "nid00000", "nid00006", "nid00000"]
    front = [sys.executable, "-m", "nidmap", "run", "--inside", "-m", machine, "--"]
    variables = {"NIDMAP_PROCESSOR_NAMES": ",".join(nodes)}
    words = ["ask", tmp_path / "file", "7"]
    code, out, talk = ran(once, tmp_path, words, variables, front=front)
    hosts = "".join(f"{node} -\n" for node in nodes)
    found = answer(f"nidmap 1\nstencil:3x2\n6 6\n{hosts}", machine=machine)
    old = found.ranks.tolist()
    assert old != list(range(6))
    assert (code, [old.index(p) for p in range(6)]) == (7, ranks_said(out)), talk + out


@pytest.mark.parametrize(
    ("machine", "says"), [("nosuch", "no such file"), ("-", "-m - cannot be read later")]
)
def test_a_machine_that_there_is_not_is_said_before_the_ranks_start(capsys, machine, says):
    words = ["run", "--inside", "-m", machine, "--dry-run", "--", "mpiexec", "-n", "2", "./app"]
    assert nidmap(words) == 0
    said = capsys.readouterr()
    assert said.out == "mpiexec -n 2 ./app\n"
    assert says in said.err
    assert said.err.endswith(": default order\n")
    assert nidmap([*words[:2], "--strict", *words[2:]]) == 125


@pytest.mark.parametrize("text", ["0 1", "0 0 1", "0 1 x", "0 1 2 3"])
def test_an_order_that_is_none_is_left_alone(once, tmp_path, text):
    code, out, talk = ran(once, tmp_path, ["order"], ordered(tmp_path, text), ranks=3)
    assert (code, ranks_said(out)) == (0, [0, 1, 2]), talk
    assert "not an order of 3 ranks; ranks stay as they are" in talk


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("exit 3", "the answer to what was asked for is not an order of 3 ranks"),
        ("echo 1 1 0", "the answer to what was asked for is not an order of 3 ranks"),
        ("kill -9 $$", "the answer to what was asked for is not an order of 3 ranks"),
        ("echo no: such machine", "such machine"),
        ("exec sleep 1000", "no order could be asked for in time"),
    ],
)
def test_without_an_answer_ranks_stay(once, tmp_path, command, says):
    patience = "1" if "sleep" in command else "900"
    variables = {"NIDMAP_ASK": command, "NIDMAP_WORLD": "1", "NIDMAP_PATIENCE": patience}
    code, out, talk = ran(once, tmp_path, ["world", "x", "5"], variables, ranks=3)
    assert (code, ranks_said(out)) == (5, [0, 1, 2]), talk
    assert talk.count(f"nidmap: {says}; ranks stay as they are\n") == 1


def test_the_first_mixed_use_of_ranks_is_remarked(mixing, tmp_path):
    wrong = ran(mixing, tmp_path, ["wrong", tmp_path / "file"], ordered(tmp_path))
    assert wrong[0] == 0
    for says in MIXED:
        assert says in wrong[2]
    right = ran(mixing, tmp_path, ["right", tmp_path / "file"], ordered(tmp_path))
    assert (right[0], "nidmap" in right[2]) == (0, False), right[2]


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [
        ("wrong", 1, "the program mixes ranks of two communicators"),
        ("right", 0, "reordered 6 communicators; the program mixed no ranks of two communicators"),
    ],
)
def test_mixed_ranks_are_found_ahead(mixing, tmp_path, how, code, says):
    front = [sys.executable, "-m", "nidmap", "record", "--check-reorder", "--"]
    found = ran(mixing, tmp_path, [how, tmp_path / "file"], {}, front=front)
    assert (found[0], says in found[2]) == (code, True), found[2]
    assert not [name for name in os.listdir(tmp_path) if "nidmap" in name]
