# SPDX-License-Identifier: Apache-2.0
"""MP-sort: sorting items distributed over ranks by an integer key with a single exchange.

Source: Feng, Straka, Di Matteo, Croft, "MP-sort: Sorting at Scale on Blue
Waters - for a Cosmological Simulation" (2015).
"""
