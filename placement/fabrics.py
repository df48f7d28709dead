# SPDX-License-Identifier: Apache-2.0
"""Known properties of network hardware, one record per fabric.

A network's ``kind`` is its shape; its fabric is what carries it: how fast a message, a hop
and a link are, what a node injects, whether routers send packets around full links, whether
a message keeps to one cable of a bundle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nidmap.placement.machine import Topology


class Fabric(NamedTuple):
    """A kind of network hardware."""

    title: str  # as shown in messages
    mpi_us: float  # one short message between neighbours, us, as its sites' configurations assume
    hop_ns: float  # one more switch on the way, ns, likewise
    # GB/s per direction of a link of each class, unless stated otherwise
    bandwidth: Mapping[str, float] = {}
    interface: str = ""  # the interface with this injection rate
    adapts: bool = False  # True where routers are known to send packets around full links
    # True if a message keeps to one cable of a bundle, so that the slowest cable delays the others;
    # False if routers choose for each packet and use the capacity of all cables
    by_cable: bool = False
    ports: int = 0  # ports to other groups that a router has; 0 where that is free
    # Likely share of injection bandwidth that exchanges between many nodes reach
    reach: float = 1.0
    # GB/s that one rank sends at least and at most in all-to-alls, as was measured; else empty
    rank_gbs: tuple[float, ...] = ()
    payload: float = 1.0  # the least share of links between routers that is payload, if unstated

    @property
    def injection(self) -> float:
        """GB/s per direction between a node and its router; 0 if unknown."""
        return self.bandwidth.get("injection", 0.0)


#: Aries: 3 lanes of 14 Gb/s (green; black is three links) and of 12.5 Gb/s (blue).
_ARIES = {"injection": 10.0, "green": 5.25, "black": 15.75, "blue": 4.6875}
#: Gemini; `-cable` where a link leaves its blade (y) or its cage (z).
_GEMINI = {
    "injection": 10.4,
    **{"x": 9.375, "y": 9.375, "y-cable": 4.6875, "z": 15.0, "z-cable": 9.375},
}
#: 200 Gb/s per NIC and per link.
_SLINGSHOT = {"injection": 25.0, "local": 25.0, "global": 25.0}
#: HDR of 200 Gb/s; a fat tree's links are taken to be EDR, of 100 Gb/s.
_INFINIBAND = {"injection": 25.0, "local": 25.0, "global": 25.0, "up": 12.5}

#: All fabrics by name. Aries has 10 blue tiles a router, and a PCIe 3 x16 host interface. One rank
#: a node had 2 GB/s in all-to-alls on Shaheen II (Aseeri et al.), 2.3 to 2.5 on Piz Daint and 4.1
#: on Cori (De Sensi et al., SC19). Of Slingshot's interfaces exchanges have 0.76 (Perlmutter;
#: Groves) or 0.55 to 0.64 (LUMI-G; De Sensi et al., SC24), single messages nearly all. Of links,
#: 0.64 is payload on Aries (ISx paper, 4.2); full ones of Slingshot carry 0.9 (De Sensi, SC20).
FABRICS = {
    "aries": Fabric(
        "Aries",
        1.3,
        100.0,
        _ARIES,
        "Aries",
        adapts=True,
        ports=10,
        rank_gbs=(2.0, 4.5),
        payload=0.64,
    ),
    "gemini": Fabric("Gemini", 1.5, 105.0, _GEMINI, "Gemini"),
    "slingshot": Fabric(
        "Slingshot",
        1.87,
        350.0,
        _SLINGSHOT,
        "Slingshot",
        adapts=True,
        ports=16,
        reach=0.8,
        payload=0.9,
    ),
    "infiniband": Fabric(
        "InfiniBand",
        1.2,
        100.0,
        _INFINIBAND,
        "InfiniBand of 200 Gb/s",
        by_cable=True,
    ),
}
# Of Ethernet nothing is measured here: its latencies are taken to be InfiniBand's.
FABRICS["ethernet"] = FABRICS["infiniband"]._replace(bandwidth={}, interface="")

#: The fabric assumed for a synthetic network's kind.
TAKEN_FOR = {"dragonfly": "aries", "torus": "gemini"}


def known_fabric(topology: Topology) -> Fabric:
    """Return a network's fabric; an unknown one if the network names none."""
    return FABRICS.get(topology.fabric, Fabric("", 0.0, 0.0))


def fabric_of(topology: Topology) -> Fabric:
    """Return a network's fabric, or a default if the network names none."""
    if topology.fabric in FABRICS:
        return FABRICS[topology.fabric]
    if topology.kind == "dragonfly" and topology.router_levels == 2:
        return FABRICS["slingshot"]
    return FABRICS[TAKEN_FOR.get(topology.kind, "infiniband")]


# What a file of blocks does not say of the accelerators in them.
#: GB/s a direction of a GPU to others of its block (NVLink 5), and to the network (400 Gb/s).
GPU_INSIDE, GPU_OUTSIDE = 900.0, 50.0
#: GPUs of a node.
GPUS = 4
