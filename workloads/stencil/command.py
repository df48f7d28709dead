"""The command ``nidmap bench stencil``."""

from __future__ import annotations

from typing import Any

import click

from placement.commands.common import machine_option
from placement.errors import UsageError
from placement.support.lazy import lazy
from placement.support.quantities import exact_size, rate_text, time_text
from placement.support.tables import align_columns
from workloads.options import Common, Sizes, Words, bench_callback, setting
from workloads.session import Session

kinds = lazy("workloads.stencil.kinds")

__all__ = ["stencil"]

_METHODS = ("put", "neighbor")


@click.command("stencil")
@click.option(
    "--bytes",
    "sizes",
    type=Sizes(),
    metavar="SIZES",
    help="Of a message (or copy): 8,64,1KiB or 1-2MiB, powers of two. "
    "Default: 1-2MiB; 1-1MiB with --levels, 1KiB-16MiB with --copies.",
)
@setting("--dims", str, "auto", "Grid of units: 4x4x2.", metavar="GRID")
@click.option("--periodic", is_flag=True, help="The grid wraps around: six neighbours for all.")
@setting(
    "--method methods",
    Words(_METHODS),
    "put",
    "put (blocking, one-sided), neighbor (a collective), or all.",
    metavar="WAYS",
)
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    help="Exchanges over all repetitions. Default: the paper's 10,000, fewer where a rank "
    "would move more than 4 GiB.",
)
@click.option("--no-shm", is_flag=True, help="No shared windows between ranks of a node.")
@click.option("--levels", is_flag=True, help="Latency to partners at each level of the network.")
@click.option("--copies", is_flag=True, help="Throughput of local copies: own, node's, remote.")
@machine_option
@bench_callback
def stencil(
    common: Common,
    sizes: tuple[int, ...] | None,
    methods: tuple[str, ...],
    levels: bool,
    copies: bool,
    specs: tuple[str, ...],
    **options: Any,
) -> int:
    """Time halo exchanges with six neighbours, message latencies and local copies.

    A repetition is a tenth (1/--repeat) of the iterations; times are of one
    exchange, of the slowest rank.

    \b
    nidmap bench stencil -n 8 --periodic --method all --bytes 1-64KiB
    srun -n 9216 nidmap bench stencil --dims 24x24x16 --no-shm -o stencil.csv
    srun -n 9216 nidmap bench stencil --levels -m hazelhen
    srun -n 48 nidmap bench stencil --copies
    """
    if levels and copies:
        raise UsageError("--levels and --copies are two measurements", "ask for one of them")
    given = {**options, "method": list(methods), "levels": levels, "copies": copies}
    with Session(common, "stencil", {**given, "bytes": sizes}) as session:
        if levels:
            kinds.levels(session, sizes or _powers(0, 20), specs, options)
        elif copies:
            kinds.copies(session, sizes or _powers(10, 24), options)
        else:
            kinds.halos(session, sizes or _powers(0, 21), methods, options)
    _show(session)
    return session.exit_code


def _powers(first: int, last: int) -> tuple[int, ...]:
    return tuple(1 << k for k in range(first, last + 1))


def _show(session: Session) -> None:
    document, finished = session.document(), session.finished
    labels = finished[0].labels if finished else {}
    told_by = [name for name in ("method", "level", "where") if name in labels]
    copies = ["throughput"] if "where" in told_by else []
    rows: list[list[object]] = [["bytes", *told_by, "best", "median", "worst", *copies]]
    for case, result in zip(document["cases"], finished, strict=True):
        total = case["seconds"]["total"]
        times = [time_text(total[name]) for name in ("best", "median", "worst")]
        rows.append([exact_size(case["bytes"]), *(case[name] for name in told_by), *times])
        if copies:
            case["throughput"] = case["bytes"] / result.median()
            rows[-1].append(rate_text(case["throughput"]))
    session.common.show(document, align_columns(rows) if finished else "")
