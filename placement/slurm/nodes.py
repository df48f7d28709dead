# SPDX-License-Identifier: Apache-2.0
"""Slurm's nodes, and which of them are idle or reserved."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.errors import LaunchError, NidmapError, ParseError, UsageError, printable
from nidmap.placement.node_table import Table
from nidmap.placement.nodelist import NodeList
from nidmap.placement.readers import sinfo
from nidmap.placement.records import FREE_STATES, Dump
from nidmap.placement.slurm.command import ask_slurm, slurm_deadline
from nidmap.placement.support.array_types import Ints, Mask, Strs
from nidmap.placement.support.child import Deadline
from nidmap.placement.switch_tree import slurm_order

#: States in which a node of our own reservation can be used.
_OURS = ("idle", "reserved", "maint")

#: Why a pending job waits that is about to have the nodes it names; held ones and the like may
#: wait for weeks.
_WAITING = ("None", "Resources", "Priority")

_RECORD = re.compile(r"ReservationName=(?P<name>.*?) StartTime=(?P<start>\S+) (?P<rest>.*)")
_FIELD = re.compile(r"(?:^|\s)(Nodes|Flags|State|PartitionName)=(\S*)")


@dataclass(frozen=True, slots=True, eq=False)
class SlurmNodes:
    """Slurm's nodes as available to a job with certain options, in Slurm's order."""

    # names, state: (n,), state in full, without signs: ``idle``, ``allocated``, ``drained`` …;
    # ``reserved`` also where a reservation that was not asked for holds the node, ``inactive``
    # where its partition is not up
    names: Strs
    state: Strs
    planned: Mask  # (n,), True where backfill has promised the node to another job
    weight: Ints | None  # (n,)
    # features, partitions: (n,), comma-separated
    features: Strs
    partitions: Strs
    # Where a job goes that names none: that of the reservation asked for, else the default one; ''
    # where there is none, or a partition was asked for
    default_partition: str = ""
    # The one partition that these nodes are chosen in; None where unknown
    partition: str | None = None
    notes: tuple[str, ...] = ()  # remarks for the user

    def __len__(self) -> int:
        return len(self.names)

    @property
    def free(self) -> Mask:
        """Mask of the nodes that a job could have at once."""
        return np.asarray(np.isin(self.state, FREE_STATES) & ~self.planned)

    def where(self, mask: Mask) -> SlurmNodes:
        """Return the nodes selected by a mask."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        kept: dict[str, Any] = {k: v[mask] for k, v in values if isinstance(v, np.ndarray)}
        return replace(self, **kept)

    def inside(self, partition: str) -> SlurmNodes:
        """Return the nodes of one partition."""
        member = [partition in names.split(",") for names in self.partitions.tolist()]
        return replace(self.where(np.array(member, dtype=bool)), partition=partition)


def free_nodes(
    partition: str | None = None, constraint: str | None = None, reservation: str | None = None
) -> SlurmNodes:
    """Ask Slurm for its nodes and their states.

    `partition`: only nodes of this partition (or several, comma-separated); None: of all that the
    user may see. `constraint`: only nodes with these features (`nidmap.placement.slurm.nodes`).
    `reservation`: only nodes of this reservation, which then count as idle; nodes of other active
    reservations never do.
    """
    deadline = slurm_deadline()
    nodes = _ask_sinfo(partition, deadline)
    if constraint is not None:
        nodes = nodes.where(with_features(constraint, nodes.features))
    try:
        return _reserve_nodes(nodes, reservations(deadline), reservation)
    except LaunchError as error:
        if reservation is not None:
            raise
        return replace(nodes, notes=(f"reservations are ignored: {error.message}",))


