# SPDX-License-Identifier: Apache-2.0
"""Mapping graphs onto machines: bisection along the machine's hierarchy, then moves of ranks."""
