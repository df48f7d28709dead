# SPDX-License-Identifier: Apache-2.0
"""What a shell completes, and --quiet."""

import pytest
from click.shell_completion import ShellComplete

import nidmap  # noqa: F401  # tells the front door where the commands are
from nidmap.placement.commands import cli, run


@pytest.mark.parametrize(
    ("words", "begun", "found"),
    [
        (["plan", "--strategy"], "bla", ["blades", "blades-linked"]),
        (["plan", "-m"], "shah", ["shaheen2"]),
        (["plan", "--pattern"], "sten", ["stencil"]),
        (["order", "--strategy"], "hil", ["hilbert"]),
        (["run", "--pattern"], "all", ["allgather", "allreduce", "alltoall"]),
        (["run", "--pattern", "ring", "--"], "m", ["mpiexec", "mpirun"]),
    ],
)
def test_names_are_completed(words, begun, found):
    completed = ShellComplete(cli, {}, "nidmap", "_NIDMAP_COMPLETE").get_completions(words, begun)
    assert [one.value for one in completed] == found


def test_quiet_says_nothing_but_what_went_wrong(capsys):
    command = ["plan", "-m", "torus:4x4", "-N"]
    assert run([*command, "4"]) == 0
    loud = capsys.readouterr()
    assert loud.err
    assert run([*command, "4", "--quiet"]) == 0
    quiet = capsys.readouterr()
    assert (quiet.out, quiet.err) == (loud.out, "")
    assert run([*command, "99", "-q"]) == 1
    assert capsys.readouterr().err.startswith("nidmap: ")
