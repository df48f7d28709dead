# SPDX-License-Identifier: Apache-2.0
"""A job's rank order by a strategy's name, for commands, page and Python.

Strategy ``auto`` goes by predicted time where the machine states bandwidths, else by J. What was
optimised, and why that, is in the order's remark and in its ``optimised``.

It is the search of ``nidmap plan`` with no other node to go to: what it finds for these nodes is
found here, whatever their order. Where ranks are so few that all orders can be judged, all are.
Where nodes differ in their ranks, they cannot change places freely: the orders are tried on the
slots as they are, and then ranks, and nodes with as many, are exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.nodelist import NodeList
from nidmap.placement.placement import Origin, Placement
from nidmap.placement.planners import Moment, Request
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.quantities import time_text, times_text
from nidmap.rankmap import progress
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.orders.auto import choose, describe_choice
from nidmap.rankmap.pattern import Pattern, parse_pattern
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.gain import Gain, Gains
from nidmap.rankmap.predict.job import fit_pattern
from nidmap.rankmap.score import plain_number
from nidmap.rankmap.search.budget import LIMITS, Budget
from nidmap.rankmap.search.cost import (
    ROW_MAJOR,
    Candidate,
    Ranking,
    TimeCost,
    effort_of,
    without_time,
)
from nidmap.rankmap.search.node_sets import node_choices
from nidmap.rankmap.search.rank_orders import compile_first, ranks_alike
from nidmap.rankmap.search.search import Space, search

#: The strategy that compares orders, by predicted time or by J.
AUTO = "auto"

#: Edges of a graph whose times are predicted; each prediction of more takes several seconds, and
#: gigabytes.
MOST_TIMED = 1 << 22


def order(
    machine: Machine,
    nodes: str | NodeList | Sequence[str] | Ints | None = None,
    job: Job | None = None,
    *,
    strategy: str = "row-major",
) -> Placement:
    """Order the ranks of a job on its nodes.

    Parameters
    ----------
    machine : Machine
        That the job runs on.
    nodes : str, NodeList, names, int64 rows (n,) or None
        The job's nodes in the order that numbers the slots; None: all free
        compute nodes in NID order (see `nidmap.rankmap.place_ranks.place_ranks`).
    job : Job or None
        Who talks to whom, and how many ranks a node has; None: an all-to-all.
    strategy : str
        An ordering's name (see `nidmap.rankmap.orders.names`); ``auto`` chooses by predicted
        time where the machine states bandwidths, else by J: the order's remark says which.

    Returns
    -------
    Placement

    Raises
    ------
    UsageError
        A pattern whose ranks are not the slots, or a strategy that does not apply to it.
    ParseError
        A node that the machine does not have.

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("torus:4x4x4")
    >>> job = nidmap.Job("fft:4x4", ppn=4)
    >>> nidmap.order(m, "0-3", job, strategy="morton").slot_of_rank.tolist()
    [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]
    """
    job = job or Job()
    return order_by_strategy(place_ranks(machine, nodes, job.ppn), job, strategy)


def order_by_strategy(
    placement: Placement, job: Job, strategy: str, seconds: float = math.inf
) -> Placement:
    """Return a strategy's order on slots that are already known; see `order`.

    `seconds`: of processor time that there are for ``auto``.
    """
    if strategy == AUTO:
        return auto_order(placement, job, seconds)
    return arrange(placement, job.pattern or job.sent, strategy)


def auto_order(placement: Placement, job: Job, seconds: float = math.inf) -> Placement:
    """Return the best order of a job's ranks on its nodes.

    `seconds`: of processor time that there are. Never slower, as predicted (or of a higher J),
    than the default order.
    """
    pattern = job.pattern or job.sent
    why = without_time(placement) or _too_large(pattern)
    if why:
        return _by_j(placement, pattern, seconds, why)
    assert placement.machine is not None  # without_time has seen it
    model = Predictor(placement.machine, job.on(placement.counts.tolist()))
    return _by_time(model, placement, seconds)


def _too_large(pattern: str | Pattern) -> str:
    """Return why a graph is too large to predict the time of each order."""
    parsed = parse_pattern(pattern) if isinstance(pattern, str) else pattern
    edges = len(parsed.indices) // 2 if isinstance(parsed, Graph) else 0
    return f"{edges:,} edges are too many to predict times" if edges > MOST_TIMED else ""


def _by_j(placement: Placement, pattern: str | Pattern, seconds: float, why: str) -> Placement:
    fitted = fit_pattern(parse_pattern(pattern) if isinstance(pattern, str) else pattern, placement)
    choice = choose(fitted, placement, seconds)
    order = describe_choice(choice)
    optimised = {
        "by": "J",
        "why": why,
        "cost": plain_number(choice.cost),
        "default_cost": plain_number(choice.default_cost),
        "finished": choice.close or not math.isfinite(seconds),
    }
    notes = getattr(fitted, "notes", ())
    remark = "; ".join([*notes, f"chosen by J ({why}): {order.origin.remark}"])
    return placement.with_order(
        order.slot_of_rank, Origin(order.origin.strategy, fitted.spec, remark, optimised)
    )


def _by_time(model: Predictor, placement: Placement, seconds: float) -> Placement:
    """Return the order with the least predicted time, with a remark on it."""

    def watch(moment: Moment) -> None:
        progress.advance()

    fitted = fit_pattern(model.pattern, placement)
    compile_first(model, placement, seconds)
    deadline = seconds if math.isfinite(seconds) else None
    effort = effort_of(model, placement)
    budget = LIMITS.budget_of(len(placement.counts), effort, deadline, watch)
    ranking = rank_orders(model, placement, budget)
    gain = _gain_of(model, placement, ranking)
    best = ranking.best if gain is not None else _default_of(ranking)
    optimised = {
        "by": "time",
        "time_s": best.cost,
        "default_time_s": _default_of(ranking).cost,
        "gain": (gain or Gain(1.0, 1.0, 1.0)).document(),
        "routing": model.routing,
        "bytes": model.size,
        "algorithm": model.algorithm,
        "looked_at": ranking.judged,
        "every_order": ranking.every,
        "finished": ranking.every or not budget.ended,
    }
    remark = f"chosen by predicted time: {_search_words(ranking, gain)}"
    notes = getattr(fitted, "notes", ())
    name = ROW_MAJOR if gain is None else best.order
    if gain is not None and name == ROW_MAJOR:  # on the nodes in an order that is not theirs
        name = f"{best.nodes} node"
    return placement.with_order(
        best.placement.order,
        Origin(f"auto: {name}", fitted.spec, "; ".join([*notes, remark]), optimised),
    )


def _default_of(ranking: Ranking) -> Candidate:
    assert ranking.default is not None  # the nodes are given
    return ranking.default


def _gain_of(model: Predictor, placement: Placement, ranking: Ranking) -> Gain | None:
    """Return an order's gain; None if it is not worth leaving the default.

    It is not for a gain of a hundredth at most.
    """
    if ranking.best.cost >= _default_of(ranking).cost * (1 - LIMITS.clearly):
        return None
    plan = placement.with_order(ranking.best.placement.order)
    gain = Gains(model, placement.with_order(None)).of(plan)
    return None if gain.high <= 1 + 2 * LIMITS.clearly else gain


def _search_words(ranking: Ranking, gain: Gain | None) -> str:
    """Say in one clause what the search compared and what the order gains."""
    default_s = _default_of(ranking).cost
    default = time_text(default_s)
    if ranking.alike:
        return f"no order makes a difference here ({default}), the default is kept"
    judged = f"all {ranking.judged} orders" if ranking.every else f"{ranking.judged} orders judged"
    if gain is None:
        return f"the default order is kept ({default}): none of {judged} is clearly faster"
    likely = f", likely {gain.likely:.2f} x" if gain.unknowns else ""
    unsure = f"; largest uncertainty: {gain.most_unsure}" if gain.unknowns else ""
    unsure += f"; {gain.loses_if}" if gain.loses_if else ""
    first = f"{gain.misfit}; " if gain.misfit else ""
    return (
        f"{first}{gain.untold}{times_text(ranking.best.cost, default_s)} of the default order,"
        f" {gain.range_text} as fast{likely} ({judged}{unsure})"
    )


def rank_orders(model: Predictor, placement: Placement, budget: Budget) -> Ranking:
    """Rank the orders on some slots by their predicted time.

    `model`: with the slots' own ranks per node. `placement`: of a machine. Its placements are on
    the slots' nodes in their order. The best is never slower, as predicted, than rank r on slot
    r.
    """
    pattern = fit_pattern(model.pattern, placement)
    cost = TimeCost(model)
    default = placement.with_order(None)
    if len(placement.counts) == 1 or ranks_alike(pattern, model.algorithms(pattern)):
        first = Candidate("", ROW_MAJOR, default, cost.of(default))
        return Ranking(first, [first], first, 1, alike=True)
    if _count_ways(placement.counts) <= budget.judgements:
        return _judge_every_order(cost, placement, budget)
    alike = model
    if placement.ppn is not None:
        alike = model.on(placement.ppn)  # places share one number of ranks
    free = np.zeros(len(model.machine), dtype=bool)
    free[placement.rows] = True
    request = Request(len(placement.rows), free)
    # Where nodes differ in their ranks, their order says which of them has how many.
    choices = node_choices(model.machine, request) if placement.ppn is not None else ()
    ranking = search(TimeCost(alike), Space(request, choices, placement.rows), budget)
    best = replace(ranking.best, placement=ranking.best.placement.listed_as(placement.rows))
    return replace(ranking, best=best)


def _judge_every_order(cost: TimeCost, placement: Placement, budget: Budget) -> Ranking:
    """Evaluate all orders that group ranks on nodes differently."""
    candidates: list[Candidate] = []
    for node in _all_layouts(placement.node_of_slot):
        if not budget.spend("every order"):
            break
        laid = placement.with_ranks_on(node)
        candidates.append(Candidate("", "exhaustive", laid, cost.of(laid)))
    candidates[0] = first = replace(candidates[0], order=ROW_MAJOR)
    best = min(candidates, key=lambda candidate: candidate.cost)
    return Ranking(first, candidates, best, budget.judged, every=not budget.ended)


def _count_ways(counts: Ints) -> float:
    """Return the number of ways to distribute the ranks over the nodes."""
    logs = math.lgamma(int(counts.sum()) + 1) - sum(math.lgamma(n + 1) for n in counts.tolist())
    return math.exp(min(logs, 700.0))


def _all_layouts(node: Ints) -> Iterator[Ints]:
    """Yield every assignment of ranks to nodes, starting with the ascending one."""
    row = node.copy()
    while True:
        yield row
        falls = np.flatnonzero(row[:-1] < row[1:])
        if not len(falls):
            return
        at = int(falls[-1])
        last = int(np.flatnonzero(row > row[at])[-1])
        row = row.copy()
        row[[at, last]] = row[[last, at]]
        row[at + 1 :] = row[at + 1 :][::-1]
