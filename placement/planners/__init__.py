# SPDX-License-Identifier: Apache-2.0
"""Planners: ``(Machine, Request) -> rows``, one file per strategy.

A planner is a pure function from a machine and a request to the rows of the
machine it chooses, in the order in which the job's slots should be on
them. It is registered by the decorator `planner` and found by name with
`find`: put a module here and it is found. Other distributions add theirs under
the entry point group ``nidmap.planners``. What it is asked is a `Request`, what a strategy
may answer besides rows a `Choice`, and what `nidmap.placement.plan.plan` answers a `Plan`.
Rows, not names: at a hundred thousand nodes a planner that handles strings spends its
time on strings.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.hooks import STRATEGIES, load
from nidmap.placement.machine import Machine, once
from nidmap.placement.nodelist import NodeList
from nidmap.placement.support.array_types import Ints, Mask
from nidmap.placement.support.registry import Registry, modules_in
from nidmap.placement.topologies import links

if TYPE_CHECKING:
    from nidmap.placement.job import JobWords
    from nidmap.placement.placement import Placement

_NO_ROWS: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The baseline against which a plan is compared."""

    strategy: str = "slurm-none"  # the planner that chooses the same nodes; rank r is on slot r
    # What that is, for a sentence: ``Slurm's own choice (topology/none)``
    words: str = "Slurm's own choice (topology/none)"
    # Whether a job of one node gets the first of the lightest nodes, as in Slurm 26.05 and later
    lightest_alone: bool = False


class Moment(NamedTuple):
    """A progress report of a search.

    Attributes
    ----------
    share : float
        Of the judgements, or of the time, that there are, 0 to 1; it never falls.
    text : str
        What is going on.
    best_s : float
        Least predicted time so far; inf before the first.
    best : int64 (n,) or None
        The nodes that have it, as rows of the machine.
    """

    share: float
    text: str
    best_s: float
    best: Ints | None


#: Called with the progress of a search; returning True ends it.
Watch = Callable[[Moment], bool | None]


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A job's request for nodes of a machine, as planners get it.

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
    job : JobWords or None
        What the job sends (a `nidmap.rankmap.predict.job.Job`), for strategies that
        predict its time; None where unknown.
    deadline : float or None
        Processor seconds that a search may take; None: as long as it usually does.
    progress : callable or None
        Is called with each `Moment` of a search, and ends it by returning True.
    baseline : Baseline
        What the plan is compared with.
    segment : int or None
        Nodes of a segment, none of which is split over blocks
        (`nidmap.placement.planners.segments`); None: no segments.
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
    job: JobWords | None = None
    deadline: float | None = None
    progress: Watch | None = None
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


