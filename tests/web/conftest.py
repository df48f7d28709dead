# SPDX-License-Identifier: Apache-2.0
"""Machines and a running server for the tests of the page."""

import pytest

pytest.importorskip("quart")
pytest.importorskip("uvicorn")

from tests.web.serving import running


@pytest.fixture(scope="session")
def shaheen2():
    import nidmap

    return nidmap.load_machine("shaheen2")


@pytest.fixture(scope="session")
def small():
    import nidmap

    return nidmap.load_machine("dragonfly:groups=4,chassis=2,blades=4,nodes=4")


@pytest.fixture(scope="session")
def site(small):
    """A server of a small dragonfly, for all tests that leave it as it is."""
    with running(small, seconds=600.0) as found:  # a busy machine ends no search early
        yield found
