# SPDX-License-Identifier: Apache-2.0
"""``flux run`` of the Flux framework: ``--taskmap=hostfile:FILE``.

Tasks go to the hosts in the order of the file, one entry a task. Only the
nodes that Flux itself picks can be ordered: the job must fill the instance it
runs in, whose hosts Flux is asked for. Read in Flux's documentation; it could
not be run here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nidmap.placement.errors import LaunchError
from nidmap.rankmap.emit.process_mapping import FLUX
from nidmap.rankmap.launch import CRAY, Launch, Launcher
from nidmap.rankmap.launch.allocation import Allocation, flux_instance
from nidmap.rankmap.launch.options import OptionTable

if TYPE_CHECKING:
    from nidmap.placement.placement import Placement
    from nidmap.placement.support.array_types import Ints

__all__ = ["CrayFlux", "Flux"]


class Flux(Launcher):
    """flux run with a host file as its task map."""

    samples = ("flux run -n 4 -N 2 -o cpu-affinity=off --env=A=B -x ./app",)
    options = OptionTable(
        ranks="ntasks= n=",
        nodes="nodes= N=",
        per_node="tasks-per-node=",
        cores="cores-per-task= c=",
        bind="setopt= o=",
        placing="taskmap= tasks-per-core= gpus-per-node= requires= cores= dry-run",
        passed="exclusive label-io unbuffered",
        letters="nNcgqBtoS",
    )
    first = 2
    format = "slurm"
    limit = FLUX
    on_nodes = keeps_list = True
    rank_variables = ("FLUX_TASK_RANK",)

    def check(self) -> None:
        """Refuse commands other than ``flux run``."""
        if self.parsed.argv[1:2] != ("run",):
            raise LaunchError("of Flux's commands only flux run can be given an order")
        super().check()

    def find_allocation(self) -> Allocation | None:
        """Return the hosts of the surrounding Flux instance, as Flux reports them."""
        return flux_instance(self.env, self.parsed.argv[0])

    def counts(self, ranks: int, nodes: int) -> Ints:
        """Return even counts over all nodes, which is what Flux does if ``-N`` covers all."""
        if self.parsed.number("nodes") not in (None, nodes) or ranks % nodes:
            raise LaunchError(
                f"Flux itself chooses how {ranks} ranks go on {nodes} nodes",
                "use all nodes of the instance, with the same number of ranks on each",
            )
        return np.full(nodes, ranks // nodes)

    def launch(self, order: Placement, path: str) -> Launch:
        """Return the command with ``--taskmap`` and the counts it needs."""
        job = self.allocation
        if order.ppn is None or (job and len(job.nodes) != len(order.names)):
            raise LaunchError(
                "flux run can be ordered only on all its nodes, with equal numbers of ranks"
            )
        ranks = {} if self.per_node() else {"ranks": order.ranks}
        return self.command([f"--taskmap=hostfile:{path}"], path, **ranks, nodes=len(order.names))


class CrayFlux(Flux):
    """flux run of Cray MPICH programs, which accept only block task maps."""

    samples = ("flux run -n 4 -N 2 --label-io ./app",)
    library = CRAY

    def launch(self, order: Placement, path: str) -> Launch:
        """Return the command if consecutive ranks are on consecutive nodes; refuse others."""
        if (np.diff(order.node_of_rank) < 0).any():
            raise LaunchError(
                "Cray MPICH hangs in MPI_Init where Flux's task map is not block"
                " (flux-coral2 issue 125)",
                "--mpi other, if the program has another MPI",
            )
        return super().launch(order, path)
