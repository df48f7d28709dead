# SPDX-License-Identifier: Apache-2.0
"""``nidmap order``: order a job's ranks on its nodes."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
import numpy as np

from nidmap.placement.commands.common import AdvancedCommand, advanced, quiet_option
from nidmap.placement.errors import UsageError
from nidmap.placement.plan import overfull
from nidmap.placement.support.writing import write_output
from nidmap.placement.ui import AFTER, bar, say, warn
from nidmap.rankmap.binding import BINDERS, bind
from nidmap.rankmap.commands.job_options import (
    job_options,
    launcher_order_option,
    mapping_limit_option,
    strategy_option,
)
from nidmap.rankmap.emit import FORMATS, emit, find, format_of
from nidmap.rankmap.launch.request import JobArguments
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.progress import listen
from nidmap.rankmap.refine.budget import seconds_for
from nidmap.rankmap.search.auto_order import order_by_strategy
from nidmap.rankmap.search.short_orders import fit_format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nidmap.placement.placement import Placement

#: Searches of at least this many seconds are announced.
_LONG = 5.0

#: The deadline of auto where none is stated, for more ranks than these.
_USUAL_DEADLINE, _MANY = 120.0, 1 << 17


@click.command(cls=AdvancedCommand)
@job_options
@strategy_option("auto (by predicted time or J, never worse than row-major), graph, boxes …")
@advanced(
    "--deadline",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    help="Processor seconds for auto and graph; default: none, or 120 from 131,072 ranks on.",
)
@launcher_order_option
@mapping_limit_option
@click.option(
    "--format",
    "form",
    metavar="F",
    help="File format (--help-all lists them); default: by the name of -o.",
)
@click.option(
    "--bind",
    "binder",
    type=click.Choice([*BINDERS, "openmpi"]),
    help="Also choose each rank's cores and GPUs; print the launcher's options for that.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE, atomically.")
@quiet_option
def order(
    job: JobArguments,
    strategy: str,
    deadline: float | None,
    launcher_order: str | None,
    mapping_limit: str | None,
    form: str | None,
    binder: str | None,
    as_json: bool,
    output: str | None,
) -> None:
    """Order a job's ranks on its nodes.

    Slots are numbered node by node, in the order of --nodes (default: those of the
    current job, else all free compute nodes). auto runs the search of nidmap plan on
    exactly these nodes: by predicted time where the machine states bandwidths, by J
    where it does not or a graph has millions of edges; stderr says which. The name of
    -o sets the format: .slots (line r is the slot of rank r, the default),
    MPICH_RANK_ORDER, .hosts, .rankfile, .json …

    \b
    nidmap order -m shaheen2 --nodes 12-15 --ppn 32 --pattern fft:8x16 -o MPICH_RANK_ORDER
    nidmap plan -m shaheen2 -N 2 | nidmap order -m shaheen2 --nodes - --ppn 32 --pattern fft:8x8
    nidmap order -m polaris --nodes '#0-3' --ppn 4 --pattern stencil:4x4 --bind pals -o ranks.mpich
    \f
    \b
    FORMATS

    With --bind each rank gets cores of its node with the nearest GPU and NIC, as
    the site or hwloc's XML (-m node.xml) describes it. The order goes to -o; the launcher's
    options, none where a rankfile is enough, go to stdout.
    """
    pattern, numbering = job.named_pattern(), launcher_order or "sorted"
    if form == "json":
        raise UsageError("json is not a --format", "use --json or -o FILE.json")
    chosen = "json" if as_json else form or format_of(output, "--format")
    find(chosen)
    placement, wanted = job.placement_anywhere(), job.job()
    seconds = _seconds_left(deadline, strategy, placement.ranks)
    if strategy == "graph" and deadline is not None:
        strategy = f"graph:seconds={seconds:g}"
    with _show_progress(placement.ranks, strategy, pattern, seconds):
        ordered = order_by_strategy(placement, wanted, strategy, seconds)
    ordered, limit_words = fit_format(ordered, chosen, numbering, mapping_limit, wanted)
    if binder:
        if chosen not in ("json", "openmpi") and output in (None, "-"):
            raise UsageError(
                "--bind prints the launcher's options, so the order needs a file", "use -o FILE"
            )
        bound = bind(ordered, parse_pattern(pattern).on(ordered), binder, chosen)
        write_output(bound.text(chosen, numbering), output)
        if chosen not in ("json", "openmpi"):
            write_output(bound.lines())
        say(f"nidmap: {bound.remark}")
    else:
        write_output(emit(ordered, chosen, numbering), output)
    _report_order(ordered, chosen, launcher_order)
    optimised = ordered.origin.optimised
    if math.isfinite(seconds) and optimised and not optimised["finished"]:
        say("nidmap: --deadline ended the search: more seconds may find a better order")
    if limit_words:
        say(f"nidmap: {limit_words}")
    sending = job.sending()
    if sending and strategy != "auto":
        say(f"nidmap: --{next(iter(sending))} has an effect only with --strategy auto")


_rows = [
    f"{'--json' if name == 'json' else name:10} {kind.files.partition(' ')[0]:17} {kind.words}"
    for name, kind in FORMATS.items()
]
order.help = (order.help or "").replace("FORMATS", "\n    ".join(_rows))


def _seconds_left(deadline: float | None, strategy: str, ranks: int) -> float:
    """Return the processor time left before a deadline, less that of reading the input."""
    if deadline is None and (strategy != "auto" or ranks <= _MANY):
        return math.inf
    deadline = _USUAL_DEADLINE if deadline is None else deadline
    if strategy not in ("auto", "graph"):
        raise UsageError("--deadline needs --strategy auto or graph", "others do not search")
    return max(deadline - time.process_time(), 0.001)


@contextmanager
def _show_progress(ranks: int, strategy: str, pattern: str, seconds: float) -> Iterator[None]:
    """Announce a long search, and show its progress on a terminal."""
    searched = strategy.partition(":")[0] in ("auto", "graph")
    usual = seconds_for(ranks) * (2 if strategy == "auto" else 1)
    expected = min(usual, seconds) if searched else 1.0
    with bar(0 if expected >= _LONG else AFTER) as show:
        begun, doing = time.process_time(), strategy

        def tell(text: str) -> None:
            nonlocal doing
            doing = text or doing
            if show is not None:
                show(min((time.process_time() - begun) / expected, 0.99), doing)

        listen(tell)
        try:
            if expected >= _LONG and isinstance(parse_pattern(pattern), Graph):
                ends = "" if math.isfinite(seconds) else "; --deadline S ends it sooner"
                say(f"nidmap: a graph of {ranks:,} ranks takes about {expected:.0f} s{ends}")
            yield
        finally:
            listen(None)


def _warn_of_service_nodes(order: Placement) -> None:
    machine = order.machine
    if machine is None:
        return
    service = order.names[~machine.compute[order.rows]]
    if len(service):
        warning = f"{len(service)} of the nodes are service nodes, first {service[0]}"
        warn(f"nidmap: {warning}: no job runs there")


def _report_order(order: Placement, form: str, launcher_order: str | None) -> None:
    """Report the order, and warn of nodes that are not for jobs or have too many ranks."""
    machine = order.machine
    _warn_of_service_nodes(order)
    say(f"{order.origin.strategy} order of {order.origin.pattern} on {order.words()}")
    if order.origin.remark:
        say(f"nidmap: {order.origin.remark}")
    if form == "mpich" and launcher_order is None and (np.diff(order.sorting()) < 0).any():
        say(
            "nidmap: the file is for the nodes in Slurm's order, not in the given one; "
            "--launcher-order given writes that"
        )
    if machine is None:
        return
    full = overfull(machine, order.rows, order.counts)
    if full:
        say(f"nidmap: {full}")
