"""What a text says of the nodes that are free: a dump with states, a list of jobs, or nothing.

The same text that names nodes in a list (``squeue``, ``scontrol show node``)
also says in what state they are; who asks for free nodes must not be given
those that are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.records import Dump

__all__ = ["Availability", "availability"]


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

    names: NDArray[np.str_]
    state: NDArray[np.str_]
    free: NDArray[np.bool_]
    jobs: bool
    name: str

    def free_in(self, machine: Machine) -> NDArray[np.bool_]:
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
        if not np.isin(self.names, machine.names).any():
            hint = f"it names nodes like {self.names[0]}, the other like {machine.names[0]}"
            raise ParseError(self.name, 0, f"shares no node with {machine.name}", hint)
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
    from placement.readers import read_text, recognise

    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        recognise(plain, source)
    except ParseError:
        return None
    dump = read_text(plain, source)
    return _of_jobs(dump) if dump.lists_jobs else _of_nodes(dump)


def _of_jobs(dump: Dump) -> Availability:
    nodes = dump.nodes
    names = np.empty(0, dtype="U1") if nodes is None or nodes.name is None else nodes.name
    busy = np.full(len(names), "allocated")
    return Availability(names, busy, np.zeros(len(names), dtype=bool), True, dump.source)


def _of_nodes(dump: Dump) -> Availability:
    from placement.assemble import assemble

    machine = assemble([dump])
    state = np.where(machine.compute, machine.state, machine.role)
    state = np.where(machine.compute & machine.planned, "planned", state)
    return Availability(machine.names, state, machine.free, False, machine.name)
