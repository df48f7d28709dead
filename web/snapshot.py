"""What changes: states of nodes and the jobs on them, as of one moment."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.machine import FREE_STATES
from web.columns import coded, folded_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.slurm import RunningJob, SlurmNodes

__all__ = ["Job", "Snapshot", "masked", "of_dump", "with_jobs", "with_states"]

SCHEMA = "nidmap.state/1"

#: Longest text of a job that is shown.
_LONGEST = 200


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A job that holds nodes of the machine.

    Attributes
    ----------
    id, name, partition : str
    user : str
        '' unless users are shown.
    rows : int64 (k,)
    """

    id: str
    rows: NDArray[np.int64]
    name: str = ""
    partition: str = ""
    user: str = ""

    def document(self) -> dict[str, Any]:
        """Return the job as JSON takes it; the user only where there is one."""
        said = {
            "id": self.id, "rows": folded_rows(self.rows), "count": len(self.rows),
            "name": self.name, "partition": self.partition,
        }  # fmt: skip
        return said | ({"user": self.user} if self.user else {})


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """States and jobs of a machine's n nodes.

    Attributes
    ----------
    source : str
        ``slurm``, ``file`` or ``dump``.
    state : str (n,)
    planned : bool (n,)
    jobs : tuple of Job
    unknown : int
        Nodes of the source that the machine does not have.
    notes : tuple of str
    taken : float or None
        Unix time of the answer; None where it has no time.
    stale : bool
        True where the source has not answered since.
    error : str
        Why.
    version : int
        Grows with every change of what is above, but not with `taken` alone.
    """

    source: str
    state: NDArray[np.str_]
    planned: NDArray[np.bool_]
    jobs: tuple[Job, ...] = ()
    unknown: int = 0
    notes: tuple[str, ...] = ()
    taken: float | None = None
    stale: bool = False
    error: str = ""
    version: int = 1

    def free(self, machine: Machine) -> NDArray[np.bool_]:
        """Mask of the compute nodes that a plan may use now."""
        usable = np.isin(self.state, FREE_STATES) & ~self.planned
        for job in self.jobs:
            usable[job.rows] = False
        return np.asarray(machine.compute & usable)

    @property
    def standing(self) -> dict[str, Any]:
        """When it was taken, and whether the source has answered since."""
        return {"taken": self.taken, "stale": self.stale, "error": self.error}

    def document(self, machine: Machine) -> dict[str, Any]:
        """Return the snapshot as JSON takes it."""
        words, many = np.unique(self.state[machine.compute], return_counts=True)
        return {
            "schema": SCHEMA,
            "version": self.version,
            "source": self.source,
            **self.standing,
            "state": coded(self.state),
            "planned": np.flatnonzero(self.planned).tolist(),
            "free": int(self.free(machine).sum()),
            "counts": dict(zip(words.tolist(), many.tolist(), strict=True)),
            "jobs": [job.document() for job in self.jobs],
            "unknown": self.unknown,
            "notes": list(self.notes),
        }


def of_dump(machine: Machine) -> Snapshot:
    """Return the states that the machine's own dump or site gives.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> of_dump(parse_spec("torus:2x2")).document(parse_spec("torus:2x2"))["counts"]
    {'up': 4}
    """
    return Snapshot("dump", machine.state, machine.planned)


def with_states(machine: Machine, bare: Snapshot, other: SlurmNodes | Machine) -> Snapshot:
    """Return a snapshot with the states of Slurm or of a dump; what it does not list stays."""
    at = _rows_of(machine, other.names)
    known = at >= 0
    state = bare.state.astype(np.result_type(other.state, bare.state))
    planned = bare.planned.copy()
    state[at[known]], planned[at[known]] = other.state[known], other.planned[known]
    return replace(bare, state=state, planned=planned, unknown=int((~known).sum()))


def with_jobs(
    machine: Machine, bare: Snapshot, jobs: Sequence[RunningJob], users: bool
) -> Snapshot:
    """Return a snapshot with these jobs in it, users' names kept or left out."""
    hidden = [] if users else [job.user for job in jobs]
    found = []
    for job in jobs:
        rows = np.sort(_rows_of(machine, job.nodes.unique))
        name, partition = (masked(text, hidden)[:_LONGEST] for text in (job.name, job.partition))
        user = job.user[:_LONGEST] if users else ""
        found.append(Job(job.id, rows[rows >= 0], name, partition, user))
    return replace(bare, jobs=tuple(job for job in found if len(job.rows)))


def masked(text: str, names: Iterable[str]) -> str:
    """Return a text without the names in it: people put their own into their jobs' names.

    Examples
    --------
    >>> masked("Alice-run7", ["alice"]), masked("run7", ["alice"])
    ('…-run7', 'run7')
    """
    folded = text.casefold()
    words = sorted({n for n in names if n and n.casefold() in folded}, key=len, reverse=True)
    if not words:
        return text
    return re.sub("|".join(map(re.escape, words)), "…", text, flags=re.IGNORECASE)


def _rows_of(machine: Machine, names: Iterable[str]) -> NDArray[np.int64]:
    """Return the row of each name, -1 where the machine does not have it."""
    rows = machine._cache.get("web.rows")
    if rows is None:
        rows = dict(zip(machine.names.tolist(), range(len(machine)), strict=True))
        machine._cache["web.rows"] = rows
    return np.array([rows.get(name, -1) for name in names], dtype=np.int64)
