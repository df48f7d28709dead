"""Does an order of ranks, or a set of nodes, help? Measured side by side in one launch.

Two (or more) communicators of the same job stand beside each other and take
turns, so that whatever else changes on the machine strikes both alike:

`schedule`   blocks in random ABBA order
`arms`       what is compared, and the two controls (A/A, a random order)
`running`    one launch: visits, warm-ups, samples
`skew`       how far apart ranks leave a barrier, by clocks that are compared
`statistics` paired ratios and their intervals
`analysis`   from samples of one or several launches to verdicts
"""
