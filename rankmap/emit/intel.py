"""Machine file for Intel MPI's ``-machinefile F``: ``host:count`` for each run of ranks.

Read in the order of its lines; a host may stand there again and stays one
node (checked on Intel MPI 2021). ``-f F``, which looks alike, ignores the
counts, and inside a batch job the scheduler's placement wins over both unless
``I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=off`` is set.
"""

from __future__ import annotations

from rankmap.emit.hydra import read, write

__all__ = ["read", "write"]
