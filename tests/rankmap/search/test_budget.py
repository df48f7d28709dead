# SPDX-License-Identifier: Apache-2.0
"""How long a search goes on: so many judgements, never past a deadline, until somebody stops it."""

import math

from nidmap.rankmap.search.budget import LIMITS, MOST_SAID, SEARCHED, Budget


def test_budget_note_length():
    budget = Budget(9, 10.0)
    assert [budget.note_length(seconds) for seconds in (5.0, 0.5)] == [None, None]
    left = 10 * (1 - MOST_SAID)  # twenty judgements of half a second are more than may be kept
    assert left - 0.1 < budget.seconds() / SEARCHED < left + 0.1


def test_judgements_where_routers_adapt_step_by_step_are_few_whatever_the_job():
    assert [LIMITS.judgements_of(nodes) for nodes in (16, 256, 512)] == [800, 800, 400]
    assert [LIMITS.judgements_of(nodes, LIMITS.adapting) for nodes in (16, 4096)] == [400, 100]
    several = {LIMITS.judgements_of(nodes, LIMITS.divided) for nodes in (16, 256, 4096)}
    assert several == {LIMITS.stepwise}


def test_refund_what_a_bound_ended_takes_a_quarter_of_a_judgement():
    budget = Budget(2)
    for _ in range(4):
        assert budget.spend()
        budget.refund()
    assert (budget.judged, budget.left) == (4, 1)
    assert budget.spend()
    assert not budget.spend()


def test_ranges_are_compared_in_a_part_of_the_seconds_kept_for_the_answer_and_always_without_end():
    budget = Budget(9, 0.0)
    assert not budget.may_compare
    assert Budget(9, 10.0).may_compare
    assert Budget(9, math.inf).may_compare
