# SPDX-License-Identifier: Apache-2.0
"""Choosing nodes: from a machine and a request to a `Plan`, with any planner by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.placement import planners
from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.hooks import SERVICES, load
from nidmap.placement.lookup import nodes_of
from nidmap.placement.machine import Machine
from nidmap.placement.network.connected import connected_nodes
from nidmap.placement.network.host_cables import with_fast_cables
from nidmap.placement.node_request import NodeRequest
from nidmap.placement.planners import TREE_PLANNERS, Baseline, Choice, Plan, Request, Watch, spans
from nidmap.placement.planners.segments import in_segments
from nidmap.placement.records import BOOTING_STATES
from nidmap.placement.scheduler.baseline import (
    baseline_of,
    block_waits,
    describe_default,
    inside_one_tree,
)
from nidmap.placement.scheduler.kinds import of_one_kind
from nidmap.placement.support.array_types import Ints, Mask, Strs
from nidmap.placement.support.quantities import counted

if TYPE_CHECKING:
    from nidmap.placement.job import JobWords

#: Planners that choose the top switch themselves, as Slurm does.
_KNOW_TREES = (*TREE_PLANNERS, "slurm-dragonfly")

#: Planners whose names say which nodes they take, however fast their cables are.
_AS_STATED = ("nid-order", "random")

#: Planners that place segments themselves, as Slurm does.
_KNOW_SEGMENTS = ("slurm-block",)


def plan(
    machine: Machine,
    count: int,
    *,
    strategy: str | None = None,
    job: JobWords | None = None,
    deadline: float | None = None,
    progress: Watch | None = None,
    candidates: Mask | None = None,
    include: Iterable[int] = (),
    exclude: Iterable[int] = (),
    per_blade: int = 4,
    weights: Ints | None = None,
    seed: int = 0,
    baseline: Baseline | str = "",
    segment: int | None = None,
    promised: Mask | None = None,
    kind: str = "",
    states: Strs | None = None,
) -> Plan:
    """Choose `count` nodes of `machine`.

    Parameters
    ----------
    machine : Machine
        Where the job is to run; its states say which nodes are free.
    count : int
        Nodes wanted.
    strategy : str or None
        A planner's name (`nidmap.placement.planners.names`); None: ``auto`` where a
        pattern is given, else ``compact``. Where a topology.conf has several
        trees, any of them chooses inside the tree that Slurm would take.
    job : Job or None
        What the job sends (`nidmap.rankmap.predict.job.Job`): strategy ``auto`` goes by
        it, and of the nodes of any other it is said what the job takes on them.
    deadline : float or None
        Processor seconds that ``auto`` may search.
    progress : callable or None
        Is called with each `nidmap.placement.planners.Moment` of a search, and ends it by returning
        True.
    candidates, include, exclude, promised, kind, states
        Which nodes may be chosen: `nidmap.placement.node_request.NodeRequest`.
    per_blade, weights, seed, baseline, segment
        In what way, ibidem.

    Returns
    -------
    Plan

    Raises
    ------
    PlanError
        Too few nodes are free, or free in one tree of a topology.conf, or in
        whole segments, or an included node is not free.
    UsageError
        `count` is not positive, the strategy does not fit the topology, or
        the job's ranks are not those of its pattern.

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("dragonfly:groups=4,chassis=2,blades=4,nodes=4")
    >>> nidmap.plan(m, 8, strategy="blades", per_blade=2).nodes.fold()
    'nid[00000,00032,00064,00096,00001,00033,00065,00097]'
    """
    nodes = NodeRequest(
        count, candidates, include, exclude, per_blade, weights, seed, baseline, segment,
        promised, kind, states,
    )  # fmt: skip
    return choose_nodes(machine, nodes, strategy, job, deadline, progress)


def choose_nodes(
    machine: Machine,
    nodes: NodeRequest,
    strategy: str | None = None,
    job: JobWords | None = None,
    deadline: float | None = None,
    progress: Watch | None = None,
) -> Plan:
    """Choose the requested nodes; see `plan`."""
    name = strategy or usual_strategy(None if job is None else job.pattern)
    predicting, segment = name in planners.PREDICTING, nodes.segment
    if segment is not None and segment < (not predicting):
        raise UsageError(f"segments of {segment} nodes: at least 1 is needed")
    request = request_for(machine, nodes, any_tree=name in _KNOW_TREES)
    request = replace(request, job=job, deadline=deadline, progress=progress)
    if name not in _AS_STATED and not name.startswith("slurm-"):
        request = _on_fast_cables(machine, request)
    if predicting:
        choice = planners.find_predicting(name)(machine, request)
    else:
        choice = _choose_plainly(machine, request, name)
    _verify_choice(machine, request, choice.rows, name)
    if job is not None and not predicting:
        choice = load(SERVICES["cost of nodes"])(machine, request, choice)
    if request.notes:
        choice = replace(choice, warnings=(*choice.warnings, *request.notes))
    return describe(machine, request, choice, name)


def request_for(machine: Machine, nodes: NodeRequest, *, any_tree: bool = False) -> Request:
    """Return the request that is passed to planners.

    `any_tree`: whether the planner chooses the tree of a topology.conf itself.
    """
    count, promised = nodes.count, nodes.promised
    if nodes.states is not None:
        machine = replace(machine, state=nodes.states)
    free, must = _free_rows(machine, nodes)
    pool = free if promised is None else free & ~promised
    alike, note = of_one_kind(machine, pool, count, must, nodes.kind)
    free &= alike
    _refuse_short(machine, free, count)
    rule = nodes.baseline
    if isinstance(rule, str):
        rule = baseline_of(machine, rule)
    request = Request(
        count, free, must, nodes.per_blade, nodes.weights, nodes.seed, baseline=rule,
        segment=nodes.segment, notes=(note,) if note else (),
    )  # fmt: skip
    if promised is not None:
        request = replace(request, free=_without_promised(request, promised), idle=free)
    boots = free & np.isin(machine.state, BOOTING_STATES)
    if boots.any():
        weights = np.ones(len(free), dtype=np.int64) if request.weights is None else request.weights
        request = replace(request, weights=weights + boots * (int(weights.max()) + 1))
    if any_tree:
        return request
    request = inside_one_tree(machine, request)
    return _take_up_first(request, boots) if boots.any() else request


def _on_fast_cables(machine: Machine, request: Request) -> Request:
    """Leave nodes with slow cables to others if enough are free without them."""
    free, note = with_fast_cables(machine, request.free, request.count, request.include)
    if not note:
        return request
    idle = request.free if request.idle is None else request.idle
    return replace(request, free=free, idle=idle, notes=(*request.notes, note))


def _choose_plainly(machine: Machine, request: Request, name: str) -> Choice:
    """Apply a planner without predictions, in segments if the job has segments.

    Among nodes that the links listed join, but for Slurm, which knows no links.
    """
    choose = planners.find(name)
    warnings: tuple[str, ...] = ()
    if machine.links is not None and not name.startswith("slurm-"):
        free, note = connected_nodes(machine, request.free, request.include)
        if note:
            _refuse_short(machine, free, request.count)
            request, warnings = replace(request, free=free), (note,)
    if request.segment is None or name in _KNOW_SEGMENTS:
        return Choice(choose(machine, request), warnings=warnings)
    return Choice(in_segments(machine, request, choose), warnings=warnings)


def usual_strategy(pattern: object) -> str:
    """Return the default strategy: ``auto`` if the job's pattern is known.

    Without a pattern there is nothing to predict, and ``compact`` disturbs
    and is disturbed by the fewest other jobs.
    """
    return "auto" if pattern else "compact"


def _free_rows(machine: Machine, nodes: NodeRequest) -> tuple[Mask, Ints]:
    """Return masks of the rows that may be chosen and of those that must be."""
    count = nodes.count
    if count < 1:
        raise UsageError(f"{count} nodes wanted: at least 1 is needed")
    free = (machine.free if nodes.candidates is None else nodes.candidates).copy()
    must, dropped = (
        np.array(list(dict.fromkeys(map(int, rows))), dtype=np.int64)
        for rows in (nodes.include, nodes.exclude)
    )
    free[dropped] = False
    both = must[np.isin(must, dropped)]
    if len(both):
        raise UsageError(f"{machine.names[both[0]]} is both included and excluded")
    busy = must[~free[must]]
    if len(busy):
        first = busy[0]
        more = f" (and {len(busy) - 1} more)" if len(busy) > 1 else ""
        word = machine.state[first] if machine.compute[first] else f"a {machine.role[first]} node"
        raise PlanError(f"included node {machine.names[first]}{more} is not free: {word}")
    if len(must) > count:
        raise UsageError(f"{len(must)} nodes are included, but only {count} wanted")
    _refuse_short(machine, free, count, len(dropped))
    return free, must


def _take_up_first(request: Request, boots: Mask) -> Request:
    """Return a request that takes nodes in need of booting only after all that are up.

    So does Slurm, whose scheduling weight of a powered-down node is above all others.
    """
    up = request.free & ~boots
    up[request.include] = True
    missing = request.count - int(up.sum())
    if missing <= 0:
        idle = None if request.idle is None else request.idle & (up | ~boots)
        return replace(request, free=up, idle=idle)
    note = f"{counted(missing, 'node')} of the plan must boot first: too few are powered up"
    include = request.include if request.segment else np.flatnonzero(up)
    return replace(request, include=include, notes=(*request.notes, note))


def _without_promised(request: Request, promised: Mask) -> Mask:
    """Return which rows are free and not promised to other jobs, or must be included."""
    free = request.free & ~promised
    free[request.include] = True
    have, lost = int(free.sum()), int((request.free & ~free).sum())
    if have < request.count:
        raise PlanError(
            f"{request.count} nodes wanted, {have} free besides {lost} that pending jobs request",
            "--include takes nodes that pending jobs request",
        )
    return free


def _refuse_short(machine: Machine, free: Mask, count: int, dropped: int = 0) -> None:
    have = int(free.sum())
    if have < count:
        excluded = f", {dropped} excluded" if dropped else ""
        silent = int((machine.state == "not_responding").sum())
        excluded += f", {silent} idle ones that do not respond (idle*)" if silent else ""
        raise PlanError(
            f"{count} nodes wanted, {have} free: {count - have} missing",
            f"{machine.name} has {int(machine.compute.sum())} compute nodes{excluded}",
        )


def _verify_choice(machine: Machine, request: Request, rows: Ints, strategy: str) -> None:
    """Check that a planner, even one from another distribution, keeps its contract."""
    chosen = np.zeros(len(machine), dtype=bool)
    chosen[rows] = True
    broken = ""
    if len(rows) != request.count:
        broken = f"{len(rows)} nodes instead of {request.count}"
    elif chosen.sum() != len(rows):
        broken = "a node twice"
    elif not request.free[rows].all():
        broken = f"{machine.names[rows[~request.free[rows]][0]]}, which is not free"
    elif not chosen[request.include].all():
        broken = "a list without all included nodes"
    if broken:
        raise PlanError(f"strategy {strategy!r} returned {broken}: a bug in that planner")


def describe(machine: Machine, request: Request, choice: Choice, strategy: str) -> Plan:
    """Return a choice as a plan, with the parts that its nodes and the baseline's touch."""
    rows = choice.rows
    segment = choice.facts.get("segment") or request.segment  # 0: chosen by the strategy
    waits = block_waits(machine, replace(request, segment=segment), rows)
    facts = {
        "touches": spans(machine, rows),
        "waits": waits,
        "free": int(request.free.sum()),
        "default": describe_default(machine, request),
        "predicted": dict(choice.facts),
    }
    nodes, where = nodes_of(machine, rows), _describe_touched(facts, len(rows))
    return Plan(
        nodes=nodes,
        rows=rows,
        strategy=strategy,
        why=f"{choice.why}; {where}" if choice.why else where,
        facts=facts,
        warnings=(*choice.warnings, *([waits] if waits else [])),
        outlook=choice.outlook,
        request=request,
    )


def overfull(machine: Machine, rows: Ints, counts: Ints) -> str:
    """Name the nodes that get more ranks than they have cores; '' if there are none.

    `rows`, `counts` (k,): nodes, and the ranks on each.
    """
    cores = machine.cores[rows]
    full = np.flatnonzero((cores > 0) & (counts > cores))
    if not len(full):
        return ""
    first = full[0]
    subject, pronoun = (
        ("1 node gets", "it has") if len(full) == 1 else (f"{len(full)} nodes get", "they have")
    )
    where = f"{machine.names[rows[first]]} {counts[first]} on {cores[first]}"
    return f"{subject} more ranks than {pronoun} cores: {where}"


def _describe_touched(facts: dict[str, Any], count: int) -> str:
    where = _count_words(facts["touches"])
    default = facts["default"]["touches"]
    comparison = f"; {facts['default']['words']}: {_count_words(default)}" if default else ""
    free = "1 was free" if facts["free"] == 1 else f"{facts['free']} were free"
    return f"{counted(count, 'node')} in {where} ({free}){comparison}"


def _count_words(touches: dict[str, int]) -> str:
    return ", ".join(counted(n, level) for level, n in touches.items())
