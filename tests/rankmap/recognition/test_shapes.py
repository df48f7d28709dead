# SPDX-License-Identifier: Apache-2.0
"""Recognises recorded messages as stencils, sweeps and lines of a process grid."""

import numpy as np

from nidmap.placement.traffic import Traffic
from nidmap.rankmap.recognition.shapes import sweep_in
from nidmap.rankmap.recording import RecordedPhase


def test_sweep_in():
    pairs = np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.array([1, 2, 0, 3, 0, 3, 1, 2])
    sent = Traffic(*pairs, np.full(8, 800), np.full(8, 4))
    assert sweep_in(RecordedPhase("point-to-point", "", 8, 24, sent), 4).spec == "sweep:2x2"
    assert sweep_in(RecordedPhase("point-to-point", "", 4, 16, sent), 4) is None
