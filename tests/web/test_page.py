# SPDX-License-Identifier: Apache-2.0
"""The page: its shell, the self-contained file that opens from disk, and its pictures."""

from nidmap.placement.specs import parse_spec
from nidmap.web.page import _imported_path, file_name


def test_imported_path():
    assert _imported_path("views/plans.js", "../core/marks.js") == "core/marks.js"


def test_file_name():
    assert file_name(parse_spec("torus:2x2"), "svg") == ("torus-2x2.svg", "image/svg+xml")
