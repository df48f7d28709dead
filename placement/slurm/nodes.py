"""Which nodes Slurm has, which of them are idle, and its topology."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import LaunchError, ParseError, UsageError, printable
from placement.node_order import slurm_order
from placement.nodelist import NodeList
from placement.slurm.command import Deadline, ask, slurm_deadline
from placement.slurm.reservations import reservations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.records import Dump, NodeRecords
    from placement.slurm.reservations import Reservation

__all__ = ["SlurmNodes", "free_nodes", "topology"]

#: States in which a node of our own reservation can be used.
_OURS = ("idle", "reserved", "maint")


@dataclass(frozen=True, slots=True, eq=False)
class SlurmNodes:
    """Slurm's nodes as a job with certain options would find them, in Slurm's order.

    Attributes
    ----------
    names, state : str (n,)
        State in full, without signs: ``idle``, ``allocated``, ``drained`` …;
        ``reserved`` also where a reservation that was not asked for holds
        the node, ``inactive`` where its partition is not up.
    planned : bool (n,)
        True where backfill has promised the node to another job.
    weight : int64 (n,) or None
    features, partitions : str (n,)
        Comma-separated.
    cores, memory_mb : int64 (n,)
        0 where sinfo does not say.
    default_partition : str
        Where a job goes that names none: that of the reservation asked for, else
        the default one; '' where there is none, or a partition was asked for.
    partition : str or None
        The one partition that these nodes are chosen in; None: nothing says.
    notes : tuple of str
        What the user should know of the answer.
    """

    names: NDArray[np.str_]
    state: NDArray[np.str_]
    planned: NDArray[np.bool_]
    weight: NDArray[np.int64] | None
    features: NDArray[np.str_]
    partitions: NDArray[np.str_]
    cores: NDArray[np.int64]
    memory_mb: NDArray[np.int64]
    default_partition: str = ""
    partition: str | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def free(self) -> NDArray[np.bool_]:
        """Mask of the nodes that a job could have at once."""
        return np.asarray((self.state == "idle") & ~self.planned)

    def free_names(self) -> NodeList:
        """Return the names of the free nodes, in Slurm's order."""
        return NodeList(self.names[self.free].tolist())

    def inside(self, partition: str) -> SlurmNodes:
        """Return the nodes of one partition."""
        member = [partition in names.split(",") for names in self.partitions.tolist()]
        return replace(_only(self, np.array(member, dtype=bool)), partition=partition)

    def counts(self) -> dict[str, int]:
        """Return how many nodes are in each state; planned idle ones count as ``planned``."""
        shown = np.where((self.state == "idle") & self.planned, "planned", self.state)
        words, many = np.unique(shown, return_counts=True)
        return dict(zip(words.tolist(), many.tolist(), strict=True))


def free_nodes(
    partition: str | None = None,
    constraint: str | None = None,
    reservation: str | None = None,
) -> SlurmNodes:
    """Ask Slurm which nodes there are and in which state.

    Parameters
    ----------
    partition : str or None
        Only nodes of this partition (or several, comma-separated); None:
        of all that the user may see.
    constraint : str or None
        Only nodes with these features (`placement.slurm.features`).
    reservation : str or None
        Only nodes of this reservation, which then count as idle; nodes of
        other active reservations never do.

    Returns
    -------
    SlurmNodes

    Raises
    ------
    LaunchError
        Slurm is missing, down, slow or prints what is not sinfo's.
    ParseError
        There is no such partition or reservation, or no node has such a feature.
    UsageError
        The constraint is none.
    """
    deadline = slurm_deadline()
    found = _asked(partition, deadline)
    if constraint is not None:
        from placement.slurm.features import with_features

        found = _only(found, with_features(constraint, found.features))
    held, notes = _reservations(reservation, deadline)
    return _reserved(found, held, reservation, notes)


def _asked(partition: str | None, deadline: Deadline) -> SlurmNodes:
    from placement.readers.sinfo import QUERY, read

    # Not -N: that takes sinfo quadratic time, and the reader expands folded rows.
    narrowed = [f"--partition={_plain(partition, '--partition')}"] if partition is not None else []
    answer = ask(["sinfo", *narrowed, "-e", "-o", QUERY], deadline=deadline)
    text = _one_cluster(answer.output)
    if partition is not None:
        _refuse_unknown_partition(text, partition, deadline)
    try:
        dump = read(text, "sinfo")
    except ParseError as error:
        raise LaunchError(f"sinfo's answer cannot be read: {error}") from None
    if dump.nodes is None or dump.nodes.name is None:
        raise LaunchError(
            "sinfo lists no node", "does Slurm hide them (PrivateData), or is it another cluster?"
        )
    return _table(dump, dump.nodes, partition)


def _plain(value: str, option: str) -> str:
    """Return an option's value, refusing what no name of Slurm's can be."""
    if not value or not value.isprintable() or any(c.isspace() for c in value):
        raise UsageError(f"{option} {printable(value)!r} is no name")
    return value


