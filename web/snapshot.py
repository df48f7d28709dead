# SPDX-License-Identifier: Apache-2.0
"""Live state: the states of nodes and the jobs on them at one moment.

They come from Slurm's commands, from a file, or from the machine's own dump.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nidmap.placement.accounting import jobs_in, running_jobs
from nidmap.placement.errors import NidmapError, ParseError, UsageError
from nidmap.placement.lookup import find_hosts
from nidmap.placement.machine import Machine
from nidmap.placement.nodelist import NodeList
from nidmap.placement.records import FREE_STATES
from nidmap.placement.scheduler.availability import (
    counts_of,
    is_down,
    promised_rows,
    read_availability,
    slurm_availability,
)
from nidmap.placement.scheduler.baseline import live_baseline
from nidmap.placement.slurm.nodes import free_nodes, promised_nodes, unknown_partition
from nidmap.placement.support.reading import read_bytes
from nidmap.web import replies
from nidmap.web.columns import code_column, folded_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from nidmap.placement.planners import Baseline
    from nidmap.placement.records import JobRecord
    from nidmap.placement.scheduler.availability import Availability
    from nidmap.placement.support.array_types import Ints, Mask, Strs

SCHEMA = "nidmap.state/1"

#: The source that asks Slurm.
SLURM = "slurm"

#: Kinds of nodes for viewers, in the order of their codes.
_KINDS = ("free", "busy", "held", "down", "service")
_FREE, _BUSY, _HELD, DOWN, _SERVICE = range(5)

#: Seconds after which Slurm's settings are asked for again.
_SETTINGS = 600

#: Remark on every plan if the nodes' states are unknown.
_ASSUMED = "which nodes are free is not known: all are taken as free (serve with --from)"

#: Longest text of a job that is shown.
_LONGEST = 200


@dataclass(frozen=True, slots=True, eq=False)
class RunningJob:
    """A job that holds nodes of the machine."""

    id: str
    rows: Ints  # (k,)
    name: str = ""
    partition: str = ""
    user: str = ""  # '' unless users are shown
    mine: bool = False  # whether it is of the user whose jobs come first
    record: JobRecord | None = None  # as its source has it, but for the nodes: never shown

    def document(self) -> replies.RunningJob:
        """Return the job in the form of an answer."""
        ppn = self.record.ppn if self.record else 0
        rows = folded_rows(self.rows)
        return replies.RunningJob(
            self.id, rows, len(self.rows), self.name, self.partition, ppn, self.user, self.mine
        )


class Offer(NamedTuple):
    """The nodes that a plan may choose from, for a `NodeRequest`."""

    candidates: Mask  # (n,), nodes that are free
    states: Strs  # (n,), why the others are not
    promised: Mask | None = None  # (n,), free nodes that are left to pending jobs which name them
    notes: tuple[str, ...] = ()
    baseline: Baseline | str = ""  # the scheduler's own choice, as of a `NodeRequest`


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """States and jobs of a machine's n nodes."""

    source: str  # ``slurm``, ``file`` or ``dump``
    state: Strs  # (n,)
    planned: Mask  # (n,)
    jobs: tuple[RunningJob, ...] = ()
    # (k,), rows of each of Slurm's partitions, by its name
    partitions: dict[str, Ints] = field(default_factory=dict)
    default_partition: str = ""  # where a job goes that names none; '' where unknown
    # The nodes that pending jobs name, by the job's id
    promised: dict[str, NodeList] = field(default_factory=dict)
    unknown: int = 0  # nodes of the source that the machine does not have
    notes: tuple[str, ...] = ()
    taken: float | None = None  # unix time of the answer; None where it has no time
    took: float = 0.0  # seconds that a scheduler needed for it
    stale: bool = False  # True where the source has not answered since
    error: str = ""  # why
    baseline: Baseline | str = ""  # of the Slurm that answered; '' where none did
    assumed: bool = False  # whether nothing tells the nodes' states, so that all are taken as free
    version: int = 1  # grows with every change of what is above, but not with `taken` alone

    def now(self, machine: Machine) -> Machine:
        """Return the machine in its present state, whose free nodes may be planned on."""
        state = self.state.astype(np.result_type(self.state, "U9"))
        for job in self.jobs:
            held = job.rows[np.isin(state[job.rows], FREE_STATES)]
            state[held] = "allocated"
        return replace(machine, state=state, planned=self.planned)

    def free(self, machine: Machine) -> Mask:
        """Mask of the compute nodes that a plan may use now."""
        return self.now(machine).free

    def offer(self, machine: Machine, partition: str = "") -> Offer:
        """Return the nodes that a plan may use now in one of Slurm's partitions; '' for all."""
        now = self.now(machine)
        if partition:
            if partition not in self.partitions:
                raise UsageError(*unknown_partition(partition, self.partitions))
            outside = np.ones(len(machine), dtype=bool)
            outside[self.partitions[partition]] = False
            word = f"not in partition {partition}"
            now = replace(now, state=np.where(outside & now.free, word, now.state))
        promised, note = promised_rows(machine, now.free, self.promised)
        notes = (_ASSUMED if self.assumed else "", note)
        return Offer(now.free, now.state, promised, tuple(filter(None, notes)), self.baseline)

    def kinds(self, machine: Machine) -> NDArray[np.int8]:
        """Return each node's state for a viewer, int8 (n,): free, busy, held, down or service."""
        words, at = np.unique(self.state, return_inverse=True)
        codes = np.array([_kind_of(word) for word in words.tolist()], np.int8)[at.reshape(-1)]
        codes[(codes == _FREE) & self.planned] = _HELD
        for job in self.jobs:
            codes[job.rows[codes[job.rows] != DOWN]] = _BUSY
        codes[(machine.role == "service") & (codes != DOWN)] = _SERVICE
        return codes

    @property
    def standing(self) -> dict[str, Any]:
        """When it was taken, and whether the source has answered since."""
        return {"taken": self.taken, "stale": self.stale, "error": self.error}

    def document(self, machine: Machine) -> replies.State:
        """Return the snapshot in the form of an answer."""
        return replies.State(
            schema=SCHEMA,
            version=self.version,
            source=self.source,
            **self.standing,
            state=replies.Codes(**code_column(self.state)),
            kinds=replies.Codes(list(_KINDS), self.kinds(machine).tolist()),
            planned=np.flatnonzero(self.planned).tolist(),
            free=int(self.free(machine).sum()),
            assumed=self.assumed,
            counts=counts_of(self.state[machine.compute]),
            jobs=[job.document() for job in self.jobs],
            partitions=self._partitions(machine),
            unknown=self.unknown,
            notes=list(self.notes),
        )

    def _partitions(self, machine: Machine) -> list[replies.PartitionNodes]:
        """Return Slurm's partitions with their compute nodes and the free ones."""
        free = self.free(machine)
        return [
            replies.PartitionNodes(
                name,
                int(machine.compute[rows].sum()),
                int(free[rows].sum()),
                name == self.default_partition,
            )
            for name, rows in self.partitions.items()
        ]


