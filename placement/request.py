"""What a planner is asked, and what `plan` answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import PlanError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.nodelist import NodeList

__all__ = ["Plan", "Request"]

_NO_ROWS: NDArray[np.int64] = np.empty(0, dtype=np.int64)


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
    contiguous : bool
        Slurm's ``--contiguous``: one run of consecutive nodes.
    weights : int64 (n,) or None
        Slurm's node weights; None where all are equal.
    seed : int
        For planners that draw lots.
    """

    count: int
    free: NDArray[np.bool_]
    include: NDArray[np.int64] = field(default_factory=lambda: _NO_ROWS)
    per_blade: int = 4
    contiguous: bool = False
    weights: NDArray[np.int64] | None = None
    seed: int = 0

    def rows(self) -> NDArray[np.int64]:
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
class Plan:
    """The nodes chosen, in the order that the planner means.

    Attributes
    ----------
    nodes : NodeList
    rows : int64 (count,)
        The same nodes as rows of the machine.
    strategy : str
    why : str
        One sentence for a person.
    facts : dict
        Figures that `--json` shows: groups, chassis, blades touched …
    warnings : tuple of str
    """

    nodes: NodeList
    rows: NDArray[np.int64]
    strategy: str
    why: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
