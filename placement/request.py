"""What a planner is asked, what it may answer besides nodes, and what `plan` answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import PlanError
from placement.nodelist import NodeList
from placement.support.array_types import Ints, Mask

if TYPE_CHECKING:
    Written = Callable[[str], tuple[str, str]]

__all__ = ["Baseline", "Choice", "Plan", "Request"]

_NO_ROWS: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a plan is compared with.

    Attributes
    ----------
    strategy : str
        The planner that chooses the same nodes; rank r is on slot r.
    words : str
        What that is, for a sentence: ``Slurm's own choice (topology/none)``.
    """

    strategy: str = "slurm-none"
    words: str = "Slurm's own choice (topology/none)"


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A job that wants nodes.

    Attributes
    ----------
    count : int
        Nodes wanted, at least 1.
    free : bool (n,)
        Rows of the machine that may be chosen: what is idle, less what the
        user excluded. Included rows are always among them.
    include : int64 (k,)
        Rows that must be part of the answer.
    per_blade : int
        Nodes to take of each blade (planner ``blades``), 1 to 4.
    weights : int64 (n,) or None
        Slurm's node weights; None where all are equal.
    seed : int
        For planners that draw lots.
    job : Job or None
        What the job sends (`rankmap.predict.job.Job`), for strategies that
        predict its time; None where nothing says.
    deadline : float or None
        Processor seconds that a search may take; None: as long as it usually does.
    progress : callable or None
        Is told how far a search has come, and ends it by returning True.
    baseline : Baseline
        What the plan is compared with.
    segment : int or None
        Nodes of a segment, none of which is split over blocks
        (`placement.planners.segments`); None: no segments.
    notes : tuple of str
        What was decided for the user on the way, one sentence each.
    idle : bool (n,) or None
        Rows that the scheduler may take by itself, where some of them are not `free`
        because others wait for them; None: the free ones.
    """

    count: int
    free: Mask
    include: Ints = field(default_factory=lambda: _NO_ROWS)
    per_blade: int = 4
    weights: Ints | None = None
    seed: int = 0
    job: Any = None
    deadline: float | None = None
    progress: Callable[[Any], bool | None] | None = None
    baseline: Baseline = field(default_factory=Baseline)
    segment: int | None = None
    notes: tuple[str, ...] = ()
    idle: Mask | None = None

    def rows(self) -> Ints:
        """Return the free rows in the machine's order.

        Raises
        ------
        PlanError
            Where fewer rows are free than are wanted.
        """
        rows = np.flatnonzero(self.free)
        if len(rows) < self.count:
            raise PlanError(
                f"{self.count} nodes wanted, {len(rows)} free: {self.count - len(rows)} missing"
            )
        return rows


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What a planner answers that has more to say than which rows.

    Attributes
    ----------
    rows : int64 (count,)
    why : str
        One sentence for a person; '' for the usual one.
    facts : mapping
        Figures that `--json` shows beside the usual ones.
    warnings : tuple of str
        What to beware of, one sentence each.
    order : object
        The order of the ranks that was chosen with the nodes; None for none.
    written : callable or None
        Returns that order as text of the format that the name of a file asks for, and
        what a person should know of that.
    judged : callable or None
        Returns whether other nodes, rank r on slot r, are worth leaving the baseline for, and
        what they win in a sentence; None where the strategy predicts nothing.
    """

    rows: Ints
    why: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    order: object = None
    written: Written | None = None
    judged: Callable[[Ints], tuple[bool, str]] | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Plan(Choice):
    """The nodes chosen, in the order that the planner means, with what the planner answered.

    Attributes
    ----------
    nodes : NodeList
        The nodes of its rows.
    strategy : str
    request : Request
        What was asked.
    """

    nodes: NodeList
    strategy: str
    request: Request