def _kind_of(word: str) -> int:
    """Return the kind of a state; an unknown one is neither free nor down."""
    plain = word.rstrip("*~#!%$@^+-")
    if word in FREE_STATES:
        return _FREE
    if is_down(word):
        return DOWN
    return _BUSY if plain.startswith(("alloc", "mix", "comp")) else _HELD


def of_dump(machine: Machine, taken: float | None = None) -> Snapshot:
    """Return the states from the machine's own dump or site.

    `taken`: unix time of the dump; None where there is none.
    """
    assumed = taken is None and bool((machine.state == "up").all())
    return Snapshot("dump", machine.state, machine.planned, taken=taken, assumed=assumed)


def _as_stated(bare: Snapshot, source: str, answer: Availability) -> Snapshot:
    """Return a snapshot in the states of an answer, with its partitions."""
    return replace(
        bare,
        source=source,
        assumed=False,
        state=answer.machine.state,
        planned=answer.machine.planned,
        partitions=dict(answer.partitions),
        default_partition=answer.default_partition,
        unknown=answer.unknown,
        notes=answer.notes,
    )


def _with_jobs(
    machine: Machine, bare: Snapshot, jobs: Sequence[JobRecord], users: bool, owner: str
) -> Snapshot:
    """Return a snapshot with these jobs added, with or without users' names."""
    hidden = [] if users else [job.user for job in jobs]
    names = [name for job in jobs for name in job.nodes.unique]
    all_rows = find_hosts(machine.names, np.array(names, dtype=np.str_), "the list of jobs")
    ends = np.cumsum([len(job.nodes.unique) for job in jobs], dtype=np.int64)
    held = []
    for job, part in zip(jobs, np.split(all_rows, ends[:-1]), strict=False):
        rows = np.sort(part)
        name, partition = _mask_names(job.name, hidden)[:_LONGEST], job.partition[:_LONGEST]
        user = job.user[:_LONGEST] if users else ""
        record = replace(job, nodes=NodeList())
        mine = bool(owner) and job.user == owner
        held.append(RunningJob(job.id, rows[rows >= 0], name, partition, user, mine, record))
    return replace(bare, jobs=tuple(job for job in held if len(job.rows)), assumed=False)


