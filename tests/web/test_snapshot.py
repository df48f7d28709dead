# SPDX-License-Identifier: Apache-2.0
"""What changes: states of nodes and the jobs on them, as of one moment."""

from nidmap.web.snapshot import _KINDS, _kind_of, _mask_names


def test_kind_of():
    assert [
        _KINDS[_kind_of(word)] for word in ("idle", "idle*", "mixed+", "down*", "drained", "")
    ] == ["free", "held", "busy", "down", "held", "held"]


def test_mask_names():
    assert _mask_names("Alice-run7", ["alice"]) == "…-run7"
    assert _mask_names("run7", ["alice"]) == "run7"
    assert _mask_names("standard_a", ["a"]) == "standard_…"
