# SPDX-License-Identifier: Apache-2.0
"""How many bytes each channel of a network carries, under a given routing.

A demand (`Demand`: bytes between nodes) and a routing by its exact name give
the load of every directed channel. Loads are fluid: the bytes that the
routing puts on each channel when the whole demand is sent. One module a kind
of network or routing; this one hands each question to the right one, which
is imported only then.

==================  =========================================================
routing             where
==================  =========================================================
``minimal``         dragonflies, DragonFly+ too: at most one global hop; a group pair's
                    traffic split equally over every link of the pair, then
                    over all shortest paths inside both groups
``single``          everywhere: one path, the next hop depends on (router,
                    destination) only, as route tables need it
``valiant``         dragonflies: a random third group, minimal to and from it
``adaptive``        dragonflies: minimal, and valiant or in a group detours over
                    other routers of it, divided as well as possible; detours cost
``dimension-order`` tori: x first, then y, z; ties go to +
``d-mod-k``         fat trees: up-ports by the destination's index; where the
                    listed cables make no regular tree ``shortest`` instead
==================  =========================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.fabrics import known_fabric
from nidmap.placement.machine import Machine
from nidmap.placement.network.channel_loads import Channels, Loads, Ways, Worst
from nidmap.placement.network.demand import Demand
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.topologies import router_count, wiring_text

__all__ = [
    "SINGLE_PATH",
    "Channels",
    "Demand",
    "Loads",
    "Worst",
    "channels",
    "check_routing",
    "hops",
    "loads",
    "loads_of_each",
    "next_channel",
    "routings",
    "usual_loss",
]

#: Routings of each kind of network, the default first.
ROUTINGS = {
    "dragonfly": ("minimal", "single", "valiant", "adaptive"),
    "dragonfly+": ("minimal", "single", "valiant", "adaptive"),
    "torus": ("dimension-order", "single"),
    "fattree": ("d-mod-k", "single", "shortest"),
    "tree": ("single",),
}

#: How much longer channels take where all bytes are diverted, as a share: likely, least and most
#: (docs/reference/routings.md has the measurements).
LOSS, LEAST_LOSS, MOST_LOSS = 0.24, 0.0, 0.4

#: Bytes are divided until no channel takes longer than this share of what nodes' own links take,
#: or as well as can be: some room is left for figures of links that are not known.
ENOUGH = 0.9

#: Entries of the largest table of next channels.
MOST_NEXT = 1 << 28

#: Routings that have one path for each pair of nodes.
SINGLE_PATH = ("single", "dimension-order", "d-mod-k")

#: The module of each kind of network.
MODULES = {
    "dragonfly": "dragonfly",
    "dragonfly+": "dragonfly",
    "torus": "torus",
    "fattree": "trees",
    "tree": "trees",
}


def routings(machine: Machine) -> tuple[str, ...]:
    """Return the names of the routings that apply to a machine, the default first.

    The default is the one that the machine is known to have: as its site or
    ``-m …,routing=…`` states it, as `nidmap calibrate` measured it, or as its fabric has.
    """
    kind = machine.topology.kind
    if kind not in ROUTINGS:
        raise UsageError(f"no routing for a network of kind {printable(kind)!r}")
    names: tuple[str, ...] = ROUTINGS[kind]
    if MODULES[kind] == "trees":  # which may be irregular
        names = _import_module("trees").routings(machine)
    stated = machine.topology.parameters
    default = stated.get("routing") or next(iter(stated.get("routings", ())), "")
    if not default and known_fabric(machine.topology).adapts:
        default = "adaptive"
    return (default, *(name for name in names if name != default)) if default in names else names


def usual_loss(machine: Machine) -> float:
    """Return the likely relative slowdown of channels if all bytes are diverted."""
    return float(machine.topology.parameters.get("loss", LOSS))


def check_routing(machine: Machine, routing: str) -> str:
    """Return `routing`, or the default for ''."""
    known = routings(machine)
    if routing and routing not in known:
        raise UsageError(
            f"unknown routing {printable(routing)!r} on a {machine.topology.kind}",
            f"choose from {', '.join(known)}",
        )
    return routing or known[0]


def _routing_module(machine: Machine, routing: str) -> ModuleType:
    """Return the module of a routing: that of the machine's kind, or of ``adaptive``."""
    return _import_module(routing if routing == "adaptive" else MODULES[machine.topology.kind])


