"""Nodes and the order of the ranks, chosen together by what the predictor says of them.

`planner.auto` is strategy ``auto`` of ``nidmap plan``, `auto_order` that of
``nidmap order``. Both ask `search`: it judges `node_sets`, tries `rank_orders` on
them (`pairing`), and takes `steps` from the best. `judge` asks the predictor;
`budget` and `work` say how long; `job` is what the user asked.
"""
