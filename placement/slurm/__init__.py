# SPDX-License-Identifier: Apache-2.0
"""Queries through Slurm's command line: idle nodes, running jobs, expected starts.

Every question is one command without a shell, in a clean environment and with
a few seconds to answer (`nidmap.placement.slurm.command`); what it prints is parsed
with suspicion. A Slurm that is missing, down, slow or talks nonsense is a
`LaunchError` with a hint.
"""
