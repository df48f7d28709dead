"""Does an order of ranks help the user's own program? Launched again and again, arms in turn.

`arms`     what is compared: the command as it is, and with its ranks in order
`timer`    the figure of a launch: the program's own, or wall time
`turns`    which arm is launched when
`running`  the launches, one after another, and what is kept of them
`commands` ``nidmap ab``

Statistics, verdicts and words are those of ``nidmap bench ab`` (`workloads.ab`).
"""
