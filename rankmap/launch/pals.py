"""mpiexec of HPE's PALS (PBS on Aurora, Polaris and their like) with Cray MPICH.

PALS takes the nodes as the job lists them, unless told otherwise, and passes
the environment on; Cray MPICH renumbers the ranks from its order file. That
list is asked from it, not assumed. What is known of its options is from its
published help; it could not be run here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from placement.errors import LaunchError
from rankmap.launch import CRAY, Launch, launcher
from rankmap.launch.cray import even_ranks, refuse_own_order, reordering
from rankmap.launch.mpiexec import Mpiexec
from rankmap.launch.options import OptionTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rankmap.launch.allocation import Allocation
    from rankmap.launch.options import Parsed
    from rankmap.order import Order

__all__ = ["Pals"]


@launcher(("mpiexec", CRAY))
class Pals(Mpiexec):
    """PALS's mpiexec with MPICH_RANK_ORDER."""

    form = "mpich"
    binder = "pals"
    binding_options = ("cpu-bind", "gpu-bind")
    options = OptionTable(
        valued="np n=np ppn hosts hostfile depth d=depth cpu-bind gpu-bind env genv wdir",
        flags="label l=label envall envnone",
        refused="configfile include-tasks exclude-tasks soft arch",
    )
    ranks_option, cores_option = "np", "depth"
    asks_order = True
    host_options = ("hosts",)
    file_options = ("hostfile",)
    per_node_options = ("ppn",)
    rank_variables = ("PALS_RANKID", "PMI_RANK")

    def read(self, argv: Sequence[str], env: Mapping[str, str]) -> Parsed:
        """Return what the command says; an order of the user's own is left alone."""
        refuse_own_order(env)
        return super().read(argv, env)

    def unbound(self, step: Parsed, env: Mapping[str, str]) -> str:
        """Return ``--cpu-bind none`` where it is given."""
        return "--cpu-bind none" if step.values.get("cpu-bind") == "none" else ""

    def known_options(self, options: tuple[str, ...], step: Parsed) -> tuple[str, ...]:
        """Leave ``--gpu-bind`` out where this PALS does not know it."""
        from rankmap.launch.queries import run_query

        try:
            knows = "--gpu-bind" in run_query([step.argv[0], "--help"], os.environ)
        except LaunchError:
            knows = False
        return options if knows else options[:1]

    def launch(
        self, step: Parsed, order: Order, path: str, allocation: Allocation | None = None
    ) -> Launch:
        """Return the command with ``-n``, ``--ppn`` and the reordering variables."""
        per_node = even_ranks(order)
        words = [] if "np" in step.values else ["-n", str(len(order))]
        if self.per_node(step) != per_node:
            step = step.without("ppn")
            words += ["--ppn", str(per_node)]
        if allocation is None or len(allocation.nodes) != len(order.on.counts):
            step = step.without("hosts", "hostfile")
            words += ["--hosts", ",".join(order.on.names.tolist())]
        return self.insert(step, words, reordering(path))
