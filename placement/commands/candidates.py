"""The nodes that a command may choose from: ``--from``, ``--include``, ``--exclude``, Slurm's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.commands.common import say, warn
from placement.emit import JOB_NODES
from placement.errors import PlanError
from placement.lists.pasted import read_list
from placement.lookup import rows_of, shared_rows
from placement.machine import Machine
from placement.scheduler.kinds import ANY
from placement.support.array_types import Ints, Mask
from placement.support.lazy import lazy
from placement.support.quantities import counted

if TYPE_CHECKING:
    from placement.scheduler import availability as availability_of
    from placement.slurm import nodes as slurm_nodes
    from placement.slurm.nodes import SlurmNodes
else:
    availability_of = lazy("placement.scheduler.availability")
    slurm_nodes = lazy("placement.slurm.nodes")

__all__ = ["Candidates", "candidates"]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What a command's options say of the nodes to choose from.

    Attributes
    ----------
    free : bool (n,) or None
        Nodes that may be chosen; None: the machine's own free ones.
    named : bool (n,) or None
        Nodes that a list of ``--from`` names, busy ones too; None for no list.
    include, exclude : int64 (k,)
        Rows to have, and not to have.
    slurm : SlurmNodes or None
        What Slurm said of its nodes, where it was asked.
    promised : bool (n,) or None
        Free nodes that are left to the pending jobs which name them.
    """

    free: Mask | None
    named: Mask | None
    include: Ints
    exclude: Ints
    slurm: SlurmNodes | None
    promised: Mask | None = None

    def kind(self, wanted: str) -> str:
        """Return the kind of nodes to take (`placement.scheduler.kinds`): any of a list's own."""
        return wanted or (ANY if self.named is not None else "")


def candidates(
    machine: Machine,
    count: int,
    source: str | None,
    include: str | None = None,
    exclude: str | None = None,
    **slurm: str | None,
) -> Candidates:
    """Read what the options name, or ask Slurm what is idle and promised where they want that.

    The nodes of the job that this runs in are free to it, whatever a dump
    says of them.

    Parameters
    ----------
    machine : Machine
    count : int
        Nodes wanted.
    source, include, exclude : str or None
        ``--from``, ``--include``, ``--exclude``.
    **slurm
        ``partition``, ``constraint``, ``reservation``.
    """
    in_slurm = free = named = promised = None
    if source == "idle" or any(slurm.values()):
        in_slurm = _ask_slurm(count, **slurm)
        free = _idle_rows(machine, in_slurm)
        promised, note = availability_of.promised_rows(machine, free, slurm_nodes.promised_nodes())
        if note:
            warn(f"nidmap: {note}; --include takes them")
    elif source is not None:
        free, named = _free_and_named(machine, source)
    return Candidates(
        free,
        named,
        _listed_rows(machine, include, "--include"),
        _listed_rows(machine, exclude, "--exclude"),
        in_slurm,
        promised,
    )


def _free_and_named(machine: Machine, source: str) -> tuple[Mask, Mask | None]:
    """Return which nodes are free by a text of ``--from``, and which it names."""
    text, origin = read_list(source, "--from")
    states = availability_of.availability(text, origin)
    if states is not None:
        named = None if states.jobs else np.isin(machine.names, states.names)
        return states.free_in(machine), named
    named = np.zeros(len(machine), dtype=bool)
    named[rows_of(machine, text, source=origin, repeats=True)] = True
    of_this_job = source in (os.environ.get(variable) for variable in JOB_NODES.values())
    free = named & (machine.compute if of_this_job else machine.free)
    busy = named & ~free
    if busy.any():
        first = machine.names[np.flatnonzero(busy)[0]]
        say(
            f"nidmap: {int(busy.sum())} nodes of --from are not free and are left out, "
            f"the first is {first}"
        )
    return free, named


def _ask_slurm(count: int, partition: str | None = None, **others: str | None) -> SlurmNodes:
    """Ask Slurm for the nodes of the one partition that such a job would run in.

    Without a partition that is the reservation's, or the default one. Of
    several the first is taken that has enough idle nodes: a job that is
    given several runs in one of them.

    Raises
    ------
    PlanError
        None of several partitions has enough idle nodes.
    LaunchError, ParseError, UsageError
        As `placement.slurm.nodes.free_nodes`.
    """
    nodes = slurm_nodes.free_nodes(partition, **others)
    for note in nodes.notes:
        say(f"nidmap: {note}")
    silent = int((nodes.state == "not_responding").sum())
    if silent and int(nodes.free.sum()) < count:
        warn(f"nidmap: {counted(silent, 'idle node')} in Slurm do not respond (idle*)")
    names = [nodes.default_partition] if partition is None else partition.split(",")
    if names == [""]:
        return nodes
    parts = [nodes.inside(name) for name in names]
    chosen = next((part for part in parts if int(part.free.sum()) >= count), None)
    if chosen is None and len(parts) > 1:
        most = max(int(part.free.sum()) for part in parts)
        raise PlanError(
            f"{count} nodes wanted, at most {most} are idle in one of the partitions "
            f"{', '.join(names)}",
            "a job runs in one partition",
        )
    chosen = chosen or parts[0]
    outside = int(nodes.free.sum()) - int(chosen.free.sum())
    if partition is None and outside:
        say(
            f"nidmap: {outside} idle nodes are not in {names[0]}, the default "
            "partition: -p chooses another"
        )
    return chosen


def _idle_rows(machine: Machine, slurm: SlurmNodes) -> Mask:
    """Map Slurm's idle nodes onto the machine's rows; what it does not know is said.

    Parameters
    ----------
    machine : Machine
    slurm : SlurmNodes

    Returns
    -------
    bool (n,)

    Raises
    ------
    ParseError
        The two share no node name.
    """
    at = shared_rows(machine, slurm.names, "slurm")
    known = at >= 0
    if not known.all():
        lost = slurm.names[~known]
        say(
            f"nidmap: {len(lost)} of Slurm's nodes are not in {machine.name}, "
            f"the first is {lost[0]}"
        )
    mask = np.zeros(len(machine), dtype=bool)
    mask[at[known & slurm.free]] = True
    return mask


def _listed_rows(machine: Machine, text: str | None, option: str) -> Ints:
    """Return the rows that a list option names, in its order; none for None.

    Raises
    ------
    ParseError
        A word that names no node of the machine.
    """
    if text is None:
        return np.empty(0, dtype=np.int64)
    content, source = read_list(text, option)
    return rows_of(machine, content, source=source, repeats=True)
