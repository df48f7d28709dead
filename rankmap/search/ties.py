# SPDX-License-Identifier: Apache-2.0
"""Which of several equally good placements is chosen: the most compact one.

A gain whose range reaches down to 1 is none that can be told. Nodes that are close leave others
their links, and stray nodes have cost real runs a few percent: of placements that are as good as
far as is known the answer touches the fewest groups, then the fewest switches, and then is the
scheduler's own choice. On a torus, which has no such units, nodes that are fewer hops apart are
answered where the fastest may lose against them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.planners import spans
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.quantities import counted
from nidmap.rankmap.predict import Predictor
from nidmap.rankmap.predict.gain import Gain, Gains
from nidmap.rankmap.search.budget import LIMITS, Budget
from nidmap.rankmap.search.cost import ROW_MAJOR, Candidate, Ranking

Spread = tuple[int, ...]


def spread_of(machine: Machine, rows: Ints) -> Spread:
    """Return how many groups, chassis, switches … some nodes touch, the outermost first.

    On a torus, which has no such units, it is the hops between two of them in the mean, rounded.
    """
    if machine.topology.kind != "torus":
        return tuple(spans(machine, rows).values())
    hops, pairs = 0.0, max(1, len(rows) * (len(rows) - 1))
    for axis, extent in enumerate(machine.topology.extents[: machine.topology.router_levels]):
        held = np.bincount(machine.coords[rows, axis], minlength=extent)
        apart = np.abs(np.subtract.outer(np.arange(extent), np.arange(extent)))
        hops += float(held @ np.minimum(apart, extent - apart) @ held)
    return (round(hops / pairs),)


def closer_words(machine: Machine, rows: Ints, other: Ints) -> str:
    """Say in what respect some nodes are more compact than others; '' if they are not."""
    ours, theirs = spread_of(machine, rows), spread_of(machine, other)
    if not ours < theirs:
        return ""
    if machine.topology.kind == "torus":
        return f"these nodes are {counted(ours[0], 'hop')} apart on average, not {theirs[0]}"
    level = next(k for k, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
    word = machine.topology.levels[level]
    return f"these nodes touch {counted(ours[level], word)} instead of {theirs[level]}"


def closest_together(model: Predictor, ranking: Ranking, budget: Budget) -> Candidate:
    """Return the fastest candidate, or a more compact one that may be equally fast.

    It is never slower, as predicted, than the default, and touches more groups, switches … than
    that only for a gain that can be told.

    `budget`: of the search. The default is compared with the fastest even where it has ended.
    """
    best, base = ranking.best, ranking.default
    if base is not None and best.cost >= base.cost * (1 - LIMITS.clearly):
        best = base
    ties = _Ties(model, base)
    compared = 0
    for rival in ties.closer_rivals(ranking, best):
        if rival.cost * (1 - LIMITS.clearly) > best.cost:
            compared += 1
            may_compare = compared <= LIMITS.rivals and budget.may_compare
            if not (may_compare or ties.on_default(rival)) or ties.is_slower(rival, best):
                continue
        if ties.is_worth_leaving(rival):
            return rival
    return best


class _Ties:
    """Compares candidates by the compactness of their nodes and the ranges of their gains."""

    def __init__(self, model: Predictor, base: Candidate | None) -> None:
        self.model, self.base = model, base
        self.counts_units = model.machine.topology.kind != "torus"
        self._default_key = b"" if base is None else _nodes_key(base)
        self._gains: dict[int, Gains] = {}

    def spread(self, candidate: Candidate) -> Spread:
        return spread_of(self.model.machine, candidate.placement.rows)

    def on_default(self, candidate: Candidate) -> bool:
        """Return whether a candidate is on the default's nodes, in any order."""
        return _nodes_key(candidate) == self._default_key

    def is_slower(self, rival: Candidate, best: Candidate) -> bool:
        """Return whether a rival is slower than the best, as far as is known.

        The default's nodes are not where the best is not worth leaving them for.
        """
        if self.on_default(rival) and not self.is_worth_leaving(best):
            return False
        closer = self.counts_units and self.spread(rival) < self.spread(best)
        least = 1 - LIMITS.clearly if closer else 1 + LIMITS.clearly
        return self._gain(rival, best).high < least

    def is_worth_leaving(self, candidate: Candidate) -> bool:
        """Return whether a candidate is more compact than the default, or certainly better.

        On nodes that touch no more units it is enough that it does not lose.
        """
        if self.base is None or self.on_default(candidate):
            return True
        ours, theirs = self.spread(candidate), self.spread(self.base)
        further = self.counts_units and ours > theirs
        least = 1 + LIMITS.clearly if further else 1 - LIMITS.clearly
        return ours < theirs or self._gain(candidate, self.base).low > least

    def _gain(self, candidate: Candidate, over: Candidate) -> Gain:
        if id(over) not in self._gains:
            self._gains[id(over)] = Gains(self.model, over.placement)
        return self._gains[id(over)].of(candidate.placement)

    def closer_rivals(self, ranking: Ranking, best: Candidate) -> Iterator[Candidate]:
        """Yield the best candidate of each more compact choice, the most compact first.

        Of nodes as close the default's; none that is slower than the default.
        """
        by_nodes: dict[bytes, list[Candidate]] = {}
        for candidate in ranking.candidates:
            by_nodes.setdefault(_nodes_key(candidate), []).append(candidate)
        limit = self.spread(best), not self.on_default(best)
        most = math.inf if self.base is None else self.base.cost
        ranks = (
            ((self.spread(alike[0]), key != self._default_key), min(c.cost for c in alike), key)
            for key, alike in by_nodes.items()
        )
        for *_, key in sorted(rank for rank in ranks if rank[0] < limit):
            rival = _best_of(self.model, by_nodes[key], best.order, most)
            if rival.cost <= most:
                yield rival


def _best_of(model: Predictor, candidates: list[Candidate], order: str, most: float) -> Candidate:
    """Return the fastest of some candidates that takes no more than `most` seconds.

    A search stops judging what is not clearly the best: of that, rank r on slot r and `order` are
    judged to their end.
    """
    below = math.nextafter(most, math.inf)
    judged = [
        replace(candidate, cost=model.time(candidate.placement, below))
        if candidate.cost == math.inf and candidate.order in (ROW_MAJOR, order)
        else candidate
        for candidate in candidates
    ]
    return min(judged, key=lambda candidate: candidate.cost)


def _nodes_key(candidate: Candidate) -> bytes:
    """Return a key for a candidate's nodes, regardless of their order."""
    return np.sort(candidate.placement.rows).tobytes()
