"""The command ``nidmap bench fft``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import say
from placement.support.lazy import lazy
from placement.support.quantities import time_text
from placement.support.tables import align_columns
from workloads.options import Common, Words, bench_callback, option_with_default
from workloads.session import Session
from workloads.world import raise_together

if TYPE_CHECKING:
    from workloads.fft import local
    from workloads.fft import trial as trials
else:
    local, trials = lazy("workloads.fft.local"), lazy("workloads.fft.trial")

__all__ = ["fft"]

_WAYS = ("alltoall", "vector")


@click.command("fft")
@option_with_default(
    "--shape",
    str,
    "128",
    "128x128x64; 128 is a cube; 256x1x128 or 256x128 are 2-D.",
    metavar="SIZE",
)
@option_with_default(
    "--grid",
    str,
    "slab",
    "slab, pencil, or rows and columns of the process grid: 8x16.",
    metavar="GRID",
)
@option_with_default("--kind", ["c2c", "r2c"], "c2c", "Complex or real data.")
@option_with_default(
    "--transpose ways",
    Words(_WAYS),
    "alltoall",
    "alltoall (rearranged locally), vector (MPI_Type_vector), or both by a comma; all.",
    metavar="WAYS",
)
@bench_callback
def fft(common: Common, ways: tuple[str, ...], **options: Any) -> int:
    """Time FFTs in two and three dimensions on slabs and pencils.

    The time is that of a pair of transforms, forward and backward, of the
    slowest rank; "exchange" is what of it is spent in messages, and the
    result is checked against the sums of the definition outside the timing.

    \b
    nidmap bench fft -n 4 --shape 256
    nidmap bench fft -n 4 --shape 128x96x64 --grid pencil --kind r2c --transpose all
    srun -n 2048 nidmap bench fft --shape 2048 --grid 32x64 -o fft.csv
    """
    with Session(common, "fft", {**options, "transpose": list(ways)}) as session:
        for way in ways:
            if not session.over():
                _measure_way(session, way, options)
    if session.root:
        if session.finished:
            _say_library()
        _show_session(session)
    return session.exit_code


def _measure_way(session: Session, way: str, options: dict[str, Any]) -> None:
    made = trials.trial(session.comm, transpose=way, seed=session.common.seed, **options)
    with raise_together(session.comm):
        labels = {
            "n": "x".join(map(str, trials.parse_extents(options["shape"]))),
            "cut": options["grid"] if options["grid"] in ("slab", "pencil") else "grid",
            "grid": "x".join(map(str, made.transform.grid)),
            "kind": options["kind"],
            "transpose": way,
            "ranks": session.comm.Get_size(),
        }
    session.measure(made, **labels)
    made.close()


def _say_library() -> None:
    """Say which local FFTs were taken, where there are faster ones."""
    used = local.best_library()
    if used != "ducc0":
        say(f"nidmap: local FFTs by {used}; ducc0 is faster: pip install 'nidmap[fft]'")


def _show_session(session: Session) -> None:
    rows = [["transpose", "ranks", "grid", "best", "median", "exchange", "transform", "rearrange"]]
    for result in session.finished:
        phases = ("total", "communication", "transform", "rearrange")
        times = [result.best(), *(result.median(phase) for phase in phases)]
        what = (result.labels[name] for name in ("transpose", "ranks", "grid"))
        rows.append([*what, *map(time_text, times)])
    session.common.show(session.document(), align_columns(rows))