def _ask_sinfo(partition: str | None, deadline: Deadline) -> SlurmNodes:
    if partition is not None and (partition.split() != [partition] or not partition.isprintable()):
        raise UsageError(f"--partition {partition!r} is not a name")
    narrowed = [] if partition is None else [f"--partition={partition}"]
    # Not -N: that takes sinfo quadratic time, and the reader expands folded rows.
    answer = ask_slurm(["sinfo", *narrowed, "-e", "-o", sinfo.QUERY], deadline=deadline)
    text = _one_cluster(answer.output)
    if partition is not None:
        _refuse_unknown_partition(text, partition, deadline)
    try:
        dump = sinfo.read(text, "sinfo")
    except ParseError as error:
        raise LaunchError(f"sinfo printed unreadable output: {error}") from None
    if dump.nodes is None or dump.nodes.name is None:
        hint = "does Slurm hide them (PrivateData), or is it another cluster?"
        raise LaunchError("sinfo lists no nodes", hint)
    return _make_table(dump, partition)


def _one_cluster(text: str) -> str:
    """Drop the line ``CLUSTER: x`` that SLURM_CLUSTERS causes; refuse several clusters."""
    if not text.startswith("CLUSTER:"):
        return text
    _, _, rest = text.partition("\n")
    if "\nCLUSTER:" in text:
        hint = "set SLURM_CLUSTERS to the one that is meant"
        raise LaunchError("sinfo printed several clusters", hint)
    return rest


def _refuse_unknown_partition(text: str, partition: str, deadline: Deadline) -> None:
    """Raise if the partition does not exist; sinfo prints nothing then, with exit code 0."""
    if not text.startswith("NODELIST|"):
        return  # not sinfo's: the reader says so
    rows = [line.split("|") for line in text.splitlines()[1:] if line.count("|") > 1]
    seen = {row[1].strip().rstrip("*") for row in rows}
    missing = [name for name in partition.split(",") if name not in seen]
    if not missing:
        return
    known = ask_slurm(["sinfo", "-h", "-a", "-o", "%R"], deadline=deadline).output.split()
    unknown = [name for name in missing if name not in known]
    if unknown:
        raise ParseError("--partition", 0, *unknown_partition(unknown[0], set(known)))


def unknown_partition(name: str, known: Iterable[str]) -> tuple[str, str]:
    """Return the error for a partition that Slurm does not have, with a hint."""
    names = printable(", ".join(sorted(known)), 200)
    hint = f"choose from {names}" if names else "it has none"
    return f"Slurm has no partition {printable(name)!r}", hint


def _make_table(dump: Dump, partition: str | None) -> SlurmNodes:
    table = Table.of(dump)
    order = slurm_order(table["name"])
    partitions = dump.parameters.get("partitions", [""] * len(order))
    default = dump.parameters.get("default_partition", "")
    return SlurmNodes(
        names=table["name"][order],
        state=table["state"][order],
        planned=table["planned"][order],
        weight=table["weight"][order] if "weight" in table.columns else None,
        features=table["features"][order],
        partitions=np.asarray(partitions)[order],
        default_partition=str(default) if partition is None else "",
    )


def promised_nodes() -> dict[str, NodeList]:
    """Return the nodes that any user's pending jobs name (``sbatch -w``), by job id.

    Of jobs that wait for nodes or their turn alone; {} where Slurm does not say.
    """
    try:
        answer = ask_slurm(["squeue", "-h", "-t", "PD", "-o", "%i|%n|%r"])
        rows = [line.split("|") for line in answer.output.splitlines() if line.count("|") == 2]
        return {job: NodeList.parse(text) for job, text, why in rows if text and why in _WAITING}
    except (LaunchError, NidmapError):
        return {}


class Reservation(NamedTuple):
    """One reservation."""

    name: str
    nodes: NodeList  # empty where it reserves no nodes (licences, say)
    active: bool  # True where it has begun
    start: str  # when it begins or began, as Slurm prints it, in UTC
    maintenance: bool  # True where its nodes show as ``maint``
    partition: str = ""  # '' where it has none


