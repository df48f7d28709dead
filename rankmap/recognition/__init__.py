# SPDX-License-Identifier: Apache-2.0
"""Patterns and steps of a recorded program, in words."""
