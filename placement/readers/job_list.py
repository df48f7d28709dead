# SPDX-License-Identifier: Apache-2.0
"""``squeue``, ``sacct``, ``scontrol show job``, ``qstat -f``: which nodes jobs have.

They say which nodes are taken, not which are free: a node that no job has may
be down. So a job list adds to what a machine or a dump says of states.
"""

from __future__ import annotations

import re

from nidmap.placement.names.hostlist import expand
from nidmap.placement.names.pasted import pieces
from nidmap.placement.readers import count_lines, dump_format, split_lines
from nidmap.placement.readers.node_states import StatedNode, states_dump
from nidmap.placement.records import Dump

#: States in which a job holds its nodes, short and long; '' if a list has none.
BUSY = {"", "R", "RUNNING", "CG", "COMPLETING", "CF", "CONFIGURING", "S", "SUSPENDED"}
BUSY |= {"ST", "STOPPED", "RS", "RESIZING", "SI", "SIGNALING", "SO", "STAGE_OUT"}
BUSY |= {"E", "B", "T"}  # PBS: exiting, its array runs, being moved; Q, H, W, F, C, X have none

_NODES = {"NODELIST", "NODELIST(REASON)"}
_JOB = {"JOBID", "USER", "NAME", "JOBNAME", "ACCOUNT", "ST"}
_RECORD = re.compile(r"[ \t]*(?:JobId|StepId)=|Job Id: ")
_QSTAT = re.compile(r'\{\s*(?:"\w+"\s*:\s*[^{}\[\]]*,\s*)?"Jobs"\s*:\s*\{')


def sniff(head: str) -> bool:
    r"""Tell whether the first lines look like a list of jobs."""
    if _QSTAT.match(head.lstrip()):
        return True
    lines = [line for line in head.split("\n", 40)[:40] if line.strip()]
    for line in lines[:2]:  # -l prints the date first
        words = set(re.split(r"[\s|]+", line.upper()))
        if words >= {"REASON", "TIMESTAMP"}:
            return False  # sinfo -R
        if _RECORD.match(line) or (words & _NODES and words & _JOB):
            return True
    return False


@dump_format("job-list", "states", sniff)
def read(text: str, source: str) -> Dump:
    r"""Read a list of jobs.

    The nodes of the jobs that run, as ``allocated``; ``parameters["jobs"]`` is True.
    """
    listed, _ = pieces(text, source)
    busy = [piece for piece in listed if _is_busy(piece.state.upper().partition("+")[0])]
    nodes = [
        StatedNode(name, "allocated", line=piece.line)
        for piece in busy
        for name in expand([piece], source)
    ]
    counts = count_lines(split_lines(text, source))
    return states_dump(source, counts, nodes, jobs=True, empty="no job has nodes")


def _is_busy(state: str) -> bool:
    """Tell whether a job in this state holds its nodes; the word may be truncated."""
    return state in BUSY or (len(state) >= 5 and any(word.startswith(state) for word in BUSY))
