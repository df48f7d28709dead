# SPDX-License-Identifier: Apache-2.0
"""The launchers, one module per program; modules in this folder are found automatically.

A class names its options in an `OptionTable`, states what it is (`Launcher`'s attributes), and
its `launch` returns the words that start the ranks in order. A program whose ranks are started
differently for different MPI libraries has a class for each, all in the module's ``__all__``.
What several programs do alike, whose ranks Cray MPICH renumbers, is `CrayOrder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from nidmap.placement.errors import LaunchError
from nidmap.rankmap.emit.process_mapping import CRAY_MPICH
from nidmap.rankmap.launch import Launcher

if TYPE_CHECKING:
    from nidmap.placement.placement import Placement

__all__ = ["CrayOrder"]


class CrayOrder(Launcher):
    """A launcher for Cray MPICH, which renumbers the ranks: those started are slots.

    The file is named, so that a MPICH_RANK_ORDER of the user's own in the working directory
    is neither read nor touched.
    """

    format = "mpich"
    limit = CRAY_MPICH
    on_nodes = True
    variables: ClassVar[dict[str, str]] = {
        "MPICH_RANK_REORDER_METHOD": "3",
        "MPICH_RANK_REORDER_FILE": "{path}",
    }
    placing_variables = ("MPICH_RANK_REORDER_FILE",)

    def check(self) -> None:
        """Refuse commands with an order of the user's own; 1 is the default one."""
        super().check()
        method = self.env.get("MPICH_RANK_REORDER_METHOD", "").strip()
        if method not in ("", "1"):
            raise LaunchError(f"MPICH_RANK_REORDER_METHOD={method} is already set")

    def rank_nodes(self, laid: Placement) -> list[str]:
        """Return the node of each slot, which is what the launcher calls a rank."""
        nodes: list[str] = laid.names[laid.node_of_slot].tolist()
        return nodes

    def even_ranks(self, order: Placement) -> int:
        """Return ranks per node for ``-N``; the last node may have fewer."""
        counts = order.counts
        per_node = int(counts[0])
        if (counts[:-1] != per_node).any() or counts[-1] > per_node:
            raise LaunchError(f"every node needs the same number of ranks: {order.words()}")
        return per_node
