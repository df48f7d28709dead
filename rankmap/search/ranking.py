"""What a search has judged: candidates, each a placement with what it costs, and the best."""

from __future__ import annotations

from dataclasses import dataclass, field

from placement.support.array_types import Ints
from rankmap.placement import Placement

#: The order that every launcher makes where nobody says another.
ROW_MAJOR = "row-major"


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A placement that was judged.

    Attributes
    ----------
    nodes : str
        What chose the nodes: a planner with its options, or a family between packed and spread.
    order : str
        What ordered the ranks on them.
    placement : Placement
    cost : float
        Seconds, or J.
    """

    nodes: str
    order: str
    placement: Placement
    cost: float

    @property
    def name(self) -> str:
        """What chose the nodes and what ordered the ranks, for a person."""
        return self.nodes if self.order == ROW_MAJOR else f"{self.nodes}, {self.order}"


@dataclass(slots=True)
class Ranking:
    """What a search has judged.

    Attributes
    ----------
    default : Candidate or None
        The baseline's own nodes with rank r on slot r; None where it takes none.
    candidates : list of Candidate
        All node choices with all orders, before any step.
    best : Candidate
        The best of all, and of the default, which stands first where it is as good.
    judged : int
        Placements that were judged, steps among them.
    choices : dict of str to int64 (n,)
        The nodes of every choice, judged or not, by what chose them.
    every : bool
        Whether these were all orders that there are.
    alike : bool
        Whether no order can make a difference, as every rank does the same.
    """

    default: Candidate | None
    candidates: list[Candidate]
    best: Candidate
    judged: int = 0
    choices: dict[str, Ints] = field(default_factory=dict)
    every: bool = False
    alike: bool = False

    @property
    def plain(self) -> Candidate:
        """The best of the node choices with rank r on slot r, where that may be an answer."""
        usual = [candidate for candidate in self.candidates if candidate.order == ROW_MAJOR]
        return min(usual or self.candidates, key=lambda candidate: candidate.cost)
