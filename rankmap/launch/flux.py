"""``flux run`` of the Flux framework: ``--taskmap=hostfile:FILE``.

Tasks go to the hosts in the order of the file, one entry a task. Only the
nodes that Flux itself picks can be ordered: the job must fill the instance it
runs in, whose hosts Flux is asked for. Read in Flux's documentation; it could
not be run here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import LaunchError
from rankmap.emit.process_mapping import FLUX
from rankmap.emit.process_mapping import Mapping as ProcessMapping
from rankmap.launch import CRAY, OTHER, Launch, Launcher, launcher
from rankmap.launch.allocation import Allocation, flux_instance
from rankmap.launch.options import OptionTable

if TYPE_CHECKING:
    from placement.support.array_types import Ints
    from rankmap.order import Order

__all__ = ["CrayFlux", "Flux"]


@launcher(("flux", OTHER))
class Flux(Launcher):
    """flux run with a host file as its task map."""

    options = OptionTable(
        valued="n=ntasks ntasks N=nodes nodes c=cores-per-task cores-per-task tasks-per-node"
        " o=setopt setopt",
        flags="exclusive label-io unbuffered",
        refused="taskmap tasks-per-core gpus-per-node requires nslots cores cc bcc dry-run",
        letters="nNcgqBtoS",
    )
    first = 2
    form = "slurm"
    ranks_option, cores_option = "ntasks", "cores-per-task"
    per_node_options = ("tasks-per-node",)
    keeps_list = True
    rank_variables = ("FLUX_TASK_RANK",)
    loose = ("setopt", "cpu-affinity=off", "-o cpu-affinity=off")

    def check(self) -> None:
        """Refuse other commands than ``flux run``."""
        if self.step.argv[1:2] != ("run",):
            raise LaunchError("only flux run starts ranks whose order can be chosen")
        super().check()

    def find_allocation(self) -> Allocation | None:
        """Return the hosts of the Flux instance that the command runs in, as it says them."""
        return flux_instance(self.env, self.step.argv[0])

    def counts(self, ranks: int, nodes: int) -> Ints:
        """Return even counts over all nodes: Flux's own where ``-N`` is all of them."""
        if self.step.number("nodes") not in (None, nodes) or ranks % nodes:
            raise LaunchError(
                f"which of {nodes} nodes Flux gives {ranks} ranks is its own choice",
                "start on all nodes of the instance, as many on each",
            )
        return np.full(nodes, ranks // nodes)

    def mapping(self) -> ProcessMapping:
        """Return that of Flux's PMI-1."""
        return FLUX

    def launch(self, order: Order, path: str) -> Launch:
        """Return the command with ``--taskmap`` and the numbers it needs."""
        on, step, job = order.on, self.step, self.allocation
        if on.ppn is None or (job and len(job.nodes) != len(on.names)):
            raise LaunchError("Flux can only be told orders on all its nodes, as many on each")
        words = [f"--taskmap=hostfile:{path}"]
        if "tasks-per-node" not in step.values and "ntasks" not in step.values:
            words.append(f"--ntasks={len(order)}")
        if "nodes" not in step.values:
            words.append(f"--nodes={len(on.names)}")
        return self.insert(step, words, path)


@launcher(("flux", CRAY))
class CrayFlux(Flux):
    """flux run of programs of Cray MPICH, which take block task maps alone."""

    def launch(self, order: Order, path: str) -> Launch:
        """Return the command; only where ranks in a row sit on nodes in a row."""
        if (np.diff(order.node) < 0).any():
            raise LaunchError(
                "Cray MPICH hangs in MPI_Init where Flux's task map is not block"
                " (flux-coral2 issue 125)",
                "--mpi other, if the program has another MPI",
            )
        return super().launch(order, path)
