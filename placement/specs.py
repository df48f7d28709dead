# SPDX-License-Identifier: Apache-2.0
"""Synthetic machines from one line: ``dragonfly:groups=9,chassis=6,blades=16,nodes=4``.

In a synthetic machine NID = index and the names are nid00000, nid00001, …
(more digits from 100,000 nodes on). Forms, sizes first, bandwidths in GB/s
a direction:

``dragonfly:groups=G,chassis=C,blades=B,nodes=N``
    Aries; row-major in (group, chassis, blade, node), node fastest. Options:
    ``wiring`` (aligned, consecutive, same-chassis), ``global`` (links per group
    pair), ``injection``, ``green``, ``black`` (the whole bundle of a router
    pair), ``blue``.
``slingshot:groups=G,switches=S,nodes=N`` (or ``dragonfly:`` with ``switches``)
    N nodes have their first NIC on each switch; row-major in (group, switch,
    node). Options: ``nics`` (a node), ``wiring``, ``global``, ``injection``
    (a NIC), ``bw`` (all links between switches), ``local-bw``, ``global-bw``.
``torus:XxYxZ``
    One to four axes, x fastest, nodes of a router together. Options:
    ``nodes`` (a router), ``bw`` (all axes), ``x``, ``y``, ``z``, ``w``,
    ``injection``.
``fattree:leaf=N,leaves=L,spines=S``
    Leaf by leaf; every leaf is joined to every spine. Options: ``links``
    (a pair), ``bw``, ``injection`` (a node's own link). Deeper:
    ``fattree:down=18x16x4,up=1x9x4[,parallel=1x1x2]`` (children and parents of each
    level, the nodes' first, as in XGFT).
``dragonfly+:groups=G,leaves=L,spines=S,nodes=N``
    N nodes per leaf router; row-major in (group, leaf router, node). In a group every leaf
    is joined to every spine. Options: ``links`` (from leaf to spine), ``global`` (links
    a group pair, as many as there are spines), ``bw``, ``local-bw`` (leaf to spine),
    ``global-bw``, ``injection``.
``tree:4x16x6``
    4 nodes per level-1 switch, 16 of these a level-2 switch, 6 of those a root;
    first level fastest. Options: ``dist=1:2:3`` (distance of nodes that part
    at each level), ``bw`` (one figure, or one per level: ``bw=10:20:40``),
    ``injection`` (a node's own link).
``minicray:dragonfly``, ``minicray:torus``, ``minicray:fattree``
    Small ones of these, with the bandwidths of Aries, Gemini and InfiniBand
    QDR, that one computer can hold; options as of the kind.

Where ``injection`` is not given it is assumed (`placement/fabrics.py`; fat trees: ``bw``); ``inf``
makes any link unlimited. All kinds take ``header``: the bytes that links carry besides those of a
recorded message, and the figures of any machine: ``latency``, ``routing`` …
(`nidmap.placement.options`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nidmap.placement import geometry, topologies
from nidmap.placement.errors import UsageError
from nidmap.placement.fabrics import FABRICS, TAKEN_FOR, fabric_of
from nidmap.placement.machine import Machine, Topology
from nidmap.placement.names import nid_names
from nidmap.placement.options import FIGURES, Options, lay_figures, split_figures
from nidmap.placement.support.array_types import Ints32
from nidmap.placement.topologies import dragonfly_plus, fattree
from nidmap.placement.topologies.dragonfly import DEFAULT, RULES, global_links
from nidmap.placement.topologies.torus import AXES

#: More nodes than this are refused (the largest machines have about 160,000).
MAX_NODES = 4_194_304

#: Parallel links between two groups at most.
MAX_PARALLEL = 1_000_000

#: Cables between two switches at most: more than any switch has ports.
MAX_CABLES = 2048

#: Small machines with the proportions of large ones; two chassis and blades keep every class.
MINICRAYS = {
    "dragonfly": "groups=3,chassis=2,blades=2,nodes=2,wiring=same-chassis,global=2,injection=10",
    "torus": "3x3x2,x=9.375,y=4.6875,z=9.375,injection=10.4",
    "fattree": "leaf=8,leaves=2,spines=2,bw=3.5",
}

#: Bytes that a mini-Cray's links carry besides those of a message: a segment's headers (Ethernet,
#: IPv4, TCP with time stamps), and half of an acknowledgement's: every second one is (RFC 1122).
MINICRAY_HEADER = 99


def is_spec(text: str) -> bool:
    """Tell whether `text` begins with the name of a synthetic kind and a colon."""
    return text.partition(":")[0] in KINDS and ":" in text


def parse_spec(text: str) -> Machine:
    """Build the synthetic machine that `text` describes.

    Every node compute and up; the links are made by rule when asked for.
    """
    text, figures = split_figures(text.strip(), mixed=True)
    kind, colon, _ = text.partition(":")
    if kind not in KINDS or not colon:
        raise UsageError(f"unknown synthetic machine {kind!r}", f"choose from {', '.join(KINDS)}")
    return lay_figures(KINDS[kind](Options(text, sizes=kind in SIZED)), figures)


def _refuse_others(options: Options, known: str) -> None:
    """Refuse keys that neither this kind (`known`) nor every kind takes."""
    options.only(*known.split(), "header", *FIGURES)


def _links_of(fabric: str) -> dict[str, float]:
    """Return GB/s per direction of links between routers if a spec states none."""
    figures = FABRICS[fabric].bandwidth
    return {kind: gbs for kind, gbs in figures.items() if kind != "injection"}


def _make_dragonfly(options: Options) -> Machine:
    if "switches" in options.given:
        return _make_slingshot(options)
    _refuse_others(
        options, "groups chassis blades nodes wiring global injection green black blue switches"
    )
    topology = Topology(
        kind="dragonfly",
        levels=("group", "chassis", "blade", "node"),
        extents=tuple(options.whole(k) for k in ("groups", "chassis", "blades", "nodes")),
        bandwidth=_links_of("aries") | options.speeds("injection", "green", "black", "blue"),
    )
    return _fill_machine(options, _set_wiring(options, topology))


def _make_slingshot(options: Options) -> Machine:
    _refuse_others(
        options, "groups switches nodes nics wiring global injection bw local-bw global-bw"
    )
    gbs = options.speed("bw", _links_of("slingshot")["global"])
    by_kind = {kind: options.speed(f"{kind}-bw", gbs) for kind in ("local", "global")}
    nics = options.whole("nics", 1, most=64)
    topology = Topology(
        kind="dragonfly",
        levels=("group", "switch", "node"),
        extents=tuple(options.whole(k) for k in ("groups", "switches", "nodes")),
        fabric="slingshot",
        bandwidth=options.speeds("injection") | by_kind,
        parameters={"nics": nics},
    )
    return _fill_machine(options, _set_wiring(options, topology), nics=nics)


def _set_wiring(options: Options, topology: Topology) -> Topology:
    """Set wiring and links per group pair, refusing what the wiring rule cannot build."""
    rule = options.choice("wiring", RULES, DEFAULT)
    parameters = dict(topology.parameters)
    if "global" in options.given:
        parameters["global"] = options.whole("global", most=MAX_PARALLEL)
    try:
        topology = replace(topology, wiring=rule, parameters=parameters)
        parameters["global"] = global_links(topology, topology.extents[0])
    except UsageError as error:
        raise options.wrong(error.message, error.hint) from None
    return replace(topology, parameters=parameters)


def _make_torus(options: Options) -> Machine:
    extents = options.dims(options.sizes, "the torus's extents", len(AXES))
    axes = AXES[: len(extents)]
    _refuse_others(options, f"nodes bw {' '.join(axes)} injection")
    gbs = options.speed("bw", _links_of("gemini")["y-cable"])  # its slowest
    topology = Topology(
        kind="torus",
        levels=(*axes, "node"),
        extents=(*extents, options.whole("nodes", 1)),
        bandwidth=options.speeds("injection") | {a: options.speed(a, gbs) for a in axes},
    )
    return _fill_machine(options, topology)


def _make_fattree(options: Options) -> Machine:
    if "down" in options.given or "up" in options.given:
        _refuse_others(options, "down up parallel bw injection")
        down, up = (options.dims(options.given.get(key, ""), key, 8) for key in ("down", "up"))
        ones = "x".join("1" * len(down))
        parallel = options.dims(options.given.get("parallel", ones), "parallel", 8)
        if not len(down) == len(up) == len(parallel) or len(down) < 2:
            raise options.wrong(
                f"down has {len(down)} levels, up {len(up)}, parallel {len(parallel)}",
                "each needs the same number of levels, at least 2",
            )
    else:
        _refuse_others(options, "leaf leaves spines links bw injection down up")
        down = (options.whole("leaf"), options.whole("leaves"))
        up = (1, options.whole("spines"))
        parallel = (1, options.whole("links", 1, most=MAX_CABLES))
    gbs = options.speed("bw", _links_of("infiniband")["up"])
    topology = Topology(
        kind="fattree",
        levels=(*(f"level{n}" for n in range(len(down) - 1, 1, -1)), "leaf", "node"),
        extents=down[::-1],
        bandwidth={f"up{n}": gbs for n in range(len(down))}
        | {"up0": options.speed("injection", gbs)},
        parameters={"spines": up[-1], "up": up, "parallel": parallel},
    )
    tree = fattree.shape(topology)
    if tree.total > MAX_NODES or max(parallel) > MAX_CABLES or up[0] > 64:
        limit = f"at most {MAX_NODES} are possible"
        raise options.wrong(f"{tree.total} switches are too many", limit)
    return _fill_machine(options, topology, nics=up[0])


def _dragonfly_plus(options: Options) -> Machine:
    _refuse_others(
        options, "groups leaves spines nodes links global bw local-bw global-bw injection"
    )
    groups, leaves, spines = (options.whole(key) for key in ("groups", "leaves", "spines"))
    gbs = options.speed("bw", _links_of("infiniband")["global"])
    topology = dragonfly_plus.topology_of(
        (groups, leaves, options.whole("nodes")),
        spines,
        options.whole("global", spines, most=MAX_CABLES),
        options.whole("links", 1, most=MAX_CABLES),
        options.speeds("injection")
        | {kind: options.speed(f"{kind}-bw", gbs) for kind in ("local", "global")},
    )
    if groups * (leaves + spines) > MAX_NODES:
        raise options.wrong("that is too large", f"at most {MAX_NODES} routers are possible")
    return _fill_machine(options, topology)


def _make_tree(options: Options) -> Machine:
    _refuse_others(options, "dist bw injection")
    down = options.dims(options.sizes, "the tree's levels", 12)
    bandwidth = options.figures("bw", "bandwidth in GB/s above 0", math.ulp(0.0))
    if len(bandwidth) not in (0, 1, len(down)):
        hint = f"one, or one per level: {len(down)}"
        raise options.wrong(f"bw has {len(bandwidth)} figures", hint)
    per_level = bandwidth * len(down) if len(bandwidth) == 1 else bandwidth
    injection = {"up0": options.speed("injection", 0.0)} if "injection" in options.given else {}
    extents = down[::-1] if len(down) > 1 else (1, *down)
    topology = Topology(
        kind="tree",
        levels=(*(f"level{n}" for n in range(len(extents) - 1, 0, -1)), "node"),
        extents=extents,
        bandwidth={f"up{n}": figure for n, figure in enumerate(per_level)} | injection,
        parameters={"dist": _level_distances(options, len(down)), "up": (1,) * len(down)},
    )
    return _fill_machine(options, topology)


def _level_distances(options: Options, height: int) -> tuple[float, ...]:
    """Return the distance between nodes that diverge at each level, nearest first."""
    figures = options.figures("dist", "distance of 0 or more", 0.0)
    distances = [int(value) if value == int(value) else value for value in figures]
    if "dist" not in options.given:
        return tuple(range(1, height + 1))
    if len(distances) != height:
        raise options.wrong(f"dist has {len(distances)} distances", f"the tree has {height} levels")
    if distances != sorted(distances):
        raise options.wrong("dist must not decrease from one level to the next")
    return tuple(distances)


def _with_injection(topology: Topology) -> tuple[Topology, tuple[str, ...]]:
    """Return a topology with the given injection bandwidth, and the assumption made."""
    carried = topology.fabric or topology.kind in TAKEN_FOR
    if not carried or "injection" in topology.bandwidth:
        return topology, ()
    figure, as_in = fabric_of(topology).injection, fabric_of(topology).interface
    note = f"nodes inject {figure:g} GB/s as on {as_in}: assumed (injection= states it, inf none)"
    return replace(topology, bandwidth={"injection": figure, **topology.bandwidth}), (note,)


def _fill_machine(options: Options, topology: Topology, nics: int = 1) -> Machine:
    """Return the machine with every position of the topology occupied."""
    count = math.prod(topology.extents)
    if count > MAX_NODES:
        raise options.wrong(f"{count} nodes are too many", f"at most {MAX_NODES} are possible")
    if "header" in options.given:
        parameters = {**topology.parameters, "header": options.whole("header")}
        topology = replace(topology, parameters=parameters)
    topology, notes = _with_injection(topology)
    index = np.arange(count, dtype=np.int64)
    coords = _all_coords(topology)
    zero, empty = np.zeros(count, dtype=np.int64), np.zeros(count, dtype="U1")
    return Machine(
        name=options.text,
        topology=topology,
        nid=index,
        names=nid_names(index, width=max(5, len(str(max(0, count - 1))))),
        cname=empty,
        coords=coords,
        role=np.full(count, "compute"),
        state=np.full(count, "up"),
        mode=empty,
        sockets=zero,
        cores=zero,
        memory_mb=zero,
        nics=np.full(count, nics),
        gpus=zero,
        features=empty,
        planned=np.zeros(count, dtype=np.bool_),
        router=geometry.number_positions(topology, coords).router,
        router_names=np.empty(0, dtype=np.str_),
        sources=(options.text,),
        notes=notes,
    )


def _all_coords(topology: Topology) -> Ints32:
    """Return coordinates: the node fastest, then the routers in the kind's own order."""
    if topology.kind != "torus":
        return topologies.box_coords(topology.extents)
    routers = topologies.box_coords(topology.extents[:-1], first_fastest=True)
    node = np.tile(np.arange(topology.extents[-1], dtype=np.int32), len(routers))
    return np.column_stack([np.repeat(routers, topology.extents[-1], axis=0), node])


def _make_minicray(options: Options) -> Machine:
    """Return a small predefined machine by name; given options override its own."""
    name = options.sizes
    if name not in MINICRAYS:
        there = f"choose from {', '.join(MINICRAYS)}"
        raise options.wrong(f"unknown mini-Cray {name!r}", there)
    complete = Options(f"{name}:{MINICRAYS[name]},header={MINICRAY_HEADER}", sizes=name in SIZED)
    complete.text = options.text
    complete.given |= options.given
    machine = KINDS[name](complete)
    # Links are slowed, and latencies are not; packets have one way to each node.
    return lay_figures(machine, {"latency": 0.0, "routing": "single"})


#: Kinds whose first option is their sizes alone, or a name.
SIZED = ("torus", "tree", "minicray")

#: What makes each kind.
KINDS: dict[str, Callable[[Options], Machine]] = {
    "dragonfly": _make_dragonfly,
    "slingshot": _make_slingshot,
    "torus": _make_torus,
    "fattree": _make_fattree,
    "dragonfly+": _dragonfly_plus,
    "tree": _make_tree,
    "minicray": _make_minicray,
}
