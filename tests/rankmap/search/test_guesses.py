"""Where steps are divided a search guesses first, and judges what is guessed to be best."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from nidmap.placement.node_request import NodeRequest
from nidmap.placement.options import with_figures
from nidmap.placement.plan import request_for
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.search.budget import LIMITS
from nidmap.rankmap.search.cost import TimeCost, effort_of
from nidmap.rankmap.search.node_sets import node_choices, scheduler_nodes
from nidmap.rankmap.search.search import Enumeration, Space

DRAGONFLIES = [
    "dragonfly:groups=9,chassis=2,blades=4,nodes=4,global=8,injection=10",
    "slingshot:groups=8,switches=4,nodes=8,global=4,injection=25",
    "dragonfly+:groups=7,leaves=4,spines=4,nodes=8,injection=25",
]

EXCHANGES = [("alltoall", 4, 1e5), ("fft:16x12", 8, 1e6), ("fft:6x16", 4, 1e5)]


@cache
def adapting(spec):
    return with_figures(parse_spec(spec), routing="adaptive")


def enumeration_of(spec, exchange):
    """Return the candidates of 24 nodes of a machine that is half free, before any is judged."""
    pattern, ppn, size = exchange
    machine = adapting(spec)
    free = np.random.default_rng(3).random(len(machine)) < 0.5
    job = Job(pattern, ppn, size, algorithm="pairwise")
    request = replace(request_for(machine, NodeRequest(24, free)), job=job)
    model = Predictor(machine, job)
    space = Space(request, node_choices(machine, request), scheduler_nodes(machine, request))
    effort = effort_of(model, model.place(np.flatnonzero(free)[:24]))
    return Enumeration(TimeCost(model), space, LIMITS.budget_of(24, effort, 60.0))


#: The same networks with links that nothing waits for.
WIDE = [
    "dragonfly:groups=9,chassis=2,blades=4,nodes=4,global=80,injection=1",
    "slingshot:groups=8,switches=4,nodes=8,global=40,injection=2",
    "dragonfly+:groups=7,leaves=4,spines=4,nodes=8,injection=1",
]


@pytest.mark.parametrize(("spec", "exchange"), [*zip(WIDE, EXCHANGES, strict=True)])
def test_where_no_link_is_waited_for_a_guess_is_the_time(spec, exchange):
    pattern, ppn, size = exchange
    machine = adapting(spec)
    model = Predictor(machine, Job(pattern, ppn, size, algorithm="pairwise"))
    rng = np.random.default_rng(5)
    for _ in range(4):
        rows = np.sort(rng.choice(len(machine), 24, replace=False))
        for order in (None, rng.permutation(24 * ppn)):
            placement = model.place(rows, order)
            assert model.guess(placement).seconds == pytest.approx(model.time(placement), rel=5e-3)


@pytest.mark.parametrize(("spec", "exchange"), [*zip(DRAGONFLIES, EXCHANGES, strict=True)])
def test_about_the_best_is_among_the_first_that_guesses_name(spec, exchange):
    enumeration = enumeration_of(spec, exchange)
    guesses, guess = {}, enumeration.guess

    def noted_guess(placement):
        found = guess(placement)
        guesses[placement.key] = found, placement
        return found

    enumeration.guess = noted_guess
    enumeration.judge_all()
    time = enumeration.cost.model.time
    by_time = sorted(guesses.values(), key=lambda known: known[0].seconds)[:5]
    by_links = sorted(
        guesses.values(), key=lambda known: known[0].seconds + LIMITS.links * known[0].links_s
    )[:5]
    least = min(time(placement) for _, placement in (*by_time, *by_links))
    every = min(candidate.cost for candidate in enumeration.candidates)
    assert least <= every * 1.1


def test_pairs_are_judged_by_what_is_guessed_of_them_and_not_by_what_an_order_did_elsewhere():
    enumeration = enumeration_of(DRAGONFLIES[0], EXCHANGES[1])
    guesses, judged = {}, []
    guess, cost_of = enumeration.guess, enumeration._cost_of

    def noted_guess(placement):
        guesses[placement.key] = guess(placement)
        return guesses[placement.key]

    def noted_cost(placement, below=np.inf):
        judged.append(placement.key)
        return cost_of(placement, below)

    enumeration.guess, enumeration._cost_of = noted_guess, noted_cost
    enumeration.judge_all()
    figures = [lambda known: known.seconds, lambda known: known.seconds + 0.1 * known.links_s]
    first = list(dict.fromkeys(judged))[:4]
    best = [min(map(figure, guesses.values())) for figure in figures]
    assert figures[0](guesses[first[0]]) == best[0]
    assert best[1] in [figures[1](guesses[key]) for key in first[:2]]
    assert all(key in guesses for key in first)


def test_where_there_is_no_time_to_guess_all_what_its_order_promises_comes_before_plain_choices():
    enumeration = enumeration_of(DRAGONFLIES[0], EXCHANGES[1])
    budget, judge = enumeration.budget, enumeration._judge_order
    asked, promised = [], []

    def may_guess():
        asked.append(True)
        budget.hurried = len(asked) > len(enumeration.choices) + 20
        return not budget.hurried

    def noted_judge(choice, order, make=None):
        if make is None:
            promised.append((choice.name, order, enumeration.promises.of((choice, order))))
        return judge(choice, order, make)

    budget.may_guess, enumeration._judge_order = may_guess, noted_judge
    enumeration.judge_all()
    seconds = [promise for *_, promise in promised]
    guessed_first = 2 * LIMITS.guessed
    assert seconds[guessed_first:] == sorted(seconds[guessed_first:])
