# SPDX-License-Identifier: Apache-2.0
"""From a measurement's samples to ratios, intervals and verdicts, and their wording."""

from nidmap.workloads.ab.analysis import comparison_sentence, foretold_sentence


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


def test_comparison_sentence():
    faster = {
        "arm": "auto",
        "against": "default",
        "ratio": 1.08,
        "low": 1.05,
        "high": 1.11,
        "smallest": 1.03,
        "verdict": "faster",
        "shown": True,
        "missing": 0,
    }
    assert comparison_sentence(faster, 0.95) == (
        "auto against default: 1.080 times faster (95 %: 1.050 to 1.110)"
    )
    unclear = {**faster, "low": 0.99, "shown": False, "verdict": "no difference shown"}
    assert comparison_sentence(unclear, 0.95) == (
        "auto against default: no difference shown (95 %: 0.990 to 1.110); "
        "differences below 3.0 % cannot be detected in this noise"
    )
