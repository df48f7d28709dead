"""aprun of ALPS (Cray XC and XE under Torque, Moab or Cobalt)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import LaunchError
from rankmap.launch import CRAY, ORDER_OF_CRAY, OTHER, Launch, Launcher, even_ranks, launcher
from rankmap.launch.allocation import fill_nodes, unclear_counts
from rankmap.launch.options import OptionTable

if TYPE_CHECKING:
    from placement.support.array_types import Ints
    from rankmap.order import Order
    from rankmap.slots import Slots

__all__ = ["Aprun"]


@launcher(("aprun", CRAY), ("aprun", OTHER))
class Aprun(Launcher):
    """aprun with MPICH_RANK_ORDER.

    ``-L`` gives candidates: ALPS lays the ranks out over them in a node order
    of its own, which only asking it tells.
    """

    options = OptionTable(
        valued="n=pes N=pes-per-node d=depth L=node-list cc cp mpmd_env",
        flags="ss strict",
        refused="B=batch-args l=node-list-file R=relaunch S=pes-per-numa-node sl sn",
        letters="adDeEFjLlmnNpPrRStz",
    )
    form = "mpich"
    binder = "aprun"
    binding_options = ("cc",)
    ranks_option, cores_option, list_option = "pes", "depth", "node-list"
    asks_order = True
    rank_variables = ("ALPS_APP_PE", "PMI_RANK")
    variables = ORDER_OF_CRAY
    loose = ("cc", "none", "-cc none")

    def counts(self, ranks: int, nodes: int) -> Ints:
        """Return aprun's own counts: ``-N`` ranks on each node, the last one taking the rest."""
        per_node = self.step.number("pes-per-node")
        if per_node is None or -(-ranks // per_node) > nodes:
            raise unclear_counts(ranks, nodes)
        return fill_nodes(ranks, np.full(nodes, per_node))

    def launch(self, order: Order, path: str) -> Launch:
        """Return the command with ``-n``, ``-N``, ``-L`` and the reordering variables.

        `order` is on the nodes as ALPS takes them.
        """
        nids, step = _nids(order.on), self.step
        if step.values.get("node-list") not in (None, nids):
            step = step.without("node-list")
        words = []
        numbers = ("-n", "pes", len(order)), ("-N", "pes-per-node", even_ranks(order))
        for flag, name, value in (*numbers, ("-L", "node-list", nids)):
            if name not in step.values:
                words += [flag, str(value)]
        return self.insert(step, words, path)


def _nids(on: Slots) -> str:
    """Return the nodes as ``aprun -L`` takes them: ``12-15,40``."""
    from placement.lists.folding import nid_ranges
    from placement.names.columns import name_numbers

    if on.machine is not None and on.rows is not None:
        nids = on.machine.nid[on.rows]
    else:
        nids = name_numbers(on.names)[1]
    if (nids < 0).any():
        raise LaunchError(f"node {on.names[int(np.argmin(nids))]} has no NID that aprun could take")
    return nid_ranges(np.sort(nids).tolist())
