# SPDX-License-Identifier: Apache-2.0
"""Which nodes a job may have now, why not the others, and according to whom.

`nidmap plan`, `compare`, `nodes free` and the page all ask here. The answer is the machine in
the states that the source says: `Machine.free` are the nodes that may be had, `Machine.state`
says why the others may not. A source is Slurm, a dump with states (``sinfo``, ``pbsnodes``), a
list of jobs (``squeue``) or a plain list of nodes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from nidmap.placement.dumps.assemble import UNLISTED, assemble
from nidmap.placement.emit import JOB_NODES, OwnNodes
from nidmap.placement.errors import ParseError, PlanError
from nidmap.placement.lookup import find_hosts, nodes_of, rows_of, shared_rows
from nidmap.placement.machine import Machine
from nidmap.placement.names.pasted import read_list
from nidmap.placement.node_request import NodeRequest
from nidmap.placement.nodelist import NodeList
from nidmap.placement.readers import read_text, recognise
from nidmap.placement.readers.node_states import StatedNode, states_dump
from nidmap.placement.records import BOOTING_STATES, FREE_STATES, Dump, LineCounts
from nidmap.placement.slurm import nodes as slurm_nodes
from nidmap.placement.slurm.nodes import SlurmNodes
from nidmap.placement.support.array_types import Ints, Mask, Strs
from nidmap.placement.support.arrays import each_once
from nidmap.placement.support.quantities import counted

#: The word of ``--from`` that asks Slurm.
IDLE = "idle"

#: How the words begin of nodes that are out of order.
_DOWN = (
    "down", "fail", "off", "admindown", "unknown", "noresp", "disabled", "halt", "unavail",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Availability:
    """A machine in its current state, according to one source."""

    machine: Machine  # in the source's states; ``unlisted`` where it does not speak of a node
    rows: Ints  # (k,), the nodes that the source speaks of, a list's in its order
    source: str  # ``slurm``, the name of a file, or the machine's own
    # Whether the source lists the nodes that are meant: not Slurm, nor a list of jobs
    named: bool = False
    # (n,), free nodes that are left to the pending jobs which name them; None for none
    promised: Mask | None = None
    notes: tuple[str, ...] = ()  # remarks for the user
    unknown: int = 0  # nodes of the source that the machine does not have
    slurm: SlurmNodes | None = None  # Slurm's report on its nodes, if it was asked
    # (j,), rows of each of Slurm's partitions, by its name; empty where unknown
    partitions: Mapping[str, Ints] = field(default_factory=dict)
    default_partition: str = ""  # where a job goes that names none; '' where unknown

    def request(self, count: int) -> NodeRequest:
        """Return a request for nodes among the free ones."""
        now = self.machine
        return NodeRequest(count, now.free, promised=self.promised, states=now.state)

    def nodes(self) -> NodeList:
        """Return the nodes that a job may have, in the order of `rows`, unbooted ones last."""
        free = self.machine.free if self.promised is None else self.machine.free & ~self.promised
        rows = self.rows[free[self.rows]]
        boots = np.isin(self.machine.state[rows], BOOTING_STATES)
        return nodes_of(self.machine, rows[np.argsort(boots, kind="stable")])

    def counts(self) -> dict[str, int]:
        """Return how many of the source's nodes are in each state.

        ``planned`` where backfill or a pending job has asked for a free one, ``service`` of
        those that compute nothing.
        """
        machine = self.machine
        planned = machine.planned if self.promised is None else machine.planned | self.promised
        words = np.where(np.isin(machine.state, FREE_STATES) & planned, "planned", machine.state)
        return counts_of(np.where(machine.compute, words, machine.role)[self.rows])


def ask_availability(
    machine: Machine | None, source: str | None, count: int | None = None, **slurm: str | None
) -> Availability:
    """Return the availability of nodes according to the options of a command.

    `machine`: None means the nodes are those that the source lists. `count`: nodes wanted:
    Slurm's are then those of one partition, in which such a job would run. `slurm`:
    ``partition``, ``constraint``, ``reservation``.
    """
    if source == IDLE or (source is None and any(slurm.values())):
        nodes = slurm_nodes.free_nodes(**slurm)
        if count is not None:
            nodes = _one_partition(nodes, slurm.get("partition"), count)
        return _less_promised(slurm_availability(machine, nodes), slurm_nodes.promised_nodes())
    if source is None:
        assert machine is not None  # neither was given: Slurm is meant
        return Availability(machine, np.arange(len(machine)), machine.name)
    text, origin = read_list(source, "--from")
    job_here = isinstance(source, OwnNodes) or source in map(os.environ.get, JOB_NODES.values())
    return read_availability(machine, text, origin, job_here)


# --- by Slurm ---------------------------------------------------------------------------


def slurm_availability(machine: Machine | None, nodes: SlurmNodes) -> Availability:
    """Return a machine with the states of Slurm's nodes.

    `machine`: None means Slurm's nodes themselves.
    """
    if machine is None:
        stated = zip(nodes.names.tolist(), nodes.state.tolist(), nodes.planned, strict=True)
        machine = assemble([states_dump("slurm", LineCounts(0), [StatedNode(*n) for n in stated])])
    answer = _in_states(machine, nodes.names, nodes.state, nodes.planned, "slurm")
    answer = replace(answer, slurm=nodes, notes=(*nodes.notes, *answer.notes))
    return _with_partitions(answer, nodes.names, nodes.partitions, nodes.default_partition)


def _less_promised(answer: Availability, requests: Mapping[str, NodeList]) -> Availability:
    """Reserve the free nodes that pending jobs name; return the answer and a note."""
    promised, note = promised_rows(answer.machine, answer.machine.free, requests)
    return replace(answer, promised=promised, notes=(*answer.notes, note) if note else answer.notes)


def _one_partition(nodes: SlurmNodes, partition: str | None, count: int) -> SlurmNodes:
    """Return Slurm's nodes in the one partition that such a job would run in.

    Without a partition that is the reservation's, or the default one. Of
    several the first is taken that has enough idle nodes: a job that is
    given several runs in one of them.
    """
    names = [nodes.default_partition] if partition is None else partition.split(",")
    if names == [""]:
        return nodes
    parts = [nodes.inside(name) for name in names]
    most = max(int(part.free.sum()) for part in parts)
    if most < count and len(parts) > 1:
        raise PlanError(
            f"{count} nodes wanted, at most {most} are idle in one of the partitions "
            f"{', '.join(names)}",
            "a job runs in one partition",
        )
    chosen = next((part for part in parts if int(part.free.sum()) >= count), parts[0])
    outside = int(nodes.free.sum()) - int(chosen.free.sum())
    if partition is not None or not outside:
        return chosen
    nodes_outside = counted(outside, "idle node")
    note = f"{nodes_outside} not in {names[0]}, the default partition: override with -p"
    return replace(chosen, notes=(*chosen.notes, note))


def promised_rows(
    machine: Machine, free: Mask, by_job: Mapping[str, NodeList]
) -> tuple[Mask | None, str]:
    """Return the free nodes named by pending jobs, which plans avoid, and a note.

    `free` (n,). `by_job`: the nodes that each pending job names, by its id. Returns (n,): None
    for none.
    """
    masks = {job: _listed(machine, np.array(nodes), job) & free for job, nodes in by_job.items()}
    waiting = [job for job, mask in masks.items() if mask.any()]
    if not waiting:
        return None, ""
    promised: Mask = np.logical_or.reduce(list(masks.values()))
    jobs = ", ".join(waiting[:4]) + (" …" if len(waiting) > 4 else "")
    left_out = counted(int(promised.sum()), "idle node")
    return promised, f"{left_out} left out, requested by pending jobs ({jobs})"


# --- by a text --------------------------------------------------------------------------


def read_availability(
    machine: Machine | None, text: str, source: str, job_here: bool = False
) -> Availability:
    r"""Return a machine in the states that a text lists.

    A node is free where the machine and the text say so. A list of jobs takes its nodes
    from the machine's; of a plain list the machine says which nodes are free.

    `machine`: None means the nodes are those of the text, which must say states. `job_here`: the
    text is the list of the nodes of the job that this runs in, which are free to it.
    """
    dump = _dump_of(text, source)
    if dump is None or dump.lists_jobs:
        if machine is None:
            of_jobs = "lists the nodes with jobs, not which are free"
            what = of_jobs if dump else "does not state which nodes are free"
            raise ParseError(source, 0, what, "sinfo -N -l prints it; or name the machine with -m")
        return _of_jobs(machine, dump) if dump else _of_list(machine, text, source, job_here)
    other = assemble([dump])
    state = np.where(other.compute, other.state, other.role)
    answer = _in_states(machine or other, other.names, state, other.planned, other.name)
    if machine is not None:
        answer = replace(answer, machine=_free_in_both(machine, answer.machine))
    partitions = dump.parameters.get("partitions")
    if partitions is not None and dump.nodes is not None and dump.nodes.name is not None:
        default = str(dump.parameters.get("default_partition", ""))
        answer = _with_partitions(answer, dump.nodes.name, np.asarray(partitions), default)
    return replace(answer, named=True)


def _dump_of(text: str, source: str) -> Dump | None:
    """Return the contents of a text in a known format; None for a plain node list."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        recognise(plain, source)
    except ParseError:
        return None
    return read_text(plain, source)


