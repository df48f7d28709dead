# SPDX-License-Identifier: Apache-2.0
"""Help says what an option does in the words of those who launch jobs."""

import click
import pytest

import nidmap  # noqa: F401  # the front door names the commands
from nidmap.placement.commands import cli
from nidmap.rankmap.commands.compare import compare
from nidmap.rankmap.commands.jobs import jobs
from nidmap.rankmap.commands.order import order
from nidmap.rankmap.commands.predict import predict
from nidmap.rankmap.commands.record import record
from nidmap.rankmap.commands.run import run
from nidmap.rankmap.commands.sort import sort

SAYS = [
    (run, "If anything is unclear, the command starts unchanged, in its default order"),
    (run, "Order file to launch; its suffix gives the format"),
    (run, "Refuse to start in any other order (exit code 125)."),
    (order, "Ranks per node: 24 or 24,24,12; default: this job's, else 1."),
    (predict, "and name the bottleneck"),
    (compare, "the range of that gain over all unknowns, the bottleneck"),
    (compare, "Exclude these nodes."),
    (jobs, "Dump of node states; down nodes count as unavailable."),
    (jobs, "Only this user's jobs, or 'all'; from Slurm: yours."),
    (record, "Record the communication matrix of an unmodified MPI program"),
    (sort, "Sort nodes by their switches, neighbours next to each other."),
]


@pytest.mark.parametrize(("command", "says"), SAYS)
def test_a_help_is_plain(command, says):
    shown = command.get_help(click.Context(command, info_name="x", parent=click.Context(cli)))
    assert says in " ".join(shown.split())
