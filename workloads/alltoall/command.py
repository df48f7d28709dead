"""The command ``nidmap bench alltoall``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from placement.errors import UsageError
from placement.support.lazy import lazy
from placement.support.quantities import exact_size, rate_text, time_text
from placement.support.tables import align_columns
from workloads.options import Common, Param, Sizes, bench_callback, option_with_default
from workloads.session import Session
from workloads.world import MPI, Comm, RankPlace, doubling_counts, raise_together, rank_place

trials = lazy("workloads.alltoall.trial")

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
            self.fail(f"{text!r} are not counts; max, all, or 1,2,32", param, ctx)
        return tuple(dict.fromkeys(int(p) for p in parts))


@click.command("alltoall")
@option_with_default(
    "--bytes sizes",
    Sizes(),
    "8-4MiB",
    "Payload of each ordered pair: 8,64,1KiB or 8-4MiB (powers of two).",
)
@option_with_default(
    "--ppn", Counts(), "max", "Ranks a node that take part: max, all (1, 2, 4 …) or 1,2,32."
)
@bench_callback
def alltoall(common: Common, sizes: tuple[int, ...], ppn: str | tuple[int, ...]) -> int:
    """Measure all-to-all bandwidth by message size, per process and per node.

    Per process: bytes that it sends to other ranks, by the time of the
    slowest rank (median of the repetitions). Per node: that of its ranks
    together; off node: what of it leaves the node.

    \b
    nidmap bench alltoall -n 4
    nidmap bench alltoall -n 4 --bytes 1,1KiB-64KiB --json
    srun -N 64 --ntasks-per-node 32 nidmap bench alltoall --bytes 1MiB --ppn all -o a2a.csv
    """
    with Session(common, "alltoall", {"sizes": list(sizes), "ppn": ppn}) as session:
        here = rank_place(session.comm)
        for wanted in _ranks_of_rounds(session.comm, here.most, ppn):
            joins = here.local < wanted
            part = session.part(joins)
            ranks, off_node = _count_pairs(session.comm, here, wanted)
            for size in sizes:
                if session.over():
                    break
                session.measure(
                    trials.trial(part, bytes=size) if joins else None,
                    comm=part,
                    bytes=size,
                    ppn=wanted,
                    ranks=ranks,
                    nodes=here.nodes,
                    off_node=off_node,
                    inner=trials.calls(size),
                )
            part.Free()
    _show_session(session)
    return session.exit_code


def _ranks_of_rounds(comm: Comm, most: int, ppn: str | tuple[int, ...]) -> list[int]:
    """Return how many ranks a node take part in each round; the same on all ranks."""
    if isinstance(ppn, str):
        return [most] if ppn == "max" else doubling_counts(most)
    with raise_together(comm):
        if max(ppn) > most:
            raise UsageError(f"--ppn {max(ppn)}: no node has more than {most} ranks")
    return list(ppn)


def _count_pairs(comm: Comm, here: RankPlace, wanted: int) -> tuple[int, int]:
    """Return the ranks that take part, and the most ordered pairs between a node and the others."""
    mine = min(here.ranks, wanted)
    ranks = comm.allreduce(int(here.local < wanted))
    return ranks, comm.allreduce(mine * (ranks - mine), MPI.MAX)


def bandwidths(case: Mapping[str, Any], seconds: float) -> dict[str, float]:
    """Return bytes a second of one case.

    Parameters
    ----------
    case : mapping
        ``bytes`` of a pair, ``ranks``, ``ppn``, and ``off_node``: pairs between a node and others.
    seconds : float
        Of the slowest rank.

    Returns
    -------
    dict
        ``process``: what a process sends to all others; ``node``: that of the
        fullest node's processes together; ``off_node``: what leaves it.

    Examples
    --------
    >>> bandwidths({"bytes": 1000, "ranks": 4, "ppn": 2, "off_node": 4}, 2.0)
    {'process': 1500.0, 'node': 3000.0, 'off_node': 2000.0}
    """
    process = case["bytes"] * (case["ranks"] - 1) / seconds
    return {
        "process": process,
        "node": process * min(case["ppn"], case["ranks"]),
        "off_node": case["bytes"] * case.get("off_node", 0) / seconds,
    }


def _show_session(session: Session) -> None:
    document, rows = session.document(), []
    for case, result in zip(document["cases"], session.finished, strict=True):
        case["bandwidth"] = rate = bandwidths(case, result.median())
        times = [time_text(result.best()), time_text(result.median())]
        what = [exact_size(case["bytes"]), case["ppn"], case["ranks"]]
        rows.append([*what, *times, *map(rate_text, rate.values())])
    head = ["bytes", "ppn", "ranks", "best", "median", "process", "node", "off node"]
    session.common.show(document, align_columns([head, *rows]))
