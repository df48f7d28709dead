"""The command ``nidmap bench alltoall``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from placement.commands.tables import aligned
from placement.errors import UsageError
from placement.quantities import exact_size, rate_text, time_text
from workloads.options import Common, Param, Sizes, choice, measured
from workloads.places import Place, place
from workloads.session import Session
from workloads.world import together

if TYPE_CHECKING:
    from mpi4py import MPI

    from workloads.session import Result

__all__ = ["alltoall", "bandwidths"]


class Counts(Param):
    """Ranks a node: ``max``, ``all`` (1, 2, 4 … and the most) or ``1,2,32``."""

    name = "counts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return ``max``, ``all`` or the counts as a tuple of int."""
        text = str(value)
        if text in ("max", "all"):
            return text
        parts = text.split(",")
        if not all(p.isascii() and p.isdigit() and 0 < len(p) < 7 and int(p) for p in parts):
            self.fail(f"{text!r} are no counts; max, all, or 1,2,32", param, ctx)
        return tuple(dict.fromkeys(int(p) for p in parts))


@click.command("alltoall")
@click.option(
    "--bytes",
    "sizes",
    type=Sizes(),
    default="8-4MiB",
    show_default=True,
    help="Payload of each ordered pair: 8,64,1KiB or 8-4MiB (powers of two).",
)
@choice("--kind", ["alltoall", "alltoallv", "both"], "both", "Which call of MPI.")
@click.option(
    "--ppn",
    type=Counts(),
    default="max",
    show_default=True,
    help="Ranks a node that take part: max, all (1, 2, 4 …) or 1,2,32.",
)
@click.option(
    "--spread",
    type=click.FloatRange(0, 1),
    default=0.0,
    help="For alltoallv: sizes differ by up to this part, by the seed.",
)
@measured
def alltoall(
    common: Common, sizes: tuple[int, ...], kind: str, ppn: str | tuple[int, ...], spread: float
) -> int:
    """Measure all-to-all bandwidth by message size, per process and per node.

    Per process: bytes that it sends to other ranks, by the time of the
    slowest rank (median of the repetitions). Per node: that of its ranks
    together; off node: what of it leaves the node.

    \b
    nidmap bench alltoall -n 4
    srun -N 64 --ntasks-per-node 32 nidmap bench alltoall --bytes 1MiB --ppn all -o a2a.csv
    """
    kinds = ("alltoall", "alltoallv") if kind == "both" else (kind,)
    options = {"sizes": list(sizes), "kind": kind, "ppn": ppn, "spread": spread}
    with Session(common, "alltoall", options) as session:
        here = place(session.comm)
        for wanted in _shapes(session.comm, here.most, ppn):
            part = _part(session.comm, here, wanted)
            for name in kinds:
                for size in sizes:
                    if not session.over():
                        uneven = spread if name == "alltoallv" else 0.0
                        _case(session, part, (here, wanted), name, size, uneven)
            part.Free()
    _show(session)
    return session.exit_code


def _shapes(comm: MPI.Intracomm, most: int, ppn: str | tuple[int, ...]) -> list[int]:
    """Return how many ranks a node take part in each round; the same on all ranks."""
    if ppn == "max":
        return [most]
    if ppn == "all":
        return [1 << k for k in range((most - 1).bit_length())] + [most]
    with together(comm):
        for count in ppn:
            if int(count) > most:
                raise UsageError(f"--ppn {count}: no node has more than {most} ranks")
    return [int(count) for count in ppn]


def _part(comm: MPI.Intracomm, here: Place, wanted: int) -> MPI.Intracomm:
    """Return the first ranks of each node, or the rest; both in the world's order."""
    return cast("MPI.Intracomm", comm.Split(int(here.local >= wanted), comm.Get_rank()))


def _case(
    session: Session,
    part: MPI.Intracomm,
    shape: tuple[Place, int],
    kind: str,
    size: int,
    spread: float,
) -> None:
    """Measure one size of one call on the ranks that take part."""
    from workloads.alltoall.trial import calls, trial

    here, wanted = shape
    joins = here.local < wanted
    made = None
    if joins:
        seed = session.common.seed
        made = trial(part, bytes=size, kind=kind, spread=spread, seed=seed)
    ranks, nodes, off = _moved(session.comm, here, wanted)
    session.measure(
        made,
        comm=part,
        kind=kind,
        bytes=size,
        ppn=wanted,
        ranks=ranks,
        nodes=nodes,
        off_node=off,
        inner=calls(size),
    )


def _moved(comm: MPI.Intracomm, here: Place, wanted: int) -> tuple[int, int, int]:
    """Return the ranks that take part, their nodes, and how many others the busiest node talks to.

    The last is the largest number of ordered pairs between a node's ranks and
    those elsewhere.
    """
    from array import array

    from mpi4py import MPI

    mine = min(here.ranks, wanted)
    total, most = array("q", [int(here.local < wanted)]), array("q", [0])
    comm.Allreduce(MPI.IN_PLACE, total, op=MPI.SUM)
    comm.Allreduce(array("q", [mine * (total[0] - mine)]), most, op=MPI.MAX)
    return total[0], here.nodes, most[0]


def bandwidths(result: Result) -> dict[str, float]:
    """Return bytes a second of one case, from its median repetition.

    Returns
    -------
    dict
        ``process``: what a process sends to all others; ``node``: that of the
        fullest node's processes together; ``off_node``: what leaves it.

    Examples
    --------
    >>> from workloads.session import Result
    >>> case = {"bytes": 1000, "ranks": 4, "ppn": 2, "off_node": 4}
    >>> total = [{"min": 1.0, "mean": 1.5, "max": 2.0}]
    >>> bandwidths(Result(case, {"total": total}))
    {'process': 1500.0, 'node': 3000.0, 'off_node': 2000.0}
    """
    case, seconds = result.labels, result.median()
    process = case["bytes"] * (case["ranks"] - 1) / seconds
    return {
        "process": process,
        "node": process * min(case["ppn"], case["ranks"]),
        "off_node": case["bytes"] * case["off_node"] / seconds,
    }


def _show(session: Session) -> None:
    finished = [result for result in session.results if result]
    rates = [bandwidths(result) for result in finished]
    document = session.document()
    for case, rate in zip(document["cases"], rates, strict=True):
        case["bandwidth"] = rate
    head = ["bytes", "call", "ppn", "ranks", "best", "median", "process", "node", "off node"]
    rows = [_row(result, rate) for result, rate in zip(finished, rates, strict=True)]
    session.common.show(document, aligned([head, *rows]))


def _row(result: Result, rate: dict[str, float]) -> list[str]:
    case = result.labels
    times = [time_text(result.best()), time_text(result.median())]
    rates = [rate_text(rate[name]) for name in ("process", "node", "off_node")]
    return [
        exact_size(case["bytes"]),
        case["kind"],
        str(case["ppn"]),
        str(case["ranks"]),
        *times,
        *rates,
    ]