class Outlook(ABC):
    """The predictions that come with a predicting strategy's answer."""

    @property
    @abstractmethod
    def order(self) -> Placement:
        """The rank order that was chosen along with the nodes."""

    @abstractmethod
    def order_text(self, path: str) -> tuple[str, str]:
        """Return the order in the format implied by a file name, and a remark."""

    @abstractmethod
    def judge(self, rows: Ints) -> tuple[bool, str]:
        """Tell whether other nodes, with rank r on slot r, beat the baseline, and by how much."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A planner's answer, if it is more than the rows."""

    rows: Ints  # (count,)
    why: str = ""  # one sentence; '' for the usual one
    # Figures that `--json` shows besides the usual ones
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # warnings, one sentence each
    # The rank order, and the gains of other nodes; None if the strategy predicts nothing
    outlook: Outlook | None = None

    @property
    def order(self) -> Placement | None:
        """The rank order that was chosen along with the nodes; None if there is none."""
        return None if self.outlook is None else self.outlook.order


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Plan(Choice):
    """The chosen nodes, in the planner's order, with the rest of the planner's answer.

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


if TYPE_CHECKING:
    Planner = Callable[[Machine, Request], Ints]
    Predicting = Callable[[Machine, Request], Choice]


#: What the planners ``slurm-…`` simulate; stated in outputs that compare with them.
BASELINE = "Slurm 22.05.8 (slurm-tree-24.11: 24.11.5), select/cons_tres with CR_Core, whole nodes"

#: The planners that simulate topology/tree, of older and of newer Slurms.
TREE_PLANNERS = ("slurm-tree", "slurm-tree-24.11")

#: Modules here that hold several planners, one of another name, or none.
_OTHERWISE = {
    "blades": ("blades", "blades-linked"),
    "plain": (
        *("hilbert", "hilbert-groups", "morton", "morton-groups"),
        *("level-spread", "nid-order", "random", "spread"),
    ),
    "segments": (),
    "slurm_blocks": ("slurm-block",),
    "slurm_job": ("slurm-none",),
    "slurm_switches": ("slurm-dragonfly", *TREE_PLANNERS),
}

#: Where each bundled planner lives, by name: imported only when it is asked for. Every other
#: module here is a planner of its own name, with ``-`` for ``_``.
BUNDLED = dict(
    sorted(
        [
            *modules_in(os.path.dirname(__file__), *_OTHERWISE).items(),
            *((name, module) for module, several in _OTHERWISE.items() for name in several),
        ]
    )
)

#: Strategies that predict a job's time: the front door registers their location.
PREDICTING = STRATEGIES

_planners: Registry[Planner] = Registry(
    "strategy",
    "nidmap.planners",
    __name__,
    BUNDLED,
    PREDICTING,
    "docs/reference/strategies.md",
)


class Needs(NamedTuple):
    """What a strategy requires of a machine, known before it makes a plan."""

    kinds: tuple[str, ...] = ()  # kinds of topology, one of which it must be; empty: any
    switches: str = ""  # kind of Slurm's switches (``tree``, ``block``); '': any
    # True where the links between routers must be listed, or follow from a rule
    links: bool = False

    def lacking(self, machine: Machine) -> str:
        """Name the requirement that the machine does not meet; '' if it meets all."""
        kind = machine.topology.kind
        if self.kinds and kind not in self.kinds:
            return f"a {' or a '.join(self.kinds)}, and {machine.name} is a {kind}"
        known = "tree" if machine.switches is None else machine.switches.kind
        if self.switches and known != self.switches:
            return f"Slurm's topology/{self.switches}, and {machine.name} has topology/{known}"
        if self.links:
            try:
                links(machine)
            except UsageError as error:
                return f"links between routers: {error.message}"
        return ""


_needs: dict[str, Needs] = {}


def planner(
    name: str, kinds: tuple[str, ...] = (), switches: str = "", links: bool = False
) -> Callable[[Planner], Planner]:
    """Register the decorated function as the planner `name`, with its requirements (`Needs`).

    Where the machine lacks that, the function is not called: a UsageError says what is missing.
    """
    needs = _needs[name] = Needs(kinds, switches, links)

    def decorate(choose: Planner) -> Planner:
        @wraps(choose)
        def choose_where_fit(machine: Machine, request: Request) -> Ints:
            if lacking := needs.lacking(machine):
                fitting = ", ".join(fitting_planners(machine, BUNDLED))
                what = f"strategy {name} needs {lacking}"
                raise UsageError(what, f"strategies that fit: {fitting}")
            return choose(machine, request)

        return _planners.register(name)(choose_where_fit)

    return decorate


def fitting_planners(machine: Machine, among: Iterable[str] | None = None) -> list[str]:
    """Return the strategies, all or some, that apply to a machine."""
    return [n for n in (names() if among is None else among) if not _lacking_needs(machine, n)]


def _lacking_needs(machine: Machine, name: str) -> str:
    find(name)  # its module registers its needs
    return _needs.get(name, Needs()).lacking(machine)


def names() -> list[str]:
    """Return the names of all planners, those of other distributions included."""
    return _planners.names()


def find_predicting(name: str) -> Predicting:
    """Return the predicting strategy called `name`; its answer is a `Choice` with figures."""
    strategy: Predicting = load(PREDICTING[name])
    return strategy


def find(name: str) -> Planner:
    """Return the planner called `name`."""
    if name in PREDICTING:
        predicting = find_predicting(name)
        return lambda machine, request: predicting(machine, request).rows
    return _planners.find(name)


def free_rows(request: Request) -> tuple[Ints, Mask]:
    """Return the free rows in the machine's order, and which of them must be taken.

    Raises
    ------
    PlanError
        Where fewer are free than wanted.
    UsageError
        Where more are included than wanted.
    """
    rows = request.rows()
    must = np.isin(rows, request.include) if len(request.include) else np.zeros(len(rows), bool)
    if int(must.sum()) > request.count:
        raise UsageError(f"{int(must.sum())} nodes are included, but only {request.count} wanted")
    return rows, must


def nested_units(machine: Machine, rows: Ints) -> list[Ints]:
    """Return the number of each row's unit, level by level above the node.

    `rows` (k,). Returns (k,): outermost level first. A unit is known by all coordinates down to
    its level (a chassis of one group is not that of another), and numbered from 0 in the order of
    the coordinates, absent ones left out.
    """
    levels = []
    for unit in _units_of_all(machine):
        here = unit[rows]
        present = np.bincount(here, minlength=int(unit.max(initial=-1)) + 1) > 0
        levels.append((np.cumsum(present) - 1)[here])
    return levels


@once
def _units_of_all(machine: Machine) -> list[Ints]:
    """Return `nested_units` of all rows of a machine."""
    levels, unit = [], np.zeros(len(machine), dtype=np.int64)
    for axis, extent in enumerate(machine.topology.extents[:-1]):
        place = unit * (extent + 1) + machine.coords[:, axis] + 1  # -1 is a place not known
        unit = np.unique(place, return_inverse=True)[1].astype(np.int64)
        levels.append(unit)
    return levels


def spans(machine: Machine, rows: Ints) -> dict[str, int]:
    """Return how many groups, chassis, blades … the nodes touch, by level name."""
    counts = [int(unit.max(initial=-1)) + 1 for unit in nested_units(machine, rows)]
    if machine.topology.kind == "torus":
        return {"router": counts[-1]}
    return dict(zip(machine.topology.levels, counts, strict=False))