def _import_module(name: str) -> ModuleType:
    return import_module(f"nidmap.placement.network.{name}")


def channels(machine: Machine, routing: str = "") -> Channels:
    """Return the directed channels that carry load under a routing.

    `routing`: '' is the machine's default.
    """
    routing = check_routing(machine, routing)
    table: Channels = _routing_module(machine, routing).channels(machine)
    return table


def loads(
    machine: Machine,
    demand: Demand,
    routing: str = "",
    loss: float | None = None,
) -> Loads:
    """Return the bytes on every channel when the whole demand is sent.

    `demand`: of this machine. `routing`: '' is the machine's default. `loss`: how much longer
    channels take under ``adaptive`` where all bytes are diverted, as a share; None means as the
    machine states, or as is likely (`usual_loss`).
    """
    return next(loads_of_each(machine, [demand], routing, loss))


def loads_of_each(
    machine: Machine, demands: Sequence[Demand], routing: str = "", loss: float | None = None
) -> Iterator[Loads]:
    """Yield the `loads` of each of several demands, such as the steps of an exchange.

    Where routers adapt, demands that have the same routers are divided faster together.
    """
    routing = check_routing(machine, routing)
    for demand in demands:
        demand.refuse_other(machine)
    module = _routing_module(machine, routing)
    both = module.channels(machine)
    notes, wiring = module.notes(machine, routing), wiring_text(machine)
    ways: Iterator[Ways | None] = iter([None] * len(demands))
    if routing == "adaptive":  # how bytes are divided is a matter of this demand
        loss = usual_loss(machine) if loss is None else loss
        own_s = np.array([demand.own_s(machine) for demand in demands])
        ways, notes = module.divide_each(machine, demands, ENOUGH * own_s), (*notes, "")
    ports = getattr(module, "ports", None)
    for demand, divided in zip(demands, ways, strict=True):
        injection, ejection = ports(machine, demand) if ports else (demand.out, demand.into)
        if divided is not None:
            used = np.flatnonzero(divided.minimal + divided.best)
            divided = Ways(divided.minimal[used], divided.best[used], divided.detoured)
            carried = divided.best
        else:
            load = module.loads(machine, demand, routing)
            used = np.flatnonzero(load)
            carried = load[used]
        sent = Loads(
            channels=both,
            used=used,
            carried=carried,
            injection=injection,
            ejection=ejection,
            routing=routing,
            wiring=wiring,
            notes=notes,
            ways=divided,
        )
        yield sent if loss is None else sent.losing(loss)


def hops(machine: Machine, source: Ints, target: Ints, routing: str = "") -> Floats:
    """Return the expected number of channels of each class between routers.

    `source`, `target` (m,): router indices. `routing`: '' is the machine's default. Returns (m,
    classes): one column per class, as in `Channels.kinds`.
    """
    routing = check_routing(machine, routing)
    expected: Floats = _routing_module(machine, routing).hops(machine, source, target, routing)
    return expected


def next_channel(
    machine: Machine, routing: str = "single", nodes: Ints | None = None
) -> NDArray[np.int32]:
    """Return the channel by which a router forwards to a node.

    `routing`: one of `SINGLE_PATH` that applies to the machine. `nodes` (k,): rows of the nodes
    that are destinations; None means all. Returns (routers, nodes): row of `channels` ``(machine,
    routing)``; -1 where the node is attached to the router. A node with several NICs is reached
    by the switch of its first one, or by any that lies on the way.
    """
    routing = check_routing(machine, routing)
    if routing not in SINGLE_PATH:
        raise UsageError(f"routing {routing} has several paths", "use single")
    goals = np.arange(len(machine)) if nodes is None else nodes
    routers = router_count(machine)
    if routers * len(goals) > MOST_NEXT:
        raise UsageError(
            f"a table of {routers} x {len(goals)} next hops is too large",
            f"at most {MOST_NEXT} entries are possible",
        )
    table: Ints = _routing_module(machine, routing).next_channel(machine, routing, goals)
    for router in machine.router[goals].T:
        there = np.flatnonzero(router >= 0)
        table[router[there], there] = -1
    return table.astype(np.int32)
