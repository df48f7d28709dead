# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: nidmap against its peers, interleaved in one run, as ratios.

``python -m benchmarks`` runs all, ``python -m benchmarks cold planners`` some.
Every table ends with the calibration of the same run, a numpy sort of 10^7
int64, so that figures of two machines can be compared.
"""
