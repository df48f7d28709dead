# SPDX-License-Identifier: Apache-2.0
"""One line that shows the progress of a long run, on rank 0 and terminals only."""

from nidmap.workloads.progress import Progress


def test_progress_line():
    assert Progress("sort", 10).line(5, 20.0) == "sort: 5 of 10, 20 s, about 20 s left"
