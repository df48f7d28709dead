"""Nodes and the order of the ranks, chosen together by what the predictor says of them.

`rankmap.search.planner.auto` is strategy ``auto`` of ``nidmap plan``. It asks
`search`, which begins with `node_sets`, tries `rank_orders` on them (`pairing`),
and steps on from the best by `priced_steps` (many free nodes: by what links
cost) and `exact_steps` (few: every step is looked at, by a table of routes).
`judge` asks the predictor; `budget` and `work` say how long; `job` is what the
user asked.
"""
