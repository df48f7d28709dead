"""Profiles of the property tests, and marks by what a test needs."""

import os

from hypothesis import HealthCheck, settings

_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile("ci", deadline=None, max_examples=200, suppress_health_check=_QUIET)
settings.register_profile("long", deadline=None, max_examples=2000, suppress_health_check=_QUIET)
settings.register_profile(
    "board", deadline=None, max_examples=100_000, suppress_health_check=_QUIET
)
settings.load_profile(os.environ.get("NIDMAP_HYPOTHESIS", "ci"))
