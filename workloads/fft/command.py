"""The command ``nidmap bench fft``."""

from __future__ import annotations

from dataclasses import asdict
from itertools import product
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import machine_option, say
from placement.support.lazy import lazy
from placement.support.quantities import time_text
from placement.support.tables import align_columns
from workloads.options import Common, Words, bench_callback, named_machine, setting
from workloads.session import Session
from workloads.world import decide_on_root, doubling, together

if TYPE_CHECKING:
    from workloads.fft import local
    from workloads.fft import scaling as scalings
    from workloads.fft import trial as trials
    from workloads.fft.scaling import Scaling
else:
    local, trials = lazy("workloads.fft.local"), lazy("workloads.fft.trial")
    scalings = lazy("workloads.fft.scaling")

__all__ = ["fft"]

_WAYS = ("alltoall", "vector")


@click.command("fft")
@setting(
    "--shape",
    str,
    "128",
    "128x128x64; 128 is a cube; 256x1x128 or 256x128 are 2-D.",
    metavar="SIZE",
)
@setting(
    "--grid",
    str,
    "slab",
    "slab, pencil, or rows and columns of the process grid: 8x16.",
    metavar="GRID",
)
@setting("--kind", ["c2c", "r2c"], "c2c", "Complex or real data.")
@setting(
    "--transpose ways",
    Words(_WAYS),
    "alltoall",
    "alltoall (rearranged locally), vector (MPI_Type_vector), or both by a comma; all.",
    metavar="WAYS",
)
@click.option(
    "--scaling", is_flag=True, help="Also on 1, 2, 4 … of the ranks, and fit T = C p^-gamma."
)
@machine_option
@bench_callback
def fft(
    common: Common,
    ways: tuple[str, ...],
    scaling: bool,
    specs: tuple[str, ...],
    **options: Any,
) -> int:
    """Time FFTs in two and three dimensions on slabs and pencils.

    The time is that of a pair of transforms, forward and backward, of the
    slowest rank; "exchange" is what of it is spent in messages, and the
    result is checked against the sums of the definition outside the timing.

    \b
    nidmap bench fft -n 4 --shape 256
    nidmap bench fft -n 4 --shape 128x96x64 --grid pencil --kind r2c --transpose all
    srun -n 2048 nidmap bench fft --shape 2048 --grid 32x64 --scaling -m shaheen2
    """
    given = {**options, "transpose": list(ways), "scaling": scaling}
    with Session(common, "fft", given) as session:
        ends = decide_on_root(session.comm, lambda: _ends(specs, session, scaling))
        most = session.comm.Get_size()
        for ranks, way in product(doubling(most) if scaling else [most], ways):
            if not session.over():
                _case(session, ranks, way, options)
    if session.root:
        fits = {way: _fit_way(session, way, ends) for way in ways if scaling}
        if session.finished:
            _say_library()
        _show(session, {way: fit for way, fit in fits.items() if fit})
    return session.exit_code


def _ends(specs: tuple[str, ...], session: Session, scaling: bool) -> dict[str, int]:
    """Return the ranks at which the levels of the machine end; none without a machine."""
    machine = named_machine(specs) if scaling else None
    return scalings.levels(machine, int(session.journal.header.get("ppn", 1))) if machine else {}


def _case(session: Session, ranks: int, way: str, options: dict[str, Any]) -> None:
    """Measure one way on the first so many ranks."""
    comm = session.comm
    joins = comm.Get_rank() < ranks
    part = session.part(joins) if ranks < comm.Get_size() else comm
    made = trials.trial(part, transpose=way, seed=session.common.seed, **options) if joins else None
    with together(comm):
        labels = {
            "n": "x".join(map(str, trials.extents(options["shape"]))),
            "cut": options["grid"] if options["grid"] in ("slab", "pencil") else "grid",
            "grid": "x".join(map(str, made.transform.grid)) if made else "",
            "kind": options["kind"],
            "transpose": way,
            "ranks": ranks,
        }
    session.measure(made, comm=part, **labels)
    if made is not None:
        made.close()
    if part is not comm:
        part.Free()


def _say_library() -> None:
    """Say which local FFTs were taken, where there are faster ones."""
    used = local.library()
    if used != "ducc0":
        say(f"nidmap: local FFTs by {used}; ducc0 is faster: pip install 'nidmap[fft]'")


def _fit_way(session: Session, way: str, ends: dict[str, int]) -> Scaling | None:
    """Return the fit of one way's times; None where there are too few."""
    found = [result for result in session.finished if result.labels["transpose"] == way]
    ranks = [result.labels["ranks"] for result in found]
    if len(set(ranks)) < 2:
        return None
    name = _level_between(ranks, ends)
    return scalings.fit_gamma(
        ranks, [r.median() for r in found], break_at=ends.get(name), level=name
    )


def _level_between(ranks: list[int], ends: dict[str, int]) -> str:
    """Return the first level whose end has two numbers of ranks on either side, '' for none."""
    for name, end in ends.items():
        inside = len({p for p in ranks if p <= end})
        if min(inside, len(set(ranks)) - inside) >= 2:
            return name
    return ""


def _show(session: Session, fits: dict[str, Scaling]) -> None:
    document = session.document()
    if fits:
        document["fits"] = {way: asdict(fit) for way, fit in fits.items()}
    rows = [["transpose", "ranks", "grid", "best", "median", "exchange", "transform", "rearrange"]]
    for result in session.finished:
        phases = ("total", "communication", "transform", "rearrange")
        times = [result.best(), *(result.median(phase) for phase in phases)]
        what = (result.labels[name] for name in ("transpose", "ranks", "grid"))
        rows.append([*what, *map(time_text, times)])
    text = align_columns(rows)
    for way, fit in fits.items():
        text += f"{way}: {fit.whole}\n"
        where = f" ({fit.level})" if fit.level else ""
        for name, piece in (("up to", fit.inside), ("beyond", fit.beyond)):
            if piece is not None:
                text += f"  {name} {fit.break_at:g} ranks{where}: {piece}\n"
    session.common.show(document, text)