def _mask_names(text: str, names: Iterable[str]) -> str:
    """Return a text without the names in it, since job names often contain user names.

    A name of one or two letters is masked where it is a word: it is inside most others.
    """
    folded = text.casefold()
    words = sorted({n for n in names if n and n.casefold() in folded}, key=len, reverse=True)
    if not words:
        return text
    alone = r"(?<![^\W_])", r"(?![^\W_])"
    parts = (re.escape(w) if len(w) > 2 else re.escape(w).join(alone) for w in words)
    return re.sub("|".join(parts), "…", text, flags=re.IGNORECASE)


# --- where it comes from --------------------------------------------------------------


def usual_sources(machine: Machine) -> tuple[str, ...]:
    """Return the default sources: Slurm, if it is here and may know the machine."""
    here = all(shutil.which(command) for command in ("sinfo", "squeue"))
    return (SLURM,) if here and machine.scheduler in ("", "slurm") else ()


def ask_sources(
    machine: Machine, sources: tuple[str, ...], users: bool = False, owner: str = ""
) -> Snapshot:
    """Query all sources and return their combined states.

    `sources`: ``slurm`` or files: a dump with states (``sinfo -N -l``, xtprocadmin …), the output
    of ``squeue --json``, or a list of the free nodes. Empty: the machine's own states. `users`:
    keep users' names. `owner`: whose jobs are told from the others' even so; '' means nobody's.
    """
    snapshot = of_dump(machine)
    for source in sources:
        snapshot = (
            _ask_slurm(machine, users, owner)
            if source == SLURM
            else _read_states(machine, snapshot, source, users, owner)
        )
    return snapshot


def _ask_slurm(machine: Machine, users: bool, owner: str) -> Snapshot:
    begun = time.monotonic()
    nodes, jobs, promised = free_nodes(), running_jobs(), promised_nodes()
    took = time.monotonic() - begun
    snapshot = _as_stated(of_dump(machine), SLURM, slurm_availability(machine, nodes))
    baseline = _baseline_now(machine, int(begun // _SETTINGS))
    snapshot = replace(snapshot, taken=time.time(), took=took, promised=promised, baseline=baseline)
    return _with_jobs(machine, snapshot, jobs, users, owner)


@lru_cache(maxsize=1)
def _baseline_now(machine: Machine, period: int) -> Baseline:
    """Return the own choice of the Slurm here, asked once in each period."""
    del period
    return live_baseline(machine)


def _read_states(
    machine: Machine, snapshot: Snapshot, path: str, users: bool, owner: str
) -> Snapshot:
    """Return a snapshot with the contents of a file added."""
    try:
        taken = os.stat(path).st_mtime
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a file name"
        raise ParseError(path, 0, f"cannot be read: {reason}") from None
    text = read_bytes(path).decode("utf-8", errors="replace")
    snapshot = replace(snapshot, source="file", taken=taken)
    if text.lstrip().startswith("{"):
        try:
            jobs = jobs_in(text)
        except NidmapError as error:
            raise ParseError(path, 0, error.message, error.hint) from None
        if jobs is not None:
            snapshot = _with_jobs(machine, snapshot, jobs, users, owner)
            if jobs and not snapshot.jobs:
                raise ParseError(path, 0, f"no job has nodes of {machine.name}")
            return snapshot
    return _as_stated(snapshot, "file", read_availability(snapshot.now(machine), text, path))
