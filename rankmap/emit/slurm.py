"""One host a line, in rank order: for SLURM_HOSTFILE (``slurm``), for Open MPI (``seq``).

The file names a node for every rank and says nothing of the place inside it,
so what is read back has each node's ranks in ascending places. srun takes it
with its arbitrary distribution.

Open MPI takes the same text by ``--map-by seq:OVERSUBSCRIBE:file=F``. Unlike a
rankfile it leaves the place inside the node, and binding, to mpirun. Without
OVERSUBSCRIBE, Open MPI 5.0.11 starts nothing, and exits with 0, on nodes with
more ranks than cores. It wants the nodes in its allocation or host file besides.
"""

from __future__ import annotations

import re

from placement.nodelist import NodeList
from rankmap.emit.hosts import nodes_of
from rankmap.emit.text import BrokenOrderError, without_comments
from rankmap.placement import Placement

#: What a list of plain names does not have.
_FOLDED = re.compile(r"[\[*:=]")


def write(order: Placement) -> str:
    """Return one host a line: line r is the node of rank r."""
    hosts = list(map(order.names.tolist().__getitem__, order.node_of_rank.tolist()))
    return "\n".join(hosts) + "\n"


def read(text: str, placement: Placement, source: str) -> Placement:
    """Return the order that a host file holds.

    Entries may be split by newline, comma or space, be folded
    (``nid[00045,00012]``) and repeat (``nid00045*3``), as srun reads them.

    Raises
    ------
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    bare = without_comments(text)
    hosts = bare.replace(",", " ").split()
    if _FOLDED.search(bare):  # plain lists, the usual ones, do without the slow parser
        hosts = list(NodeList.parse(bare, source))
        if len(hosts) > placement.ranks:
            fault = f"{len(hosts)} ranks for {placement.ranks} slots"
            raise BrokenOrderError(source, _line_of(bare, placement.ranks, source), fault)
    node = nodes_of(
        hosts, [1] * len(hosts), lambda at: _line_of(bare, at, source), placement, source
    )
    return placement.with_ranks_on(node)


def _line_of(bare: str, index: int, source: str) -> int:
    """Return the line on which the entry at `index` stands; the last where there is none."""
    seen = 0
    lines = bare.split("\n")
    for number, line in enumerate(lines, start=1):
        words = line.replace(",", " ").split()
        seen += NodeList.length_of(line, source) if _FOLDED.search(line) else len(words)
        if seen > index:
            return number
    return len(lines) - (len(lines) > 1 and not lines[-1])
