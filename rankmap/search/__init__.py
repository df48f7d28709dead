# SPDX-License-Identifier: Apache-2.0
"""Nodes and rank order, chosen together by predicted time.

`planner` is strategy ``auto`` of ``nidmap plan``, `auto_order` the same of ``nidmap order`` and
``run``, on nodes that are given; its `order` makes any other strategy's too. Both ask
`search`: it judges the nodes of `node_sets` (or of `segments`) with the `rank_orders` on them by
one `cost`, goes on from the best in `exchanges`, and ends with its `budget`.
"""
