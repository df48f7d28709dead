# SPDX-License-Identifier: Apache-2.0
"""Does a rank order help the user's own program? Repeated launches, alternating between arms.

`arms`       what is compared, and in which turns: the command as it is, and with its ranks in order
`timer`      the figure of a launch: the program's own, or wall time
`command`    ``nidmap ab``: the launches, one after another, and what is kept of them
`statistics` paired ratios and their intervals, and when to stop
`analysis`   from samples to verdicts, as JSON and as a person reads them
"""