def _of_jobs(machine: Machine, jobs: Dump) -> Availability:
    """Return a machine in which jobs occupy some of the free nodes."""
    names = None if jobs.nodes is None else jobs.nodes.name
    named = np.array([], dtype=np.str_) if names is None else names
    with_jobs = _listed(machine, named, jobs.source)
    notes: tuple[str, ...] = ()
    if len(named) and not with_jobs.any():
        what = f"none of the {counted(len(named), 'node')} with jobs is in {machine.name}"
        notes = (f"{what}: they are called like {named[0]}, its own like {machine.names[0]}",)
    state = np.where(machine.free & with_jobs, "allocated", machine.state)
    machine = replace(machine, state=state)
    return Availability(machine, np.arange(len(machine)), jobs.source, notes=notes)


def _listed(machine: Machine, names: Strs, source: str) -> Mask:
    """Return the mask of the nodes that are among some names."""
    mask = np.zeros(len(machine), dtype=bool)
    rows = find_hosts(machine.names, names, source)
    mask[rows[rows >= 0]] = True
    return mask


def _of_list(machine: Machine, text: str, source: str, job_here: bool) -> Availability:
    """Return a machine of which only listed nodes are available, if it says they are free."""
    rows = each_once(rows_of(machine, text, source=source, repeats=True))
    state, planned = machine.state, machine.planned
    if job_here:
        state, planned = np.full(len(machine), "idle"), np.zeros(len(machine), dtype=bool)
    listed = np.zeros(len(machine), dtype=bool)
    listed[rows] = True
    machine = replace(machine, state=np.where(listed, state, UNLISTED), planned=planned)
    busy = rows[~machine.free[rows]]
    notes: tuple[str, ...] = ()
    if len(busy):
        nodes, first = counted(len(busy), "node"), machine.names[busy.min()]
        notes = (f"{nodes} of --from not free, left out; the first is {first}",)
    return Availability(machine, rows, source, named=True, notes=notes)


