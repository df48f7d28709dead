# SPDX-License-Identifier: Apache-2.0
"""A job's request for nodes: how many, which, and under what conditions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nidmap.placement.planners import Baseline
    from nidmap.placement.support.array_types import Ints, Mask, Strs


@dataclass(frozen=True, slots=True, eq=False)
class NodeRequest:
    """A request for some of a machine's n nodes, from a command, the page or Python.

    Attributes
    ----------
    count : int
        Nodes wanted.
    candidates : bool (n,) or None
        Rows that may be chosen; None takes the machine's free compute nodes.
    include, exclude : iterable of int
        Rows that must be, and must not be, part of the answer.
    per_blade : int
        Nodes to take of each blade, for the planner ``blades``.
    weights : int64 (n,) or None
        Slurm's node weights.
    seed : int
        For planners that draw lots.
    baseline : Baseline or str
        What the plan is compared with, or a planner's name; '': what the
        machine's scheduler does by itself (`nidmap.placement.scheduler.baseline.baseline_of`).
    segment : int or None
        Nodes of a segment, none of which is split over blocks
        (`nidmap.placement.planners.segments`), for any strategy; 0, with a ``training:``
        pattern: those of a replica (tp, ep and pp), where a block holds it.
    promised : bool (n,) or None
        Rows among the candidates that others wait for: the plan leaves them out, the
        scheduler may take them.
    kind : str
        Of the kinds of nodes that the machine has (`nidmap.placement.scheduler.kinds`), the one to
        take; ``any`` mixes them. '': the included nodes', else the commonest with enough free.
    states : str (n,) or None
        Why nodes cannot be chosen, as `Machine.state`; None: as the machine says.
    """

    count: int
    candidates: Mask | None = None
    include: Iterable[int] = ()
    exclude: Iterable[int] = ()
    per_blade: int = 4
    weights: Ints | None = None
    seed: int = 0
    baseline: Baseline | str = ""
    segment: int | None = None
    promised: Mask | None = None
    kind: str = ""
    states: Strs | None = None
