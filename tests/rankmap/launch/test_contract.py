# SPDX-License-Identifier: Apache-2.0
"""What every launcher promises, those of other distributions too: one test over the registry."""

import shlex
from pathlib import Path

import pytest

from nidmap.rankmap.emit import names as formats
from nidmap.rankmap.launch import (
    MPIEXECS,
    OTHER,
    Launcher,
    find,
    names,
    variants,
)
from nidmap.rankmap.orders import arrange
from tests.rankmap.helpers import named, slots

KINDS = {kind: name for name in names() for kind in variants(name).values()}

#: Program, MPI library and a user's command of every launcher: always 4 ranks of ./app -n 9.
SAMPLES = [
    (program, kind.library or OTHER, line)
    for kind, program in KINDS.items()
    for line in kind.samples
]


@pytest.fixture(autouse=True)
def app(tmp_path, monkeypatch):
    (tmp_path / "app").write_text("#!/bin/sh\n")
    (tmp_path / "app").chmod(0o755)
    monkeypatch.chdir(tmp_path)


def read(mpi, line):
    """Return the launcher of a user's command."""
    words = [*line.split(), "-n", "9"]
    return find(f"/usr/bin/{words[0]}", mpi)(words, {})


def launched(how):
    """Return the launch of four ranks in two blocks."""
    return how.launch(arrange(slots(named(12, 13), 2), "ring", "row-major"), "/x/an order")


def check_kept(how, launch):
    """Hold a launch to the user's words, but for those that name nodes: it may name them anew."""
    words = list(zip(how.parsed.argv, how.parsed.roles, strict=True))
    lost = {role for word, roles in words if word not in launch.argv for role in roles}
    assert lost <= {"hosts", "files", "list", "nodes", "per_node"}, f"{lost} of {words} are lost"
    after = iter(launch.argv)
    for word, roles in words:
        if not roles & lost:
            assert word in after, f"{word} of the user's command is lost in {launch.argv}"


@pytest.mark.parametrize("name", sorted(set(names()) - set(MPIEXECS[1:])))
def test_the_guide_has_a_row_of_every_launcher(name):
    guide = Path(__file__).parents[3] / "docs" / "reference" / "launchers.md"
    rows = [line.split("|")[1] for line in guide.read_text().splitlines() if line[:1] == "|"]
    row = f"| `{name}` | MPI | what is run | tried on |"
    assert any(f"`{name}" in row for row in rows), f"docs/reference/launchers.md lacks: {row}"


@pytest.mark.parametrize("name", sorted(set(names()) - set(MPIEXECS[1:])))
def test_a_module_has_a_launcher_with_a_sample(name):
    kinds = variants(name).values()
    assert {kind.__module__.rpartition(".")[2] for kind in kinds} == {name}
    assert all(kind.samples for kind in kinds)


@pytest.mark.parametrize(("program", "mpi", "line"), SAMPLES)
def test_a_users_command_is_read_and_reaches_the_launcher(program, mpi, line):
    how = read(mpi, line)
    assert isinstance(how, Launcher)
    assert how.parsed.argv[how.parsed.program :] == ("./app", "-n", "9")
    assert how.ranks(2) == 4
    launch = launched(how)
    check_kept(how, launch)
    assert launch.argv[-3:] == ("./app", "-n", "9")
    assert "/x/an order" in " ".join([*launch.argv, *launch.env.values()])


@pytest.mark.parametrize(("program", "mpi", "line"), SAMPLES)
def test_a_class_says_what_it_is(program, mpi, line):
    kind = find(program, mpi)
    assert kind.__doc__
    assert kind.__doc__ != Launcher.__doc__
    assert kind.format in formats()
    assert kind.limit is None or (kind.limit.limit > 0 and kind.limit.source)
    assert read(mpi, line).text(arrange(slots(named(12, 13), 2), "ring", "row-major"))


@pytest.mark.parametrize(("program", "mpi", "line"), SAMPLES)
def test_words_that_nobody_knows_are_passed_on(program, mpi, line):
    strange = f"{line.removesuffix('./app')}--frobnicate=3 --mumble ./app"
    how = read(mpi, strange)
    assert how.parsed.argv[how.parsed.program :] == ("./app", "-n", "9")
    check_kept(how, launched(how))


@pytest.mark.parametrize(("program", "mpi", "line"), SAMPLES)
def test_of_two_counts_the_last_holds_as_it_does_for_the_launcher(program, mpi, line):
    first, *rest = line.split()
    at = 1 if first == "flux" else 0
    how = read(mpi, " ".join([first, *rest[:at], "-n", "64", *rest[at:]]))
    assert how.ranks(2) == 4
    check_kept(how, launched(how))


@pytest.mark.parametrize(("program", "mpi", "line"), SAMPLES)
def test_a_dry_runs_line_is_the_launch_to_a_shell(program, mpi, line):
    launch = launched(read(mpi, line))
    words = shlex.split(launch.line())
    assert words == [*(f"{name}={value}" for name, value in launch.env.items()), *launch.argv]
