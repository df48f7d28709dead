"""The last exchanges of a search, judged as was asked: by ranks that are followed, step by step.

To follow ranks takes too long for a search, which goes by each step's busiest link; of plans that
are alike by that, ranks make some slower than others.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from placement.support.array_types import Ints
from rankmap.joint import work
from rankmap.joint.budget import TUNING, Budget
from rankmap.joint.judge import State
from rankmap.predict import Predictor

__all__ = ["exchange_nodes"]


def exchange_nodes(
    asked: Predictor, state: State, spare: Ints, fixed: Ints, budget: Budget
) -> State:
    """Return a state after exchanges of its nodes that make it faster; itself where none does.

    Parameters
    ----------
    asked : Predictor
        That follows ranks.
    state : State
        With as many ranks on each node.
    spare : int64 (k,)
        Free nodes that it does not have.
    fixed : int64 (m,)
        Nodes that it has to keep.
    budget : Budget
    """
    us = work.judging(asked, state.rows)
    budget.part(TUNING.followed, "exchanges as asked")
    rows, count = np.append(state.rows, spare), len(state.rows)
    moves = [*combinations(range(count), 2), *product(range(count), range(count, len(rows)))]
    best, slots = asked.time(rows[:count], state.slots), state.slots
    order = np.random.default_rng(0).permutation(len(moves)).tolist()
    since = 0
    while moves and since < len(moves):
        for k in order:
            since += 1
            a, b = moves[k]
            if since > len(moves) or not budget.spend(us):
                return state._replace(rows=rows[:count])
            if b >= count and rows[a] in fixed:
                continue
            rows[[a, b]] = rows[[b, a]]
            took = asked.time(rows[:count], slots)
            if took < best * (1 - TUNING.won):
                best, since = took, 0
            else:
                rows[[a, b]] = rows[[b, a]]
    return state._replace(rows=rows[:count])
