"""From a resource manager's rows of nodes to one record a node, in the worst of its states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from placement.errors import ParseError, printable
from placement.readers.slurm_states import node_state, worst
from placement.readers.slurm_switches import MAX_NODES
from placement.records import Dump, Fault, LineCounts, NodeRecords

__all__ = ["FIGURES", "StatedNode", "slurm_state", "states_dump"]

#: What may be stated of a node besides its state, and the type of its column.
FIGURES = {
    **dict.fromkeys(("sockets", "cores", "gpus"), np.int32),
    **dict.fromkeys(("memory_mb", "weight"), np.int64),
    "features": np.str_,
}


class StatedNode(NamedTuple):
    """One node as it was printed once.

    Attributes
    ----------
    name : str
    state : str
        In the words of `placement.readers.slurm_states`.
    planned : bool
        Promised to a job that waits.
    line : int
        0 where lines mean nothing, as in JSON.
    figures : mapping
        By the names of `FIGURES`, as far as they are printed.
    up : bool
        In a partition that is up: an idle node that is in none is ``inactive``.
    """

    name: str
    state: str
    planned: bool = False
    line: int = 0
    figures: Mapping[str, int | str] = {}
    up: bool = True


def slurm_state(words: str, source: str, line: int = 0) -> tuple[str, bool]:
    """Return Slurm's state in one word and whether backfill planned the node.

    Raises
    ------
    ParseError
        Where it is no state.

    Examples
    --------
    >>> slurm_state("IDLE+DRAIN", "-"), slurm_state("MIXED+PLANNED", "-")
    (('drained', False), ('mixed', True))
    """
    found = node_state(words)
    if found is None:
        raise ParseError(source, line, f"{printable(words)!r} is not the state of a node")
    return found


def states_dump(
    name: str,
    source: str,
    counts: LineCounts,
    printed: Iterable[StatedNode],
    *,
    jobs: bool = False,
    empty: str = "no node in it",
) -> Dump:
    """Return the dump of a format that says which state nodes are in.

    Parameters
    ----------
    name : str
        Of the format.
    source : str
    counts : LineCounts
    printed : iterable of StatedNode
        A node may come again, as once a partition: the worst state counts.
    jobs : bool
        True where the format lists jobs: what it does not name may be free.
    empty : str
        What to say where no node is named.

    Raises
    ------
    ParseError
        Where there are more than `MAX_NODES` nodes.
    """
    found: dict[str, StatedNode] = {}
    for node in printed:
        before = found.setdefault(node.name, node)
        if before is not node:
            state = max(before.state, node.state, key=worst)
            planned, up = before.planned or node.planned, before.up or node.up
            found[node.name] = before._replace(state=state, planned=planned, up=up)
        elif len(found) > MAX_NODES:
            raise ParseError(source, node.line, f"more than {MAX_NODES:,} nodes")
    parameters: dict[str, object] = {"jobs": True} if jobs else {}
    if not found:
        fault = Fault(0, "no-nodes", empty, "is this the right cluster?", fatal=not jobs)
        return Dump(name, source, counts, parameters=parameters, faults=(fault,))
    nodes = list(found.values())
    free = ("idle", "planned")
    figures = {
        key: np.array([node.figures.get(key, kind()) for node in nodes], dtype=kind)
        for key, kind in FIGURES.items()
        if any(key in node.figures for node in nodes)
    }
    records = NodeRecords(
        line=np.array([node.line for node in nodes], dtype=np.int32),
        name=np.array(list(found)),
        state=np.array(["inactive" if n.state in free and not n.up else n.state for n in nodes]),
        planned=np.array([node.planned for node in nodes]),
        **figures,
    )
    return Dump(name, source, counts, nodes=records, parameters=parameters)
