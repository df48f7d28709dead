"""The command ``nidmap bench fft``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from placement.commands.common import machine_option, say
from placement.commands.tables import aligned
from placement.errors import UsageError
from placement.quantities import time_text
from workloads.options import Common, measured
from workloads.session import Session
from workloads.world import together

if TYPE_CHECKING:
    from workloads.fft.scaling import Scaling
    from workloads.session import Result

__all__ = ["fft"]

_WAYS = ("auto", "alltoall", "vector", "alltoallw", "shared")


@click.command("fft")
@click.option(
    "--shape",
    default="128",
    show_default=True,
    metavar="SIZE",
    help="128x128x64; 128 is a cube; 256x1x128 or 256x128 are 2-D.",
)
@click.option(
    "--grid",
    default="slab",
    show_default=True,
    metavar="GRID",
    help="slab, pencil, or rows and columns of the process grid: 8x16.",
)
@click.option(
    "--basis",
    default="",
    metavar="LETTERS",
    help="FFF, SFF, SSF or SSS; C for cosine in place of sine. Default: all F.",
)
@click.option(
    "--kind", type=click.Choice(["c2c", "r2c"]), default="c2c", help="Complex or real data."
)
@click.option("--precision", type=click.Choice(["double", "single"]), default="double")
@click.option(
    "--transpose",
    default="auto",
    show_default=True,
    metavar="WAYS",
    help="alltoall (rearranged locally), vector, alltoallw, shared, auto; several by commas; all.",
)
@click.option(
    "--direction",
    type=click.Choice(["both", "forward", "backward"]),
    default="both",
    show_default=True,
)
@click.option(
    "--pieces", type=click.IntRange(min=0), default=0, help="Exchanges a direction; 0: by size."
)
@click.option("--library", default="", help="Local FFTs: ducc0, scipy, numpy. Default: the best.")
@click.option(
    "--scaling",
    is_flag=True,
    help="Also on 1, 2, 4 … of the ranks, and fit T = C p^-gamma.",
)
@machine_option
@click.option(
    "--level", default="", help="With --scaling and -m: break the fit at this level, e.g. chassis."
)
@measured
def fft(
    common: Common,
    transpose: str,
    scaling: bool,
    specs: tuple[str, ...],
    level: str,
    **options: Any,
) -> int:
    """Time FFTs in two and three dimensions on slabs and pencils.

    The time is that of a pair of transforms, forward and backward, of the
    slowest rank; "exchange" is what of it is spent in messages, and the
    result is checked against the sums of the definition outside the timing.

    \b
    nidmap bench fft -n 4 --shape 256
    nidmap bench fft -n 4 --shape 128x96x64 --grid pencil --kind r2c --transpose all
    srun -n 2048 nidmap bench fft --shape 2048 --grid 32x64 --scaling -m shaheen2 --level chassis
    """
    ways = _ways(transpose)
    with Session(common, "fft", {**options, "transpose": ways, "scaling": scaling}) as session:
        with together(session.comm):
            ends = _ends(specs, session) if scaling and session.root else {}
            if level and session.root and level not in ends:
                known = ", ".join(ends) or "none without --scaling and -m"
                raise UsageError(f"no level {level!r}", f"there are {known}")
        sizes = _sizes(session.comm.Get_size()) if scaling else [session.comm.Get_size()]
        note = ""
        for ranks in sizes:
            for way in ways:
                if not session.over():
                    note = _case(session, ranks, way, options) or note
    fits = (
        {way: _fitted(session, way, ends, level) for way in ways}
        if session.root and scaling
        else {}
    )
    if note and session.root:
        say(f"nidmap: {note}")
    _show(session, fits)
    return session.exit_code


def _ways(text: str) -> list[str]:
    words = list(dict.fromkeys(text.split(",")))
    if words == ["all"]:
        return list(_WAYS[1:4])
    unknown = [word for word in words if word not in _WAYS]
    if unknown:
        raise UsageError(f"no way to transpose {unknown[0]!r}", f"there are {', '.join(_WAYS)}")
    return words


def _sizes(most: int) -> list[int]:
    """Return 1, 2, 4 … and all ranks."""
    return [1 << k for k in range((most - 1).bit_length())] + [most]


def _ends(specs: tuple[str, ...], session: Session) -> dict[str, int]:
    """Return the ranks at which the levels of the machine end; none without a machine."""
    import os

    if not (specs or os.environ.get("NIDMAP_MACHINE")):
        return {}
    from placement.commands.common import machine_from
    from workloads.fft.scaling import levels

    return levels(machine_from(specs), int(session.journal.header.get("ppn", 1)))


def _case(session: Session, ranks: int, way: str, options: dict[str, Any]) -> str:
    """Measure one way on the first so many ranks; return a word on the local library."""
    from mpi4py import MPI

    from workloads.fft.kernels import library
    from workloads.fft.trial import extents, trial

    part = session.comm
    joins = session.comm.Get_rank() < ranks
    if ranks < session.comm.Get_size():
        part = cast("MPI.Intracomm", session.comm.Split(int(not joins), session.comm.Get_rank()))
    made = trial(part, transpose=way, seed=session.common.seed, **options) if joins else None
    with together(session.comm):
        labels = {
            "n": "x".join(map(str, extents(options["shape"]))),
            "cut": options["grid"] if options["grid"] in ("slab", "pencil") else "grid",
            "grid": "x".join(map(str, made.transform.grid)) if made else "",
            **{name: options[name] for name in ("basis", "kind", "precision", "direction")},
            "transpose": way,
            "ranks": ranks,
        }
    session.measure(made, comm=part, **labels)
    if made is not None:
        made.close()
    if part is not session.comm:
        part.Free()
    used = options["library"] or library()
    if used == "ducc0":
        return ""
    return f"local FFTs by {used}; ducc0 is faster: pip install 'nidmap[fft]'"


def _fitted(session: Session, way: str, ends: dict[str, int], level: str) -> Scaling | None:
    """Return the fit of one way's times; None where there are too few."""
    from workloads.fft.scaling import fit_gamma

    found = [r for r in session.results if r and r.labels["transpose"] == way]
    ranks = [result.labels["ranks"] for result in found]
    if len(set(ranks)) < 2:
        return None
    at = ends.get(level) if level else _between(ranks, ends)
    name = level or next((n for n, end in ends.items() if end == at), "")
    return fit_gamma(ranks, [r.median() for r in found], break_at=at, level=name)


