# SPDX-License-Identifier: Apache-2.0
"""aprun of ALPS (Cray XC and XE under Torque, Moab or Cobalt)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nidmap.placement.errors import LaunchError
from nidmap.placement.names import name_numbers
from nidmap.placement.nodelist import nid_ranges
from nidmap.rankmap.launch import Launch
from nidmap.rankmap.launch.allocation import unclear_counts
from nidmap.rankmap.launch.launchers import CrayOrder
from nidmap.rankmap.launch.options import OptionTable

if TYPE_CHECKING:
    from nidmap.placement.placement import Placement
    from nidmap.placement.support.array_types import Ints

__all__ = ["Aprun"]


class Aprun(CrayOrder):
    """aprun with MPICH_RANK_ORDER.

    ``-L`` gives candidates: ALPS lays the ranks out over them in a node order
    of its own, which only asking it tells.
    """

    samples = ("aprun -n 4 -N 2 -d 2 -cc cpu -j1 -ss -e A=B -S 1 -F exclusive ./app",)
    options = OptionTable(
        ranks="n= pes=",
        per_node="N= pes-per-node=",
        cores="d= depth=",
        list="L= node-list=",
        bind="cc=",
        placing="B batch-args l= node-list-file= R= relaunch=",
        passed="cp= mpmd_env= ss strict sl= sn= S= pes-per-numa-node=",
        letters="adDeEFjLlmnNpPrRStz",
    )
    binder = "aprun"
    asks_order = True
    rank_variables = ("ALPS_APP_PE", "PMI_RANK")

    def counts(self, ranks: int, nodes: int) -> Ints:
        """Return aprun's own counts: ``-N`` ranks per node, with the rest on the last."""
        per_node = self.per_node()
        if per_node is None:
            raise unclear_counts(ranks, nodes)
        if -(-ranks // per_node) > nodes:
            what = f"{ranks} ranks, {per_node} on each node, but the job's node list has {nodes}"
            hint = "it does not list all of this job's compute nodes: --nodes names them"
            raise LaunchError(what, hint)
        return super().counts(ranks, nodes)

    def launch(self, order: Placement, path: str) -> Launch:
        """Return the command with ``-n``, ``-N``, ``-L``, with nodes as ALPS takes them."""
        nids, per_node = _nid_list(order), self.even_ranks(order)
        return self.command([], path, ranks=order.ranks, per_node=per_node, list=nids)


def _nid_list(placement: Placement) -> str:
    """Return the nodes as ``aprun -L`` takes them: ``12-15,40``."""
    if placement.machine is not None:
        nids = placement.machine.nid[placement.rows]
    else:
        nids = name_numbers(placement.names)[1]
    if (nids < 0).any():
        raise LaunchError(f"node {placement.names[int(np.argmin(nids))]} has no NID for aprun -L")
    return nid_ranges(np.sort(nids).tolist())
