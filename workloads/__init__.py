# SPDX-License-Identifier: Apache-2.0
"""Workloads that measure what a placement gains: the papers' programs, and A/B tests of orders.

Each program is a package with ``command.py`` (its part of ``nidmap bench``)
and ``trial.py`` (``trial(comm, **options)``: one timed repetition at a time on
any communicator, which is how `nidmap.workloads.ab` compares two orders).
"""
