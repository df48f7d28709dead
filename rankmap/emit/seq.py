"""Sequential file for Open MPI's ``--map-by seq``: one host a line, in rank order.

The text is that of Slurm's host file. Unlike a rankfile it leaves the place
inside the node, and binding, to mpirun. ``--map-by seq:OVERSUBSCRIBE:file=F``
takes it; without OVERSUBSCRIBE, Open MPI 5.0.11 starts nothing, and exits with
0, on nodes with more ranks than cores. It wants the nodes in its allocation or
host file besides.
"""

from __future__ import annotations

from rankmap.emit.slurm import read, write

__all__ = ["read", "write"]
