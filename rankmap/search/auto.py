# SPDX-License-Identifier: Apache-2.0
"""Strategy ``auto``: the nodes and rank order that are predicted fastest together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.network.connected import connected_nodes
from nidmap.placement.placement import Placement
from nidmap.placement.planners import Choice, Moment, Outlook, Request
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.quantities import time_text
from nidmap.rankmap.emit import emit, format_of
from nidmap.rankmap.predict import Job, Prediction, Predictor
from nidmap.rankmap.predict.gain import Gain, Gains
from nidmap.rankmap.predict.prediction import worst_document
from nidmap.rankmap.score import plain_number
from nidmap.rankmap.search.budget import LIMITS, Budget
from nidmap.rankmap.search.cost import (
    ROW_MAJOR,
    Candidate,
    Cost,
    Ranking,
    cost_by,
    effort_of,
    without_time,
)
from nidmap.rankmap.search.gain_words import gain_sentence
from nidmap.rankmap.search.node_sets import node_choices, scheduler_nodes
from nidmap.rankmap.search.rank_orders import compile_first
from nidmap.rankmap.search.search import ROUNDING, Space, search
from nidmap.rankmap.search.segments import inside_one_block, whole_segments
from nidmap.rankmap.search.short_orders import fit_format
from nidmap.rankmap.search.ties import closer_words, closest_together, spread_of


def auto(machine: Machine, request: Request) -> Choice:
    """Choose the nodes, and the order of the ranks on them, with the least predicted time.

    Candidates are what all planners choose with their options, families
    between packed and spread, and the orders of the ranks on each. From the
    best of them nodes are exchanged with free ones, and with each other, as
    far as the prediction gets better. The answer is never slower, as
    predicted, than any candidate or Slurm's own choice.

    `request`: ``request.job`` says what the job sends, ``request.deadline`` the processor seconds
    of search (8), and ``request.progress`` is told each `nidmap.placement.planners.Moment`, and
    ends the search by returning True. Without a pattern an all-to-all of 1 rank per node is
    assumed, and said. With the order, and the figures that it rests on next to the default's.
    """
    return search_answer(machine, request).choice()


def search_answer(machine: Machine, request: Request) -> SearchAnswer:
    """Return the answer of `auto`, with all evaluated candidates."""
    if len(request.include) > request.count:
        raise UsageError(
            f"{len(request.include)} nodes are included, but only {request.count} wanted"
        )
    job = request.job or Job()
    assert isinstance(job, Job)
    model, assumed = Predictor(machine, job), tuple(filter(None, [job.assumed]))
    free, note = connected_nodes(machine, request.free, request.include)
    if note:
        request, assumed = replace(request, free=free, idle=None), (*assumed, note)
    rows = request.rows()[: request.count]  # an answer even if there are too few
    deadline = request.deadline
    if deadline is not None and not 0 <= deadline < np.inf:
        raise UsageError(f"deadline {deadline:g} s: it must be 0 or more")
    first = model.place(rows)

    def tell(text: str) -> None:
        if request.progress is not None:
            request.progress(Moment(0.0, text, np.inf, None))

    compile_first(model, first, np.inf if deadline is None else deadline, tell)
    effort = effort_of(model, first)
    budget = LIMITS.budget_of(request.count, effort, deadline, request.progress)
    timeless = without_time(first)
    within = inside_one_block if request.segment is None else whole_segments
    segments = within(model, request)
    if segments is not None and request.segment is not None:
        assumed = (*assumed, segments.note)
    cost = cost_by(model, timeless)
    choices = node_choices(machine, request) if segments is None else segments.choices
    space = Space(request, choices, scheduler_nodes(machine, request), segments)
    ranking = search(cost, space, budget)
    return SearchAnswer(cost, space, ranking, budget, assumed, model, timeless)


@dataclass(frozen=True)
class SearchAnswer(Outlook):
    """The placement chosen by a search, its prediction and gain, and their wording."""

    cost: Cost
    space: Space
    ranking: Ranking
    budget: Budget
    assumed: tuple[str, ...]
    model: Predictor
    timeless: str = ""  # why no time can be predicted, so that J was gone by; '' where it can
    compares_all: bool = False  # whether ranges are compared even after the search's deadline

    @property
    def request(self) -> Request:
        """The request that was answered."""
        return self.space.request

    def among(self, judged: Iterable[Candidate]) -> SearchAnswer:
        """Return the answer with placements evaluated elsewhere added to its candidates.

        Itself where they change nothing. `judged`: with their seconds.
        """
        ranking = self.ranking
        known = {
            candidate.placement.key: candidate
            for candidate in ranking.candidates
            if candidate.cost < np.inf
        }
        rows = [
            known.get(placement.key)
            or replace(candidate, placement=placement, cost=self._cost_known(candidate))
            for candidate in judged
            if self.space.allows(placement := candidate.placement.canonical())
        ]
        fastest = min(rows, key=lambda candidate: candidate.cost, default=ranking.best)
        better = fastest.cost < ranking.best.cost * (1 - ROUNDING)
        answered = ranking.default if self.kept else self.chosen
        assert answered is not None
        # A search that has ended compares few ranges.
        unsure = self.budget.ended and fastest.cost < answered.cost * (1 - LIMITS.clearly)
        if not (better or unsure):
            return self
        candidates = [*ranking.candidates, *(row for row in rows if row.placement.key not in known)]
        best = fastest if better else ranking.best
        return replace(
            self, ranking=replace(ranking, best=best, candidates=candidates), compares_all=True
        )

    def _cost_known(self, judged: Candidate) -> float:
        """Return the cost of a placement whose seconds are known."""
        return self.cost.of(judged.placement) if self.timeless else judged.cost

    @cached_property
    def chosen(self) -> Candidate:
        """The best candidate, or a more compact one that is indistinguishable from it."""
        if self.timeless:
            return self.ranking.best
        base = self.ranking.default
        ranking = self.ranking
        if base is not None and not self.space.allows(base.placement):
            ranking = replace(ranking, default=None)
        budget = Budget(LIMITS.rivals, np.inf) if self.compares_all else self.budget
        return closest_together(self.model, ranking, budget)

    @cached_property
    def placement(self) -> Placement:
        """The chosen nodes and rank order."""
        chosen, base = self.chosen, self.ranking.default
        if base is not None and self.space.allows(base.placement):
            same = np.array_equal(chosen.placement.rows, base.placement.rows)
            no_better = chosen.cost >= base.cost * (1 - LIMITS.clearly)
            if no_better and (same or self.timeless or not self._closer(base)):
                return base.placement
        return self._as_slurm_lists(chosen.placement)

    def _closer(self, base: Candidate) -> bool:
        """Tell whether the chosen nodes are more compact than the baseline's."""
        machine = self.model.machine
        ours, theirs = (spread_of(machine, x.placement.rows) for x in (self.chosen, base))
        return ours < theirs

    @cached_property
    def kept(self) -> bool:
        """Whether the default is kept."""
        base = self.ranking.default
        return base is not None and self.placement is base.placement

    @cached_property
    def prediction(self) -> Prediction:
        """The prediction of the plan."""
        return self.model.predict(self.placement)

    @cached_property
    def default(self) -> Prediction | None:
        """The prediction of the baseline; None if the scheduler would choose nothing."""
        base = self.ranking.default
        if base is None or self.kept:
            return None if base is None else self.prediction
        return self.model.predict(base.placement)

    @cached_property
    def gain(self) -> Gain | None:
        """The plan's gain over the baseline; None if it is the baseline."""
        base = self.ranking.default
        if base is None or self.kept:
            return None
        return Gains(self.model, base.placement).of(self.placement)

    @cached_property
    def order(self) -> Placement:
        """The rank order on the plan's nodes."""
        name = f"auto: {self.chosen.name}"
        return self.placement.with_origin(strategy=name, pattern=self.prediction.asked["pattern"])

    def choice(self) -> Choice:
        """Return the plan."""
        return Choice(
            rows=self.placement.rows,
            why=self._sentence(),
            facts=self._facts(),
            warnings=tuple(self._warnings()),
            outlook=self,
        )

    def order_text(self, path: str) -> tuple[str, str]:
        """Return the order in the format implied by a file name, and a remark."""
        form = format_of(path)
        fitted, note = fit_format(self.order, form, "sorted", None, self.model.job)
        if (fitted.slot_of_rank == np.arange(len(fitted.slot_of_rank))).all():
            same = f"the order in {path} is the default one: the file may be left out"
            note = "; ".join(text for text in (note, same) if text)
        return emit(fitted, form), note

    def judge(self, rows: Ints) -> tuple[bool, str]:
        """Return whether other nodes, with rank r on slot r, pay, and a sentence on their gain."""
        base = self.ranking.default
        placement = self.model.place(rows)
        best = self.model.predict(placement)
        if base is None:
            return True, f"{time_text(best.time_s)} expected"
        words = self.request.baseline.words
        if self.timeless:
            least = self.cost.of(placement)
            return least < base.cost, self._by_j(base.cost, least)
        if self.default is None or np.array_equal(base.placement.rows, rows):
            return False, f"these are {words}"
        gain = Gains(self.model, base.placement).of(placement)
        pays = best.time_s < self.default.time_s * (1 - LIMITS.clearly)
        return pays, gain_sentence(best, self.default, gain, False, words)

    def _as_slurm_lists(self, placement: Placement) -> Placement:
        """Return the placement with nodes in Slurm's order and rank r on slot r, if as good."""
        listed = self._ignored(placement)
        if not self.space.allows(listed):
            return placement
        best = self.chosen.cost
        return listed if self.cost.of(listed) <= best * (1 + 1e-9) else placement

    def _ignored(self, placement: Placement) -> Placement:
        """Return the placement if the launcher ignores the order: nodes as Slurm lists them."""
        return placement.with_order(None).on_nodes(placement.rows[placement.sorting()])

    def _sentence(self) -> str:
        words = self.request.baseline.words
        base = self.ranking.default
        if self.timeless and base is not None:
            return self._by_j(base.cost, base.cost if self.kept else self.chosen.cost)
        same = base is not None and np.array_equal(
            np.sort(base.placement.rows), np.sort(self.placement.rows)
        )
        closer = self._closer_words()
        if self.kept and base is not None and self._faster_likely(base):
            return (
                f"{words} is kept: no clear gain over it (the fastest tried is likely"
                f" {base.cost / self.ranking.best.cost:.2f} x as fast, which lies inside its range)"
            )
        sentence = gain_sentence(self.prediction, self.default, self.gain, same, words, closer)
        return sentence if self.kept else f"{sentence}; {self._search_words()}"

    def _faster_likely(self, base: Candidate) -> bool:
        """Tell whether a candidate is likely faster than a baseline that is kept."""
        best = self.ranking.best
        return self.space.allows(best.placement) and best.cost < base.cost * (1 - LIMITS.clearly)

    def _closer_words(self) -> str:
        """Say that the nodes touch fewer groups, switches, … than the baseline's; '' if not."""
        base = self.ranking.default
        if base is None or self.kept:
            return ""
        return closer_words(self.model.machine, self.placement.rows, base.placement.rows)

    def _search_words(self) -> str:
        """Say what was compared: how many candidates, and the gain over the best plain one."""
        ranking = self.ranking
        count = f"best of {len(ranking.candidates)} candidates"
        less = 1 - self.chosen.cost / ranking.plain.cost if ranking.plain.cost else 0.0
        if not 0.005 <= less < 1:
            return count
        plain = f"the best with ranks in order ({ranking.plain.nodes})"
        return f"{count}, {less:.0%} less time than {plain}"

    def _by_j(self, usual: float, least: float) -> str:
        """Return the sentence for a plan chosen by J."""
        words, chosen_by = self.request.baseline.words, f"chosen by J ({self.timeless})"
        if least == usual:
            return f"{words} is kept, {chosen_by}: J = {plain_number(usual):,}"
        change = f"{abs(1 - least / usual):.1%} {'less' if least < usual else 'more'}"
        before = f"{plain_number(usual):,} of {words}"
        return f"{chosen_by}: J = {plain_number(least):,}, {change} than the {before}"

    def _facts(self) -> dict[str, Any]:
        """Return the figures, next to the default's."""
        best, default, gain = self.prediction, self.default, self.gain
        placement, ranking = self.placement, self.ranking
        ignored = self._ignored(placement)
        ignored_s = self.model.time(ignored)
        needed = ignored_s > best.time_s * (1 + 1e-6)
        if self.timeless:
            needed = self.cost.of(ignored) > self.cost.of(placement)
        before = None if default is None else default.time_s
        same = ("pattern", "ranks", "ppn", "bytes", "algorithm", "background")
        return {
            **{key: best.asked[key] for key in same},
            "routing": best.loads.routing,
            "time_s": best.time_s,
            "default_time_s": before,
            "gain": None if default is None else (gain or Gain(1.0, 1.0, 1.0)).document(),
            "ratio": best.time_s / before if before else (1.0 if before == 0 else None),
            "bound_s": best.bound_s,
            "percent_of_bound": 100 * best.share,
            "bottleneck": worst_document(best.bottleneck),
            "default_bottleneck": None if default is None else worst_document(default.bottleneck),
            "by_class": best.by_class,
            "terms": {term.name: term.seconds for term in best.terms},
            "order": {
                "strategy": ROW_MAJOR if placement.order is None else self.chosen.order_words,
                "slots": None if placement.order is None else placement.order.tolist(),
                "sorted_time_s": ignored_s,
                "needed": needed,
            },
            "chosen": self._chosen(),
            "segment": self._segment,
            "search": {
                "from": self.chosen.name,
                "candidates": len(ranking.candidates),
                "judged": ranking.judged,
                "best": {
                    "strategy": ranking.best.name,
                    "cost": plain_number(ranking.best.cost),
                },
                "plain": {
                    "strategy": ranking.plain.nodes,
                    "cost": plain_number(ranking.plain.cost),
                },
                "finished": not self.budget.ended,
            },
            "rests_on": list(best.notes),
        }

    @property
    def _segment(self) -> int | None:
        """Nodes per segment if segments were requested."""
        segments = self.space.segments
        return None if self.request.segment is None or not segments else segments.size

    def _chosen(self) -> dict[str, Any]:
        """Return the criterion of the choice, as in the orders' ``optimised``."""
        if not self.timeless:
            return {"by": "time"}
        base = self.ranking.default
        usual = None if base is None else plain_number(base.cost)
        least = usual if self.kept else plain_number(self.chosen.cost)
        return {"by": "J", "why": self.timeless, "cost": least, "default_cost": usual}

    def _warnings(self) -> Iterator[str]:
        """Yield warnings to consider before trusting the plan."""
        if self.gain is not None and self.gain.misfit:
            yield f"{self.gain.misfit}: no recommendation is based on it"
        yield from self.assumed
        if self.budget.stopped:
            yield "the search was stopped: this is the best so far"
        elif self.budget.late:
            yield "the search was cut short by its deadline: --deadline gives it more seconds"
        gain = self.gain
        if gain is not None and not self.timeless and gain.low < 1 - LIMITS.clearly:
            yield (
                f"this may be slower than {self.request.baseline.words}: {gain.low:.2f} x as fast"
                f" at worst (largest uncertainty: {gain.most_unsure})"
            )
