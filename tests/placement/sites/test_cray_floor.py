# SPDX-License-Identifier: Apache-2.0
"""Cray XC, XE and XK: nodes in cabinets on a floor, with NIDs by rule."""

from nidmap.placement.sites.cray_floor import COMPUTE, floor, select
from nidmap.placement.sites.schema import Cabinets, Figure


def test_floor():
    one = Figure(1, "assumed", "an example")
    blades = Figure(["c0-0c*s0"], "assumed", "an example")
    found = floor(Cabinets(columns=one, rows=one, service_blades=blades), 16)
    assert found[0, 0, 0, 0].tolist() == [0, 2, 2, 0]
    assert int((found == COMPUTE).sum()) == 180


def test_select():
    assert select("where", ["c[0-1]-0c2s15n*"], (1, 12, 3, 16, 4)).sum() == 8
