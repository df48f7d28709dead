# SPDX-License-Identifier: Apache-2.0
"""A request to launch: the job, and the order in which its ranks start."""

import math

from nidmap.rankmap.launch.request import JobArguments, RunRequest


def test_run_request_search_seconds():
    requests = [RunRequest(("srun",), JobArguments(), patience=p) for p in (15.0, 0.0)]
    assert [request.search_seconds for request in requests] == [10.0, math.inf]
    assert [request.answer_seconds for request in requests] == [2.0, 10.0]
