"""Does an order of ranks, or a set of nodes, help? Measured side by side in one launch.

Two (or more) communicators of the same job stand beside each other and take
turns, so that whatever else changes on the machine strikes both alike:

`arms`       what is compared: the program and its options, the orders, the two controls
`running`    one launch: blocks in random ABBA order, visits, warm-ups, samples, skew
`statistics` paired ratios and their intervals, and when to stop
`analysis`   from samples of one or several launches to verdicts
`words`      the same as a person reads it
"""
