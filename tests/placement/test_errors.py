# SPDX-License-Identifier: Apache-2.0
"""Errors: a line each, and whole when they come from another process."""

import pickle

import pytest

from nidmap.placement.errors import LaunchError, NidmapError, OutputError, ParseError, PlanError
from nidmap.rankmap.emit.text import BrokenOrderError


@pytest.mark.parametrize("kind", [NidmapError, PlanError, LaunchError, OutputError])
def test_an_error_survives_the_way_from_a_worker(kind):
    found = pickle.loads(pickle.dumps(kind("too few", "ask for less")))
    assert (type(found), str(found)) == (kind, "too few; ask for less")
    assert (found.message, found.hint, found.exit_code) == (
        "too few", "ask for less", kind.exit_code,
    )  # fmt: skip


@pytest.mark.parametrize("kind", [ParseError, BrokenOrderError])
def test_a_parse_error_keeps_its_place(kind):
    found = pickle.loads(pickle.dumps(kind("hosts", 3, "'x' is not a node", "did you mean y?")))
    assert type(found) is kind
    assert str(found) == "hosts:3: 'x' is not a node; did you mean y?"
    assert (found.source, found.line, found.text) == ("hosts", 3, "'x' is not a node")
