"""The command ``nidmap bench stencil``."""

from __future__ import annotations

from itertools import product
from typing import Any

import click

from placement.support.lazy import lazy
from placement.support.quantities import exact_size, time_text
from placement.support.tables import align_columns
from workloads.options import Common, Sizes, Words, bench_callback, option_with_default
from workloads.session import Session

trials = lazy("workloads.stencil.trial")

__all__ = ["per_repetition", "stencil"]

_METHODS = ("put", "neighbor")


@click.command("stencil")
@option_with_default(
    "--bytes sizes",
    Sizes(),
    "1-2MiB",
    "Of a message: 8,64,1KiB or 1-2MiB, powers of two.",
    metavar="SIZES",
)
@option_with_default("--dims", str, "auto", "Grid of units: 4x4x2.", metavar="GRID")
@click.option("--periodic", is_flag=True, help="The grid wraps around: six neighbours for all.")
@option_with_default(
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
@bench_callback
def stencil(
    common: Common,
    sizes: tuple[int, ...],
    dims: str,
    periodic: bool,
    methods: tuple[str, ...],
    iterations: int | None,
    no_shm: bool,
) -> int:
    """Time halo exchanges with six neighbours.

    A repetition is a tenth (1/--repeat) of the iterations; times are of one
    exchange, of the slowest rank.

    \b
    nidmap bench stencil -n 8 --bytes 64KiB
    nidmap bench stencil -n 8 --periodic --method all --bytes 1-64KiB
    srun -n 9216 nidmap bench stencil --dims 24x24x16 --no-shm -o stencil.csv
    """
    how: dict[str, Any] = {"periodic": periodic, "shm": not no_shm}
    given = {"bytes": sizes, "dims": dims, "periodic": periodic, "method": list(methods)}
    given |= {"iterations": iterations, "no_shm": no_shm}
    with Session(common, "stencil", given) as session:
        for size, method in product(sizes, methods):
            if session.over():
                break
            how["iterations"] = per_repetition(iterations, 6 * size, common.repeat)
            made = trials.trial(
                session.comm, bytes=size, dims=dims, method=method, seed=common.seed, **how
            )
            grid = "x".join(map(str, made.grid))
            session.measure(made, bytes=size, method=method, dims=grid, **how)
            made.close()
    _show_session(session)
    return session.exit_code


def per_repetition(wanted: int | None, moved: int, repeat: int) -> int:
    """Return the iterations of one repetition.

    Parameters
    ----------
    wanted : int or None
        In all, as the user says; None: the paper's 10,000, fewer where a rank would move
        more than 4 GiB.
    moved : int
        Bytes that a rank moves in one.
    repeat : int

    Examples
    --------
    >>> per_repetition(None, 6, 10), per_repetition(None, 6 << 21, 10), per_repetition(25, 6, 10)
    (1000, 35, 3)
    """
    total = wanted or min(10_000, max(1, (4 << 30) // max(moved, 1)))
    return -(-total // repeat)


def _show_session(session: Session) -> None:
    document = session.document()
    rows: list[list[object]] = [["bytes", "method", "best", "median", "worst"]]
    for case in document["cases"]:
        total = case["seconds"]["total"]
        times = [time_text(total[name]) for name in ("best", "median", "worst")]
        rows.append([exact_size(case["bytes"]), case["method"], *times])
    session.common.show(document, align_columns(rows) if len(rows) > 1 else "")
