"""Nodes and an order of the ranks with the least J, for machines of which no bandwidth is known.

Predicted time would tell of latency alone there, and the order of given nodes
goes by J then (`rankmap.joint.auto_order`): so do the nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankmap.joint.judge import State
from rankmap.joint.node_sets import default, levels, planner_sets
from rankmap.orders.auto import choose
from rankmap.predict.asked import fit_pattern
from rankmap.score.distance import job_distance
from rankmap.score.traffic import cost_of

if TYPE_CHECKING:
    from placement.request import Request
    from rankmap.joint.budget import Budget
    from rankmap.joint.search import Found
    from rankmap.predict import Predictor

__all__ = ["cheapest", "cost"]

#: Node sets, the cheapest with rank r on slot r, on which orders are made.
SETS = 4


def cost(asked: Predictor, state: State) -> float:
    """Return J of a state.

    Examples
    --------
    >>> import nidmap, numpy as np
    >>> from rankmap.predict import Predictor
    >>> asked = Predictor(nidmap.load_machine("tree:2x2,dist=1:3"), "ring")
    >>> [cost(asked, State(np.array(rows), None, "")) for rows in ([0, 2, 1, 3], [0, 1, 2, 3])]
    [12.0, 8.0]
    """
    slots = asked.slots(state.rows)
    node = slots.node if state.slots is None else slots.node[state.slots]
    return cost_of(fit_pattern(asked.pattern, slots), node, job_distance(slots))


def cheapest(asked: Predictor, request: Request, budget: Budget) -> Found:
    """Return the nodes and the order with the least J among the planners' nodes.

    Parameters
    ----------
    asked : Predictor
    request : Request
    budget : Budget

    Returns
    -------
    Found
        Never of a higher J than the scheduler's own choice.
    """
    from rankmap.joint.search import Found

    machine, own = asked.machine, default(asked.machine, request)
    base = None if own is None else State(own, None, request.baseline.strategy)
    sets = [*planner_sets(machine, request), *levels(machine, request)]
    starts = [*([base] if base else []), *(State(rows, None, name) for name, rows in sets)]
    once: dict[bytes, State] = {}
    for one in starts:
        once.setdefault(one.rows.tobytes(), one)
    plain = sorted(once.values(), key=lambda one: cost(asked, one))
    budget.part(1.0, "orders by J")
    ordered = []
    for one in plain[:SETS]:
        if not budget.spend(budget.work / SETS, one.name):
            break
        slots = asked.slots(one.rows)
        found = choose(fit_pattern(asked.pattern, slots), slots, budget.work / 1e6 / SETS)
        if found.cost < found.default_cost:
            ordered.append(State(one.rows, found.order.slots, f"{one.name}, {found.strategy}"))
    states = sorted([*plain, *ordered], key=lambda one: cost(asked, one))
    return Found(base, states, starts, judged=len(states))
