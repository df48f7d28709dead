"""The command ``nidmap bench stencil``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import machine_option
from placement.commands.tables import aligned
from placement.errors import UsageError
from placement.quantities import exact_size, rate_text, time_text
from workloads.options import Common, Sizes, measured
from workloads.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.session import Result

__all__ = ["stencil"]

_METHODS = ("put", "put-all", "sendrecv", "neighbor")


@click.command("stencil")
@click.option(
    "--bytes",
    "sizes",
    type=Sizes(),
    metavar="SIZES",
    help="Of a message (or copy): 8,64,1KiB or 1-2MiB, powers of two. "
    "Default: 1-2MiB; 1-1MiB with --levels, 1KiB-16MiB with --copies.",
)
@click.option(
    "--dims", default="auto", show_default=True, metavar="GRID", help="Grid of units: 4x4x2."
)
@click.option("--periodic", is_flag=True, help="The grid wraps around: six neighbours for all.")
@click.option(
    "--method",
    default="put",
    show_default=True,
    metavar="WAYS",
    help="put (blocking, one-sided), put-all, sendrecv, neighbor; several by commas, or all.",
)
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    help="Exchanges over all repetitions. Default: the paper's 10,000, fewer where a rank "
    "would move more than 4 GiB.",
)
@click.option("--no-shm", is_flag=True, help="No shared windows between ranks of a node.")
@click.option("--levels", is_flag=True, help="Latency to partners at each level of the network.")
@click.option(
    "--partners",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="With --levels: ranks a level that rank 0 is timed against.",
)
@click.option("--copies", is_flag=True, help="Throughput of local copies: own, node's, remote.")
@click.option(
    "--chunk",
    default="auto",
    metavar="BYTES",
    help="With --copies: bytes of a transfer; auto tunes it.",
)
@machine_option
@measured
def stencil(
    common: Common,
    sizes: tuple[int, ...] | None,
    method: str,
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
    from workloads.stencil import kinds

    if levels and copies:
        raise UsageError("--levels and --copies are two measurements", "ask for one of them")
    asked = {**options, "method": method, "levels": levels, "copies": copies, "bytes": sizes}
    with Session(common, "stencil", asked) as session:
        if levels:
            kinds.levels(session, sizes or _powers(1, 1 << 20), _ways(method)[0], specs, options)
        elif copies:
            kinds.copies(session, sizes or _powers(1 << 10, 1 << 24), options)
        else:
            kinds.halos(session, sizes or _powers(1, 1 << 21), _ways(method), options)
    _show(session)
    return session.exit_code


def _powers(low: int, high: int) -> tuple[int, ...]:
    return tuple(1 << k for k in range(low.bit_length() - 1, high.bit_length()))


def _ways(text: str) -> list[str]:
    words = list(dict.fromkeys(text.split(",")))
    if words == ["all"]:
        return list(_METHODS)
    unknown = [word for word in words if word not in _METHODS]
    if unknown:
        raise UsageError(
            f"no way to exchange {unknown[0]!r}", f"there are {', '.join(_METHODS)}, all"
        )
    return words


def _show(session: Session) -> None:
    finished = [result for result in session.results if result]
    document = session.document()
    for case, result in zip(document["cases"], finished, strict=True):
        if "where" in result.labels:
            case["throughput"] = _rate(result)
    session.common.show(document, _text(finished))


def _rate(result: Result) -> float:
    return float(result.labels["bytes"] / result.median())


def _text(finished: Sequence[Result]) -> str:
    if not finished:
        return ""
    kinds = [key for key in ("method", "level", "where") if key in finished[0].labels]
    head = ["bytes", *kinds, "best", "median", "worst"]
    rows = []
    for result in finished:
        labels = result.labels
        total = result.summary()["total"]
        times = [time_text(total[name]) for name in ("best", "median", "worst")]
        more = [rate_text(_rate(result))] if "where" in labels else []
        rows.append([exact_size(labels["bytes"]), *(labels[k] for k in kinds), *times, *more])
    return aligned([[*head, "throughput"] if "where" in kinds else head, *rows])
