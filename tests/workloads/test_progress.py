# SPDX-License-Identifier: Apache-2.0
"""One line that says how far a long run is: rank 0, on a terminal only."""

from nidmap.workloads.progress import Progress


def test_progress_line():
    assert Progress("sort", 10).line(5, 20.0) == "sort: 5 of 10, 20 s, about 20 s left"
