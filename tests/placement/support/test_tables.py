# SPDX-License-Identifier: Apache-2.0
"""Tables as text, and for a spreadsheet."""

from nidmap.placement.support.tables import align_columns, harmless_cell


def test_align_columns():
    assert align_columns([("class", "links"), ("x", "192")]).splitlines() == [
        "class  links",
        "x        192",
    ]


def test_harmless_cell():
    assert harmless_cell("=1+1") == "'=1+1"
    assert harmless_cell(-1.5) == -1.5
