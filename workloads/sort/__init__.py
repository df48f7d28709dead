# SPDX-License-Identifier: Apache-2.0
"""MP-sort: items that lie on many ranks, sorted by a whole-numbered key with one exchange.

Source: Feng, Straka, Di Matteo, Croft, "MP-sort: Sorting at Scale on Blue
Waters - for a Cosmological Simulation" (2015).
"""
