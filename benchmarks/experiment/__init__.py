# SPDX-License-Identifier: Apache-2.0
"""Slurm's choice against nidmap's, measured on a mini-Cray, with the predictions.

`cases`     what is compared, on which machine, with which options
`cluster`   a mini-Cray's Slurm: other jobs that hold nodes, what it would give a job
`ranks`     one launch: all arms side by side in blocks, then their bytes link by link
`running`   a case and a seed, from the fragmented machine to figures
`summary`   all of them: gains, losers, how good the predictions were
`plots`     the same as pictures
"""
