"""What a text says of the nodes that are free: a dump with states, a list of jobs, or nothing.

The same text that names nodes in a list (``squeue``, ``scontrol show node``)
also says in what state they are; who asks for free nodes must not be given
those that are taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from placement.dumps.assemble import assemble
from placement.errors import ParseError
from placement.lookup import shared_rows
from placement.machine import Machine
from placement.nodelist import NodeList
from placement.readers import read_text, recognise
from placement.support.array_types import Mask, Strs
from placement.support.quantities import counted

__all__ = ["Availability", "availability", "counts_of", "is_down", "promised_rows", "states_of"]

#: How the words begin of nodes that are out of order.
_DOWN = (
    "down", "fail", "off", "admindown", "unknown", "noresp", "disabled", "halt", "unavail",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Availability:
    """The nodes that a text names, and which of them are free.

    Attributes
    ----------
    names, state : str (n,)
        State as `Machine.state`; ``planned`` where backfill has promised the
        node, ``service`` where it computes nothing.
    free : bool (n,)
    jobs : bool
        True where the text lists jobs: of other nodes it says nothing.
    name : str
        What the text is called.
    """

    names: Strs
    state: Strs
    free: Mask
    jobs: bool
    name: str

    def free_in(self, machine: Machine) -> Mask:
        """Return the mask of a machine's nodes that are free by the machine and by the text.

        Parameters
        ----------
        machine : Machine

        Returns
        -------
        bool (n,)

        Raises
        ------
        ParseError
            Where the text names no node of the machine; a list of jobs may.
        """
        if self.jobs:
            return np.asarray(machine.free & ~np.isin(machine.names, self.names))
        shared_rows(machine, self.names, self.name)
        return np.asarray(machine.free & np.isin(machine.names, self.names[self.free]))


def availability(text: str, source: str) -> Availability | None:
    r"""Return what a text says of the states of nodes.

    Parameters
    ----------
    text : str
    source : str
        File name, for errors.

    Returns
    -------
    Availability or None
        None for a plain list of nodes.

    Raises
    ------
    ParseError
        Where it is of a format that says states and cannot be read.

    Examples
    --------
    >>> found = availability("NODELIST STATE\nn1 idle\nn2 drng\n", "-")
    >>> found.names[found.free].tolist()
    ['n1']
    >>> availability("n[1-4]", "-") is None
    True
    """
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        recognise(plain, source)
    except ParseError:
        return None
    dump = read_text(plain, source)
    if dump.lists_jobs:
        listed = None if dump.nodes is None else dump.nodes.name
        names = np.empty(0, dtype="U1") if listed is None else listed
        taken = np.full(len(names), "allocated")
        return Availability(names, taken, np.zeros(len(names), dtype=bool), True, dump.source)
    machine = assemble([dump])
    return Availability(machine.names, states_of(machine), machine.free, False, machine.name)


def promised_rows(
    machine: Machine, free: Mask, by_job: Mapping[str, NodeList]
) -> tuple[Mask | None, str]:
    """Return the free nodes that pending jobs name, which plans leave to these, and a note.

    Parameters
    ----------
    machine : Machine
    free : bool (n,)
    by_job : mapping
        The nodes that each pending job names, by its id.

    Returns
    -------
    bool (n,) or None
        None for none.
    note : str

    Examples
    --------
    >>> from placement.nodelist import NodeList
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("torus:4")
    >>> promised_rows(m, m.free, {"7": NodeList(["nid00002"])})[1]
    '1 idle node left out, requested by pending jobs (7)'
    """
    masks = {job: np.isin(machine.names, list(nodes)) & free for job, nodes in by_job.items()}
    waiting = [job for job, mask in masks.items() if mask.any()]
    if not waiting:
        return None, ""
    promised: Mask = np.logical_or.reduce(list(masks.values()))
    jobs = ", ".join(waiting[:4]) + (" …" if len(waiting) > 4 else "")
    left_out = counted(int(promised.sum()), "idle node")
    return promised, f"{left_out} left out, requested by pending jobs ({jobs})"


def is_down(word: str) -> bool:
    """Return whether a state's word says that a node is out of order.

    Examples
    --------
    >>> [is_down(word) for word in ("down*", "drained", "allocated", "unavail")]
    [True, False, False, True]
    """
    return word.startswith(_DOWN)


def states_of(machine: Machine) -> Strs:
    """Return the state of each node: ``planned`` where promised, ``service`` where it is none."""
    planned = np.where(machine.planned, "planned", machine.state)
    return np.where(machine.compute, planned, machine.role)


def counts_of(words: Strs) -> dict[str, int]:
    """Return how often each word stands in a column, by the words in order.

    Examples
    --------
    >>> counts_of(np.array(["up", "down", "up"]))
    {'down': 1, 'up': 2}
    """
    distinct, counts = np.unique(words, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))
