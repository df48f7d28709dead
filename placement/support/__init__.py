# SPDX-License-Identifier: Apache-2.0
"""Helpers for every room that are not about HPC: arrays, child processes, quantities."""