def reservations(deadline: Deadline | None = None) -> tuple[Reservation, ...]:
    """Return the reservations that Slurm lets this user see."""
    answer = ask_slurm(["scontrol", "-o", "show", "reservation"], deadline=deadline)
    lines = [line for line in answer.output.splitlines() if line.strip()]
    if not lines or lines[0].startswith("No reservations"):
        return ()
    return tuple(_parse_record(line) for line in lines)


def _parse_record(line: str) -> Reservation:
    r"""Parse one record of ``scontrol -o show reservation``."""
    match = _RECORD.match(line)
    if not match:
        what = f"scontrol show reservation printed {line!r}"
        raise LaunchError(what, "is it Slurm's own scontrol?")
    fields = dict(_FIELD.findall(match["rest"]))
    listed = fields.get("Nodes", "")
    try:
        nodes = NodeList.parse(listed) if listed not in ("", "(null)") else NodeList()
    except NidmapError as error:
        raise LaunchError(f"scontrol show reservation printed a bad node list: {error}") from None
    return Reservation(
        name=match["name"],
        nodes=nodes,
        active=fields.get("State") == "ACTIVE",
        start=match["start"],
        maintenance="MAINT" in fields.get("Flags", "").split(","),
        partition=fields.get("PartitionName", "").removeprefix("(null)"),
    )


def _reserve_nodes(
    nodes: SlurmNodes, held: tuple[Reservation, ...], wanted: str | None
) -> SlurmNodes:
    """Mark nodes of the requested reservation as idle, and those of others as not."""
    state = nodes.state.astype(f"U{max(8, nodes.state.dtype.itemsize // 4)}")
    others = [r for r in held if r.active and r.name != wanted]
    taken = np.isin(nodes.names, [name for r in others for name in r.nodes])
    state[taken & np.isin(state, FREE_STATES)] = "reserved"
    if wanted is None:
        return replace(nodes, state=state)
    ours = next((r for r in held if r.name == wanted), None)
    if ours is None:
        names = printable(", ".join(r.name for r in held), 200)
        what = f"Slurm has no reservation {wanted!r}"
        hint = f"choose from {names}" if held else "it has none"
        raise ParseError("--reservation", 0, what, hint)
    inside = np.isin(nodes.names, list(ours.nodes))
    usable = _OURS if ours.maintenance else _OURS[:2]
    state[inside & ~taken & np.isin(state, usable)] = "idle"
    notes = nodes.notes
    if not ours.active:
        notes = (*notes, f"reservation {wanted} is not active: it starts {ours.start}Z")
    partition = nodes.default_partition and (ours.partition or nodes.default_partition)
    nodes = replace(nodes, state=state, notes=notes, default_partition=partition)
    return nodes.where(inside)


_OPERATOR = re.compile(r"([&|,])")
_ODD = re.compile(r"[\[\]()*!\s]")


def with_features(expression: str, features: Strs) -> Mask:
    """Return which nodes have the features that an expression asks for.

    `features` (n,): each node's features, comma-separated. Returns (n,).
    """
    names, operators = _OPERATOR.split(expression)[::2], ["|", *_OPERATOR.findall(expression)]
    if _ODD.search(expression) or not all(names):
        what = f"--constraint {expression!r} is not features joined by & and |"
        raise UsageError(
            what, "operators are evaluated from left to right, as in Slurm: a100|h100&gpu"
        )
    words, at = np.unique(features, return_inverse=True)
    sets = [frozenset(str(word).split(",")) - {""} for word in words]
    value = np.zeros(len(sets), dtype=np.bool_)
    for operator, name in zip(operators, names, strict=True):
        has = np.array([name in some for some in sets], dtype=np.bool_)
        if not has.any():
            known = ", ".join(sorted(frozenset().union(*sets)))
            there = f"choose from {printable(known, 200)}" if known else "no node has features"
            what = f"{expression!r} asks for {name!r}, which no node has"
            raise ParseError("--constraint", 0, what, there)
        value = value | has if operator == "|" else value & has
    return np.asarray(value[at])
