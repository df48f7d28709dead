"""The command ``nidmap bench contention``."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import click

from placement.commands.common import machine_option, say
from placement.commands.tables import aligned
from placement.errors import NidmapError, UsageError
from placement.quantities import size_text, time_text
from workloads.contention.problem import KINDS, PRINTED_N, WARN, Length, Sizes, length, sizes
from workloads.contention.sets import PAPER, NodeSet, leaves, node_sets
from workloads.options import Bytes, Common, measured
from workloads.session import Session
from workloads.sort.numbers import Number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi4py import MPI

    from workloads.contention.trial import Buffers, Contention
    from workloads.isx.interleave import Case
    from workloads.session import Result

__all__ = ["contention"]

#: The lengths of Tables 4.1 to 4.4.
_PAPER_LENGTHS = "512,512N,800N,810N,1024N"


def _lengths(ctx: click.Context, param: click.Parameter, value: str) -> tuple[Length, ...]:
    text = _PAPER_LENGTHS if value == "paper" else value
    return tuple(length(part.strip()) for part in text.split(","))


def _kinds(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    names = KINDS if value == "all" else tuple(value.split(","))
    for name in names:
        if name not in KINDS:
            raise click.BadParameter(f"{name!r}; there are {', '.join(KINDS)} and all")
    return names


@click.command("contention")
@click.option("--n", type=Number(), default=str(PRINTED_N), help="Vectors in all; p^2 divides it.")
@click.option(
    "--m",
    "lengths",
    default="512",
    show_default=True,
    callback=_lengths,
    help="Numbers in a vector: 512 (constant global memory), 512N (constant local), or paper.",
)
@click.option(
    "--kind",
    "kinds",
    default=",".join(KINDS[:3]),
    callback=_kinds,
    help="alltoall-int (a count a process), alltoallv-int, alltoallv-double (the paper's), "
    "alltoall-double, alltoall-int-blocks, or all.",
)
@click.option(
    "--nodes",
    "counts",
    type=Number(),
    help="Numbers of nodes; default: those of 1,3,9,18,36 that the job has.",
)
@click.option("--ppn", type=click.IntRange(min=1), help="Ranks a node; default: all it has.")
@click.option(
    "--memory", type=Bytes(whole=True), help="Memory of a node; default: what it has free."
)
@click.option("--predict", is_flag=True, help="Print sizes and memory only (Tables 3.1 to 4.3).")
@machine_option
@measured
def contention(
    common: Common,
    n: tuple[int, ...],
    lengths: tuple[Length, ...],
    kinds: tuple[str, ...],
    counts: tuple[int, ...] | None,
    ppn: int | None,
    memory: int | None,
    predict: bool,
    specs: tuple[str, ...],
) -> int:
    """Measure all-to-alls of large blocks inside one leaf module and across two.

    With -m the leaves are known: for every number of nodes that fits into
    one leaf, the same number across two is measured in turn with it. Sizes
    above a node's memory are refused, and a warning is given from 75 % on:
    MPI's own buffers grow with the ranks, and the paper's runs failed there.

    \b
    nidmap bench contention -n 4 --n 746496 --m 8
    srun -N 36 --ntasks-per-node 8 nidmap bench contention -m tara --m paper
    nidmap bench contention --predict --m paper --memory 24GiB
    """
    if len(n) != 1:
        raise UsageError("--n takes one number")
    if predict:
        return _predict(common, n[0], lengths, counts or PAPER, ppn or 8, memory)
    given = {"n": n[0], "m": [str(one) for one in lengths], "kinds": list(kinds)}
    more = {"nodes": counts, "ppn": ppn, "memory": memory, "machine": list(specs)}
    with Session(common, "contention", {**given, **more}) as session:
        bench = _Bench(session, n[0], ppn, memory)
        bench.measure(_sets(session.comm, counts, specs), lengths, kinds)
    _show(session, bench)
    return session.exit_code


def _sets(
    comm: MPI.Intracomm, counts: tuple[int, ...] | None, specs: tuple[str, ...]
) -> list[NodeSet]:
    """Return the node sets, worked out on rank 0. Collective."""
    from workloads.world import processor, together

    names = list(dict.fromkeys(comm.allgather(processor(comm))))
    found: list[NodeSet] = []
    with together(comm):
        if comm.Get_rank() == 0:
            leaf = _leaves(names, specs)
            wanted = counts or tuple(c for c in PAPER if c <= len(names))
            if max(wanted) > len(names):
                raise UsageError(f"{max(wanted)} nodes were asked for, the job has {len(names)}")
            found = node_sets(leaf, wanted)
    return list(comm.bcast(found, root=0))


def _leaves(names: list[str], specs: tuple[str, ...]) -> list[int] | None:
    import os

    if not specs and not os.environ.get("NIDMAP_MACHINE"):
        return None
    from placement.commands.common import machine_from

    return leaves(machine_from(specs), names)


@dataclass(slots=True)
class _Measured:
    """One case: sizes, the set it ran on, part of the memory, times (None: refused)."""

    sizes: Sizes
    where: str
    length: str
    used: float
    result: Result | None


class _Bench:
    """All cases of a run."""

    def __init__(self, session: Session, n: int, ppn: int | None, memory: int | None) -> None:
        from workloads.places import place

        self.session, self.n, self.memory = session, n, memory
        self.here = place(session.comm)
        least = min(session.comm.allgather(self.here.ranks))
        if ppn is not None and ppn > least:
            raise UsageError(f"--ppn {ppn}: a node has {least} ranks only")
        self.ppn = ppn or least
        self.cases: list[_Measured] = []

    def measure(
        self, sets: Sequence[NodeSet], lengths: Sequence[Length], kinds: Sequence[str]
    ) -> None:
        """Measure every length and kind on sets of equal size side by side."""
        for count in dict.fromkeys(len(one.nodes) for one in sets):
            equal = [one for one in sets if len(one.nodes) == count]
            parts = [self._part(one) for one in equal]
            for kind in kinds:
                # the ints do not depend on m
                for each in lengths if kind.endswith("double") else lengths[:1]:
                    if not self.session.over():
                        self._side_by_side(equal, parts, each, kind)
            for part in parts:
                part.Free()
        if self.cases and all(case.used > 1 for case in self.cases):
            raise NidmapError("no case fits the memory of a node", "smaller --m or --n")

    def _member(self, one: NodeSet) -> bool:
        return self.here.node in one.nodes and self.here.local < self.ppn

    def _part(self, one: NodeSet) -> MPI.Intracomm:
        """Return the communicator of the ranks on a set of nodes (the others get the rest)."""
        comm = self.session.comm
        part = comm.Split(int(not self._member(one)), comm.Get_rank())
        return cast("MPI.Intracomm", part)

    def _side_by_side(
        self, sets: Sequence[NodeSet], parts: Sequence[MPI.Intracomm], each: Length, kind: str
    ) -> None:
        from workloads.isx.interleave import interleave

        nodes = len(sets[0].nodes)
        size = sizes(self.n, each.at(nodes), self.ppn * nodes, nodes, kind)
        used = self._used(size)
        mine = [_Measured(size, one.name, str(each), used, None) for one in sets]
        self.cases += mine
        if used > 1:
            self._say(size, used, "refused")
            return
        if used > WARN:
            self._say(size, used, "warned: MPI's own buffers grow with the ranks (Table 4.4)")
        buffers = self._buffers(size, sets)
        cases = [
            self._case(one, part, size, each, buffers)
            for one, part in zip(sets, parts, strict=True)
        ]
        for one, result in zip(mine, interleave(self.session, cases), strict=True):
            one.result = result or None

    def _used(self, size: Sizes) -> float:
        """Return the part of the memory of the fullest node that a case needs. Collective."""
        from workloads.memory import available

        room: int = min(self.session.comm.allgather(available()))
        return size.node_need / max(min(self.memory or room, room), 1)

    def _say(self, size: Sizes, used: float, what: str) -> None:
        if self.session.root:
            say(
                f"nidmap: {size.kind} with m = {size.m} on {size.nodes} nodes takes "
                f"{size_text(size.node_need, 1024)} a node, {100 * used:.0f} % of its memory: "
                f"{what}"
            )

    def _buffers(self, size: Sizes, sets: Sequence[NodeSet]) -> Buffers | None:
        """Make the two arrays that the cases side by side share. Collective."""
        from workloads.contention.trial import Buffers
        from workloads.world import together

        made = None
        with together(self.session.comm):
            if any(self._member(one) for one in sets):
                made = Buffers(size.local_bytes)
        return made

    def _case(
        self, one: NodeSet, part: MPI.Intracomm, size: Sizes, each: Length, buffers: Buffers | None
    ) -> Case:
        from workloads.contention.trial import trial
        from workloads.isx.interleave import Case

        made: Contention | None = None
        if self._member(one):
            made = trial(part, n=size.n, m=size.m, kind=size.kind, buffers=buffers)
        labels: dict[str, Any] = {
            "kind": size.kind,
            "n": size.n,
            "m": size.m,
            "design": str(each),
            "nodes": size.nodes,
            "ranks": size.ranks,
            "leaves": one.name,
        }
        return Case(labels, made.run if made else None, _verify(made, self.session.comm), part)


def _verify(made: Contention | None, comm: MPI.Intracomm) -> Any:
    """Return the check of a case: what its ranks find is an error on all ranks."""
    from workloads.world import together

    def verify() -> None:
        with together(comm):
            if made is not None and not made.right():
                raise made.wrong()

    return verify


def _predict(
    common: Common,
    n: int,
    lengths: Sequence[Length],
    counts: Sequence[int],
    ppn: int,
    memory: int | None,
) -> int:
    """Print sizes and memory of all cases, as the paper's tables have them."""
    from dataclasses import asdict

    from workloads.memory import available

    room = memory or available()
    cases, rows = [], []
    for each in lengths:
        for nodes in counts:
            size = sizes(n, each.at(nodes), ppn * nodes, nodes)
            used = size.node_need / room
            verdict = "refused" if used > 1 else "warned" if used > WARN else "fits"
            need = {"global": size.global_bytes, "local": size.local_bytes}
            need |= {"block": size.block_bytes, "node": size.node_need}
            cases.append({**asdict(size), "design": str(each), "bytes": need, "verdict": verdict})
            rows.append(
                [
                    str(each),
                    str(nodes),
                    str(size.ranks),
                    str(size.m),
                    size_text(size.global_bytes, 1024),
                    str(size.local),
                    size_text(size.local_bytes, 1024),
                    str(size.block),
                    size_text(size.block_bytes, 1024),
                    size_text(size.node_need, 1024),
                    f"{100 * used:.0f} % {verdict}",
                ]
            )
    head = ["m", "N", "p", "numbers", "global", "l_n", "local", "l_n/p", "block", "a node", "of it"]
    document = {"schema": "nidmap.bench.contention-sizes/1", "memory": room, "cases": cases}
    common.show(document, aligned([head, *rows]))
    return 0


