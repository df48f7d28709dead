# SPDX-License-Identifier: Apache-2.0
"""How long a search goes on: so many judgements, never past a deadline, until somebody stops it."""

from nidmap.rankmap.search.budget import SEARCHED, Budget


def test_budget_note_length():
    budget = Budget(9, 10.0)
    assert [budget.note_length(seconds) for seconds in (5.0, 0.5)] == [None, None]
    assert 4.9 < budget.seconds() / SEARCHED < 5.1
