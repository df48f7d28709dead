# SPDX-License-Identifier: Apache-2.0
"""Which of several placements that cannot be told apart is answered: the one that keeps together.

A gain whose range reaches down to 1 is none that can be told. Nodes that are close leave others
their links, and stray nodes have cost real runs a few percent: of placements that are as good as
far as is known the answer touches the fewest groups, then the fewest switches, and then is the
scheduler's own choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.planners import spans
from nidmap.placement.support.array_types import Ints
from nidmap.rankmap.predict import Predictor
from nidmap.rankmap.predict.gain import Gains
from nidmap.rankmap.search.budget import LIMITS, Budget
from nidmap.rankmap.search.cost import ROW_MAJOR, Candidate, Ranking


def spread_of(machine: Machine, rows: Ints) -> tuple[int, ...]:
    """Return how many groups, chassis, switches … some nodes touch, the outermost first.

    On a torus, which has no such units, they are all alike.

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("slingshot:groups=4,switches=2,nodes=2")
    >>> spread_of(m, np.array([0, 1, 4])), spread_of(nidmap.load_machine("torus:4"), np.arange(2))
    ((2, 2), ())
    """
    return () if machine.topology.kind == "torus" else tuple(spans(machine, rows).values())


def closest_together(model: Predictor, ranking: Ranking, budget: Budget) -> Candidate:
    """Return the candidate to answer: the fastest, or the closest that is as fast as far as known.

    It is never slower, as predicted, than the default.

    Parameters
    ----------
    model : Predictor
    ranking : Ranking
    budget : Budget
        Of the search.
    """
    best, base = ranking.best, ranking.default
    if base is not None and best.cost >= base.cost * (1 - LIMITS.clearly):
        best = base
    most = math.inf if base is None else base.cost
    gains: Gains | None = None
    for candidate in _rivals(model, ranking, best):
        if candidate.cost > most:
            continue
        if candidate.cost * (1 - LIMITS.clearly) <= best.cost:
            return candidate
        if not budget.may_compare:
            break
        gains = gains or Gains(model, best.placement)
        if gains.of(candidate.placement).high >= 1 - LIMITS.clearly:
            return candidate
    return best


def _rivals(model: Predictor, ranking: Ranking, best: Candidate) -> Iterator[Candidate]:
    """Yield the best candidate of each choice that keeps closer together, the closest first."""
    by_nodes: dict[bytes, list[Candidate]] = {}
    for candidate in ranking.candidates:
        by_nodes.setdefault(_nodes_key(candidate), []).append(candidate)
    base = ranking.default
    default_key = b"" if base is None else _nodes_key(base)

    def closeness(key: bytes, rows: Ints) -> tuple[tuple[int, ...], bool]:
        return spread_of(model.machine, rows), key != default_key

    limit = closeness(_nodes_key(best), best.placement.rows)
    if not limit[0]:
        return  # nothing says which nodes are close
    ranks = (
        (closeness(key, alike[0].placement.rows), min(c.cost for c in alike), key)
        for key, alike in by_nodes.items()
    )
    closer = [(rank, cost, key) for rank, cost, key in ranks if rank < limit]
    for *_, key in sorted(closer)[: LIMITS.rivals]:
        yield _best_of(model, by_nodes[key], best.order)


def _best_of(model: Predictor, candidates: list[Candidate], order: str) -> Candidate:
    """Return the fastest of some candidates.

    A search stops judging what is not clearly the best: of that, rank r on slot r and `order` are
    judged to their end.
    """
    judged = [
        replace(candidate, cost=model.time(candidate.placement))
        if candidate.cost == math.inf and candidate.order in (ROW_MAJOR, order)
        else candidate
        for candidate in candidates
    ]
    return min(judged, key=lambda candidate: candidate.cost)


def _nodes_key(candidate: Candidate) -> bytes:
    """Return what tells a candidate's nodes from others, whatever their order."""
    return np.sort(candidate.placement.rows).tobytes()
