# SPDX-License-Identifier: Apache-2.0
"""Which nodes a job may have now, why not the others, and according to whom."""

import numpy as np

from nidmap.placement.nodelist import NodeList
from nidmap.placement.scheduler.availability import counts_of, is_down, promised_rows
from nidmap.placement.specs import parse_spec


def test_promised_rows():
    m = parse_spec("torus:4")
    assert (
        promised_rows(m, m.free, {"7": NodeList(["nid00002"])})[1]
        == "1 idle node left out, requested by pending jobs (7)"
    )


def test_is_down():
    assert [is_down(word) for word in ("down*", "drained", "allocated", "unavail")] == [
        True,
        False,
        False,
        True,
    ]


def test_counts_of():
    assert counts_of(np.array(["up", "down", "up"])) == {"down": 1, "up": 2}
