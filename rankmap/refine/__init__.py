# SPDX-License-Identifier: Apache-2.0
"""Graphs onto machines: recursive bisection down the machine's own tree, then moves of ranks."""