def _one_cluster(text: str) -> str:
    """Drop the line ``CLUSTER: x`` that SLURM_CLUSTERS brings; several clusters are too many."""
    if not text.startswith("CLUSTER:"):
        return text
    _, _, rest = text.partition("\n")
    if "\nCLUSTER:" in text:
        raise LaunchError(
            "sinfo answers for several clusters", "set SLURM_CLUSTERS to the one that is meant"
        )
    return rest


def _refuse_unknown_partition(text: str, partition: str, deadline: Deadline) -> None:
    """Raise where sinfo knows no such partition: it prints nothing then, with exit code 0."""
    if not text.startswith("NODELIST|"):
        return  # not sinfo's: the reader says so
    rows = [line.split("|") for line in text.splitlines()[1:] if line.count("|") > 1]
    seen = {row[1].strip().rstrip("*") for row in rows}
    missing = [name for name in partition.split(",") if name not in seen]
    if not missing:
        return
    known = ask(["sinfo", "-h", "-a", "-o", "%R"], deadline=deadline).output.split()
    unknown = [name for name in missing if name not in known]
    if unknown:
        raise ParseError(
            "--partition",
            0,
            f"Slurm has no partition {printable(unknown[0])!r}",
            f"there are {printable(', '.join(sorted(set(known))), 200)}",
        )


def _table(dump: Dump, rows: NodeRecords, partition: str | None) -> SlurmNodes:
    assert rows.name is not None
    order = slurm_order(rows.name)
    n = len(order)
    empty, zero = np.zeros(n, dtype="U1"), np.zeros(n, dtype=np.int64)
    state = empty if rows.state is None else rows.state[order]
    partitions = dump.parameters.get("partitions")
    default = dump.parameters.get("default_partition", "")
    return SlurmNodes(
        names=rows.name[order],
        state=state,
        planned=np.zeros(n, dtype=bool) if rows.planned is None else rows.planned[order],
        weight=None if rows.weight is None else rows.weight[order],
        features=empty if rows.features is None else rows.features[order],
        partitions=partitions[order] if isinstance(partitions, np.ndarray) else empty,
        cores=zero if rows.cores is None else rows.cores[order].astype(np.int64),
        memory_mb=zero if rows.memory_mb is None else rows.memory_mb[order].astype(np.int64),
        default_partition=str(default) if partition is None else "",
    )


def _reservations(
    wanted: str | None, deadline: Deadline
) -> tuple[tuple[Reservation, ...], tuple[str, ...]]:
    """Return the reservations; where none was asked for, their absence is only a remark."""
    try:
        return reservations(deadline), ()
    except LaunchError as error:
        if wanted is not None:
            raise
        return (), (f"reservations are not considered: {error.message}",)


def _reserved(
    found: SlurmNodes,
    held: tuple[Reservation, ...],
    wanted: str | None,
    notes: tuple[str, ...],
) -> SlurmNodes:
    """Let the nodes of the reservation that was asked for be idle, of others not."""
    state = found.state.astype(f"U{max(8, found.state.dtype.itemsize // 4)}")
    others = [r for r in held if r.active and r.name != wanted]
    taken = np.isin(found.names, [name for r in others for name in r.nodes])
    state[taken & (state == "idle")] = "reserved"
    if wanted is None:
        return _with_state(found, state, notes)
    ours = next((r for r in held if r.name == wanted), None)
    if ours is None:
        names = ", ".join(r.name for r in held)
        raise ParseError(
            "--reservation",
            0,
            f"Slurm has no reservation {printable(wanted)!r}",
            f"there are {printable(names, 200)}" if names else "there is none",
        )
    if not ours.active:
        notes = (*notes, f"reservation {printable(wanted)} is not active: it starts {ours.start}Z")
    inside = np.isin(found.names, list(ours.nodes))
    usable = _OURS if ours.maintenance else _OURS[:2]
    state[inside & ~taken & np.isin(state, usable)] = "idle"
    if found.default_partition and ours.partition:
        found = replace(found, default_partition=ours.partition)
    return _only(_with_state(found, state, notes), inside)


def _with_state(found: SlurmNodes, state: NDArray[np.str_], notes: tuple[str, ...]) -> SlurmNodes:
    return replace(found, state=state, notes=(*found.notes, *notes))


def _only(found: SlurmNodes, mask: NDArray[np.bool_]) -> SlurmNodes:
    """Return the rows of a mask."""
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    kept: dict[str, Any] = {
        name: value[mask] for name, value in values.items() if isinstance(value, np.ndarray)
    }
    return replace(found, **kept)


def topology() -> Dump | None:
    """Return Slurm's topology as ``scontrol show topology`` prints it, None where it has none.

    Raises
    ------
    LaunchError
        Slurm is missing, down, slow, or prints what is no topology.
    """
    from placement.readers.scontrol_topology import read

    answer = ask(["scontrol", "show", "topology"], fails=True)
    if not answer.output.strip():
        if answer.code and "topology" not in answer.messages.lower():
            raise LaunchError(f"scontrol show topology failed: {answer.complaint}")
        return None
    try:
        return read(answer.output, "scontrol show topology")
    except ParseError as error:
        raise LaunchError(f"scontrol's answer cannot be read: {error}") from None
