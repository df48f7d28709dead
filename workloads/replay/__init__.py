# SPDX-License-Identifier: Apache-2.0
"""Replays of a whole site: what a placement policy would do to everybody."""