def _between(ranks: list[int], ends: dict[str, int]) -> int | None:
    """Return the first level's end that has two numbers of ranks on either side."""
    for end in ends.values():
        inside = len({p for p in ranks if p <= end})
        if min(inside, len(set(ranks)) - inside) >= 2:
            return end
    return None


def _show(session: Session, fits: dict[str, Scaling | None]) -> None:
    document = session.document()
    if fits:
        document["fits"] = {way: _plain(fit) for way, fit in fits.items() if fit}
    head = ["transpose", "ranks", "grid", "best", "median", "exchange", "transform", "rearrange"]
    rows = [_row(result) for result in session.results if result]
    words = [_words(way, fit) for way, fit in fits.items() if fit]
    session.common.show(document, aligned([head, *rows]) + "".join(words))


def _row(result: Result) -> list[str]:
    labels = result.labels
    times = [time_text(result.best()), time_text(result.median())]
    phases = [
        time_text(result.median(phase)) for phase in ("communication", "transform", "rearrange")
    ]
    return [labels["transpose"], str(labels["ranks"]), labels["grid"], *times, *phases]


def _plain(fit: Scaling) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(fit), "jump": fit.jump}


def _words(way: str, fit: Scaling) -> str:
    lines = [f"{way}: {fit.whole}\n"]
    where = f" ({fit.level})" if fit.level else ""
    for name, piece in (("up to", fit.inside), ("beyond", fit.beyond)):
        if piece is not None:
            lines.append(f"  {name} {fit.break_at:g} ranks{where}: {piece}\n")
    return "".join(lines)
