# SPDX-License-Identifier: Apache-2.0
"""Boxes of the network: groups of switches, leaf modules, trees of any depth, torus slices."""

from nidmap.placement.specs import parse_spec
from nidmap.web.layout.networks import _slice_view, slices, switches


def test_switches():
    found = switches(parse_spec("dragonfly:groups=2,chassis=2,blades=4,nodes=2"))
    assert [(b.level, len(b)) for b in found.levels] == [
        ("group", 2),
        ("chassis", 4),
        ("blade", 16),
    ]


def test_slices():
    assert [(v.id, v.title) for v in slices(parse_spec("torus:4x3x2"))] == [
        ("slices", "z slices"),
        ("slices-y", "y slices"),
        ("slices-x", "x slices"),
    ]
    assert [v.title for v in slices(parse_spec("torus:4x3"))] == ["The torus"]


def test_slice_view():
    torus = parse_spec("torus:4x3x2,nodes=2")
    found = _slice_view(torus, [0, 1, 2])
    assert [(b.level, len(b)) for b in found.levels] == [("slice", 2), ("router", 24)]
    assert found.levels[0].label == ["z0", "z1"]
    found = _slice_view(torus, [1, 2, 0])
    assert found.levels[0].label == ["x0", "x1", "x2", "x3"]
    assert [text.text for text in found.texts] == ["y →", "z ↓"]
