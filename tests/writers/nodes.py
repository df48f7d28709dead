# SPDX-License-Identifier: Apache-2.0
"""What the writers of Cray node lists share: what a machine must have and must not lose."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.machine import Machine
from nidmap.placement.names import parse_cnames
from nidmap.placement.support.array_types import Ints32, Strs

_WORD = re.compile("[a-z][a-z_-]*", re.A)


def kind_of(machine: Machine) -> str:
    """Return what a machine is, for a message."""
    return f"a {machine.topology.kind} ({machine.topology.fabric or 'synthetic'})"


def print_columns(form: str, columns: Iterable[Iterable[object]], *header: str) -> str:
    """Return the text of a table: its header, and a line in `form` for each row of the columns."""
    return "\n".join((*header, *(form % row for row in zip(*columns, strict=True)), ""))


def parts(machine: Machine, name: str) -> Ints32:
    """Return the places of all nodes by their cnames.

    Parameters
    ----------
    machine : Machine
    name : str
        Format, for the message.

    Returns
    -------
    int32 (n, 5)
        Column, row, cage, slot, node.

    Raises
    ------
    UsageError
        Where a node has no Cray cname.
    """
    found = parse_cnames(machine.cname)
    wrong = np.flatnonzero(found[:, 0] < 0)
    if wrong.size:
        node, given = machine.names[wrong[0]], machine.cname[wrong[0]]
        what = f"is called {printable(str(given))}" if given else "has no cname"
        raise UsageError(f"{name} lists Cray nodes, but {node} {what}")
    return found


def words(column: Strs, name: str) -> list[str]:
    """Return a column of single words, ``-`` for ''.

    Raises
    ------
    UsageError
        Where one is not a word that a dump can hold.
    """
    for word in np.unique(column).tolist():
        if word and not _WORD.fullmatch(word):
            raise UsageError(f"{name} cannot say that a node is '{printable(word, 40)}'")
    return [word or "-" for word in column.tolist()]


def refuse_states(machine: Machine, name: str) -> None:
    """Raise UsageError where nodes are down or promised, which `name` has no word for."""
    down = np.flatnonzero((machine.state != "up") & (machine.state != ""))
    if down.size:
        first = f"{machine.names[down[0]]} is {printable(str(machine.state[down[0]]), 40)}"
        what = f"{name} cannot say which nodes are up ({len(down)} are not: {first})"
        raise UsageError(what, "xtprocadmin and xtdb2proc can")
    refuse_planned(machine, name)


def refuse_planned(machine: Machine, name: str) -> None:
    """Raise UsageError where nodes are promised to another job: no Cray dump says so."""
    if machine.planned.any():
        first = machine.names[int(np.argmax(machine.planned))]
        raise UsageError(f"{name} cannot say that {first} is planned for another job")


def refuse_roles(machine: Machine, name: str) -> None:
    """Raise UsageError where there are service nodes, which `name` has no word for."""
    service = np.flatnonzero(machine.role != "compute")
    if service.size:
        first = machine.names[service[0]]
        what = f"{name} cannot say which nodes are service nodes ({first} is one)"
        raise UsageError(what, "torus-coordinates and xtprocadmin can")


def places(machine: Machine, name: str, kinds: tuple[str, ...]) -> tuple[Ints32, Ints32]:
    """Return the places of all nodes by their cnames, and what Cray's tools print as x, y, z.

    Parameters
    ----------
    machine : Machine
    name : str
        Format, for the message.
    kinds : tuple of str
        Fabrics that the format is of: ``aries`` ((group, chassis, blade)), ``gemini``.

    Returns
    -------
    parts : int32 (n, 5)
    xyz : int32 (n, 3)

    Raises
    ------
    UsageError
        Where the machine is of another kind, or a node has no Cray cname.
    """
    found = parts(machine, name)
    shape = machine.topology
    if shape.fabric not in kinds or shape.router_levels != 3:
        what = f"{name} is for {' and '.join(kinds)} machines"
        raise UsageError(f"{what}; this is {kind_of(machine)}")
    return found, machine.coords[:, :3]