def _show(session: Session, bench: _Bench) -> None:
    document = session.document()
    document["refused"] = [
        {"kind": c.sizes.kind, "m": c.sizes.m, "nodes": c.sizes.nodes, "used": c.used}
        for c in bench.cases
        if c.used > 1
    ]
    head = [
        "call",
        "m",
        "N",
        "p",
        "nodes in",
        "local",
        "block",
        "memory",
        "best",
        "median",
        "worst",
    ]
    rows = [_row(case) for case in bench.cases]
    session.common.show(document, aligned([head, *rows]) + _ratios(bench.cases))


def _row(case: _Measured) -> list[str]:
    size = case.sizes
    if case.result is None:
        times = ["refused" if case.used > 1 else "not run", "", ""]
    else:
        total = case.result.summary()["total"]
        times = [time_text(total[k]) for k in ("best", "median", "worst")]
    return [
        size.kind,
        case.length if size.kind.endswith("double") else "-",
        str(size.nodes),
        str(size.ranks),
        case.where,
        size_text(size.local_bytes, 1024),
        size_text(size.block_bytes, 1024),
        f"{100 * case.used:.0f} %",
        *times,
    ]


def _ratios(cases: Sequence[_Measured]) -> str:
    """Return one line for each pair of equal N: two leaves against one."""
    lines = []
    for one, two in pairwise(cases):
        if one.sizes == two.sizes and one.length == two.length and one.result and two.result:
            ratio = two.result.median() / one.result.median()
            lines.append(
                f"{one.sizes.kind}, m = {one.length}, {one.sizes.nodes} nodes: {two.where} take "
                f"{ratio:.2f} times as long as {one.where}\n"
            )
    return "\n" + "".join(lines) if lines else ""
