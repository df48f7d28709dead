# SPDX-License-Identifier: Apache-2.0
"""Simultaneous jobs on mini-Crays against the times that a replay predicts for them."""
