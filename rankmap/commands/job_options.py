# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share: the job, its nodes, and its rank order.

Those of the job's nodes, and those of its order, reach a command as one value
each: a `JobArguments` (`nidmap.rankmap.launch.request`) and an `OrderArguments`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import click

from nidmap.placement.commands.common import advanced, among, machine_option, sending_options
from nidmap.rankmap.launch.request import JobArguments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nidmap.placement.placement import Placement

_JOB = (
    click.option(
        "--nodes",
        metavar="LIST|FILE|-",
        help="The job's nodes, in slot order; default: this job's.",
    ),
    click.option(
        "--ppn",
        metavar="N[,N...]",
        help="Ranks per node: 24 or 24,24,12; default: this job's, else 1.",
    ),
    click.option(
        "--pattern",
        metavar="P",
        shell_complete=among("pattern"),
        help="alltoall, stencil:24x24x16[,periodic], fft:64x64, bcast …",
    ),
    sending_options,
)


def job_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add options for machine, nodes and job; the command receives them as ``job``."""
    return machine_option(gather_options(JobArguments, "job", _JOB, command))


def pattern_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `job_options` except the nodes, which are to be chosen."""
    return machine_option(gather_options(JobArguments, "job", _JOB[1:], command))


@dataclass(frozen=True, slots=True)
class OrderArguments:
    """The options of `order_options`, as given."""

    path: str | None
    form: str | None
    strategy: str | None
    launcher_order: str | None

    def read(self, placement: Placement) -> Placement:
        """Return the order in the file."""
        from nidmap.rankmap import emit

        numbering = self.launcher_order or "sorted"
        return emit.read_order_file(self.path or "-", self.form, placement, numbering, "--format")


def order_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add options for an order file, its format or a strategy, received as ``order``."""
    return gather_options(OrderArguments, "order", _ORDER, command)


def strategy_option(text: str) -> Callable[..., Any]:
    """Return the option that names an order, with its help."""
    names = among("order")
    return click.option(
        "--strategy", default="auto", show_default=True, shell_complete=names, help=text
    )


def gather_options(
    kind: type[Any], word: str, options: Sequence[Callable[..., Any]], command: Callable[..., Any]
) -> Callable[..., Any]:
    """Add options to a command that receives them as one value called `word`; first on top.

    Whatever else a command takes that is called like a field of `kind` goes into it, too.
    """
    names = [field.name for field in fields(kind)]

    @functools.wraps(command)
    def call_command(**given: Any) -> Any:
        gathered = kind(**{name: given.pop(name) for name in names if name in given})
        return command(**{word: gathered}, **given)

    for option in reversed(options):
        call_command = option(call_command)
    return call_command


launcher_order_option = advanced(
    "--launcher-order",
    type=click.Choice(["sorted", "given"]),
    help="The launcher's node order, for MPICH_RANK_ORDER; default: sorted, as in Slurm.",
)

mapping_limit_option = advanced(
    "--mapping-limit",
    metavar="N|none",
    help="Longest rank map in bytes; default: the limit of the MPI library.",
)

_ORDER = (
    click.option("--order", "path", metavar="FILE|-", help="The order file to score."),
    click.option(
        "--format",
        "form",
        metavar="F",
        help="Format of --order: slots, mpich, slurm, json …; never guessed from its content.",
    ),
    click.option(
        "--strategy", metavar="S", help="Score this strategy's order instead of a file's."
    ),
    launcher_order_option,
)
