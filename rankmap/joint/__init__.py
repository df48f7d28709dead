"""Nodes and the order of the ranks, chosen together by what the predictor says of them.

`rankmap.joint.planner.auto` is strategy ``auto`` of ``nidmap plan``. Its
parts: `starts` (node sets to begin with), `ranks` (orders to begin with),
`judge` (the predictor, asked again and again), `table` and `small` (few free
nodes: every step is looked at), `guided` (many: steps follow the prices of
the links), `effort` (how long), `why` (the sentence for a person).
"""
