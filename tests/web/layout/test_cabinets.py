# SPDX-License-Identifier: Apache-2.0
"""Cray machines as they stand on the floor: cabinets, chassis, blades, nodes."""

import numpy as np

import nidmap
from nidmap.web.layout.cabinets import _fill_gaps, view


def test_view():
    found = view(nidmap.load_machine("shaheen2"))
    assert [(b.level, len(b)) for b in found.levels] == [
        ("group", 18),
        ("cabinet", 36),
        ("chassis", 108),
        ("blade", 1728),
    ]


def test_fill_gaps():
    assert _fill_gaps(np.array([0, 3, 1, 90])).tolist() == [0, 1, 2, 3, 90]
