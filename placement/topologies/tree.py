"""Trees: switches above switches, each with one parent.

A tree is a fat tree with one parent everywhere, and nodes that part at level
k are `dist[k-1]` apart. Uneven trees (a topology.conf) bring their own links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.topologies import fattree

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.support.array_types import Strs

__all__ = ["links", "router_coords", "router_names", "wiring_text"]

links = fattree.links
router_coords = fattree.router_coords


def wiring_text(machine: Machine) -> str:
    """Say how switches are joined."""
    return "every switch to the one above"


def router_names(machine: Machine) -> Strs:
    """Return ``level1-0`` … for the innermost switches, then each level above."""
    whole = fattree.shape(machine.topology)
    return np.array(
        [
            f"level{level}-{i}"
            for level in range(1, whole.height + 1)
            for i in range(whole.switches(level))
        ],
        dtype=np.str_,
    )
