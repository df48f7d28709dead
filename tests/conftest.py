# SPDX-License-Identifier: Apache-2.0
"""Profiles of the property tests, and marks by what a test needs."""

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

import nidmap  # the front door tells the rooms what later ones bring

# As its commands do: the threads of numpy's linear algebra would spin beside the tests. Programs
# that tests start get the environment as it was.
with pytest.MonkeyPatch.context() as patch:
    patch.setenv(*nidmap.ONE_THREAD)
    import numpy  # noqa: F401

pytest.register_assert_rewrite("tests.web.browser")  # a plugin of several test modules

#: A script for a person's hand: it needs atheris, which is not part of the tests.
collect_ignore = ["fuzz/guided.py"]

_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large)
#: The same examples in every run: who changes nothing sees no other result. `long` draws new ones.
_FIXED = settings(deadline=None, derandomize=True, suppress_health_check=_QUIET)
settings.register_profile("quick", _FIXED, max_examples=10)
settings.register_profile("ci", _FIXED, max_examples=30)
settings.register_profile("long", deadline=None, max_examples=2000, suppress_health_check=_QUIET)
settings.register_profile(
    "board", deadline=None, max_examples=100_000, suppress_health_check=_QUIET
)
settings.load_profile(os.environ.get("NIDMAP_HYPOTHESIS", "ci"))


def pytest_collection():
    """Look for no garbage while modules and tests are loaded: all of it stays."""
    gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.set_threshold(*nidmap.RARELY)
    gc.enable()


# A shell starts background commands with SIGINT ignored, and children inherit that:
# the tests of Ctrl-C must not depend on how the tests themselves were started.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