def _free_in_both(machine: Machine, other: Machine) -> Machine:
    """Return the second machine with nodes that are not free in the first marked so too."""
    withheld = other.free & ~machine.free
    state = np.where(withheld, machine.state, other.state)
    return replace(other, state=state, planned=other.planned | (withheld & machine.planned))


# --- by any source ----------------------------------------------------------------------


def _in_states(
    machine: Machine, names: Strs, state: Strs, planned: Mask, source: str
) -> Availability:
    """Return a machine with its nodes in the states that a source lists."""
    at = shared_rows(machine, names, source)
    rows = at[at >= 0]
    states = np.full(len(machine), UNLISTED, np.result_type(state, np.dtype(f"U{len(UNLISTED)}")))
    waits = np.zeros(len(machine), dtype=bool)
    states[rows], waits[rows] = state[at >= 0], planned[at >= 0]
    unknown = names[at < 0]
    current = replace(machine, state=states, planned=waits)
    notes: tuple[str, ...] = ()
    if len(unknown):
        nodes = counted(len(unknown), "node")
        notes = (f"{nodes} of {source} not in {machine.name}, the first is {unknown[0]}",)
    return Availability(current, np.sort(rows), source, notes=notes, unknown=len(unknown))


def _with_partitions(
    answer: Availability, names: Strs, partitions: Strs, default: str
) -> Availability:
    """Add Slurm's partitions to an answer; `partitions` are per node, comma-separated."""
    at = find_hosts(answer.machine.names, names, answer.source)
    words, which = np.unique(partitions[at >= 0], return_inverse=True)
    listed = [text.split(",") for text in words.tolist()]
    rows = at[at >= 0]
    rows_of_partition = {
        name: np.sort(rows[np.isin(which, [k for k, of in enumerate(listed) if name in of])])
        for name in sorted({name for of in listed for name in of if name})
    }
    usual = default if default in rows_of_partition else ""
    return replace(answer, partitions=rows_of_partition, default_partition=usual)


def is_down(word: str) -> bool:
    """Tell whether a state means that a node is out of order."""
    return word.startswith(_DOWN)


def counts_of(words: Strs) -> dict[str, int]:
    """Count the occurrences of each word in a column, in sorted order."""
    distinct, counts = np.unique(words, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))
