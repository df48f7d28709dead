# SPDX-License-Identifier: Apache-2.0
"""Rank orders: patterns, orders, emitters and launchers."""
