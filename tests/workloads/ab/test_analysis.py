# SPDX-License-Identifier: Apache-2.0
"""From the samples of a measurement to ratios, intervals and verdicts, and these in words."""

from nidmap.workloads.ab.analysis import foretold_sentence


def test_foretold_sentence():
    promise = {
        "arm": "plan",
        "words": "",
        "gain": {"low": 1.1, "high": 1.3},
        "measured": 1.18,
        "covers": True,
        "overlaps": True,
    }
    assert foretold_sentence(promise) == (
        "plan: predicted 1.100 to 1.300 times as fast in communication, measured 1.180: covered"
    )
