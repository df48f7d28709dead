# SPDX-License-Identifier: Apache-2.0
"""Selects sets of flows to measure: those in which one link class is the bottleneck.

In most of them each node sends to at most one other and receives from at most
one: a node's own link then carries one message, and what a link between
routers carries more is what the network makes of it. In fans one node sends
to several others, so that its own link binds.

Beside them are the pairs of nodes between which single messages are timed,
by how far they lie apart, and which ranks sit on which node.

A class of links is the bottleneck of a set where its busiest link of that class takes
longer than any other link, by what the machine's configuration says of bandwidths
and routing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.machine import Machine
from nidmap.placement.network import Demand, channels, loads
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.quantities import GB
from nidmap.placement.topologies import router_names
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.score.distance import machine_distance
from nidmap.workloads.trials import SEED

#: Number of pairs of units (two routers, two chassis …) to try, per relative position.
PAIRS = 6

#: Number of nodes up to which an all-to-all is tried.
EVERYONE = 64

#: Numbers of simultaneous receivers of a node.
FANS = (2, 3, 6)

#: Random permutations.
SHUFFLES = 6

#: Pairs of nodes of each level between which messages are timed.
TIMED = 3

#: Distances of a torus between which messages are timed.
DISTANCES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """Messages that are sent at the same time, all of the same size."""

    name: str  # for people
    # source, target: (m,), nodes, as positions in the job's list
    source: Ints
    target: Ints

    def __len__(self) -> int:
        return len(self.source)


def candidates(machine: Machine, rows: Ints) -> list[Flows]:
    """Return sets of flows, some of which make a given link class the bottleneck.

    `rows` (n,): the job's nodes.
    """
    rng = np.random.default_rng(SEED)
    flows = [*_over_links(machine, rows, rng), *_between_units(machine, rows, rng)]
    flows += [*_list_permutations(len(rows), rng), *_list_fans(machine, rows, rng)]
    return [candidate for candidate in flows if len(candidate)]


def _over_links(machine: Machine, rows: Ints, rng: np.random.Generator) -> Iterator[Flows]:
    """Yield, per link class, flows from all nodes of a router to those of a linked one."""
    nodes = _by_router(machine, rows)
    wires, called = channels(machine), router_names(machine)
    used = np.isin(wires.source, list(nodes)) & np.isin(wires.target, list(nodes))
    for kind in range(len(wires.kinds)):
        here = rng.permutation(np.flatnonzero(used & (wires.kind == kind))).tolist()
        ends = [(int(wires.source[c]), int(wires.target[c])) for c in here]
        ends.sort(key=lambda pair: -min(len(nodes[end]) for end in pair))
        for a, b in ends[:PAIRS]:
            ways = zip(nodes[a], nodes[b], strict=False)
            yield _flows_of_pairs(f"{called[a]} to {called[b]}", list(ways))


def _by_router(machine: Machine, rows: Ints) -> dict[int, list[int]]:
    """Return the nodes on each router, as positions in the job's list."""
    nodes = defaultdict(list)
    for position, router in enumerate(machine.router[rows, 0].tolist()):
        nodes[router].append(position)
    return dict(nodes)


def _between_units(machine: Machine, rows: Ints, rng: np.random.Generator) -> Iterator[Flows]:
    """Yield flows from all nodes of a unit to another: groups, then chassis, then routers.

    A torus has none but its routers, which its links join.
    """
    levels, depth = machine.topology.levels, machine.topology.router_levels
    if machine.topology.kind == "torus":
        return
    coords = machine.coords[rows]
    for k in range(depth):
        units = defaultdict(list)
        for position, place in enumerate(coords[:, : k + 1].tolist()):
            units[tuple(place)].append(position)
        pairs = [(a, b) for a in units for b in units if a != b]
        order = rng.permutation(len(pairs)).tolist()
        order.sort(key=lambda i: -min(len(units[end]) for end in pairs[i]))
        seen: dict[tuple[bool, ...], int] = defaultdict(int)
        for a, b in (pairs[i] for i in order):
            alike = tuple(x == y for x, y in zip(a, b, strict=True))
            seen[alike] += 1
            if seen[alike] <= PAIRS:
                name = f"{levels[k]} {_place_name(a)} to {levels[k]} {_place_name(b)}"
                yield _flows_of_pairs(name, list(zip(units[a], units[b], strict=False)))


def _place_name(place: tuple[int, ...]) -> str:
    return "-".join(map(str, place))


def _flows_of_pairs(name: str, pairs: list[tuple[int, int]]) -> Flows:
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Flows(name, ends[:, 0], ends[:, 1])


def _list_permutations(count: int, rng: np.random.Generator) -> Iterator[Flows]:
    """Yield a pair of neighbours, shifts, random permutations, and an all-to-all."""
    every = np.arange(count)
    yield Flows("one node to the next", every[:1], every[1:2])
    for shift in sorted({1, max(1, count // 4), count // 2}):
        yield Flows(f"each node to the one {shift} further", every, (every + shift) % count)
    yield Flows("each node to its mirror", every, every[::-1].copy())
    for k in range(SHUFFLES if count > 2 else 0):
        yield Flows(f"random permutation {k + 1}", every, rng.permutation(count))
    if count <= EVERYONE:
        source, target = np.nonzero(~np.eye(count, dtype=bool))
        yield Flows("all to all", source, target)


def _list_fans(machine: Machine, rows: Ints, rng: np.random.Generator) -> Iterator[Flows]:
    """Yield flows from one node to several: on routers one widest link away, or anywhere."""
    wires, nodes = channels(machine), _by_router(machine, rows)
    for router in rng.permutation(list(nodes))[:PAIRS].tolist():
        leaving = np.flatnonzero((wires.source == router) & np.isin(wires.target, list(nodes)))
        widest = leaving[np.argsort(-wires.bandwidth[leaving], kind="stable")]
        neighbours = [nodes[end][0] for end in dict.fromkeys(wires.target[widest].tolist())]
        yield from (
            Flows(f"one node to {width} neighbours", np.full(width, nodes[router][0]),
                  np.array(neighbours[:width]))
            for width in FANS
            if width <= len(neighbours)
        )  # fmt: skip
    for width in FANS:
        for k in range(PAIRS if width < len(rows) else 0):
            source, *others = rng.permutation(len(rows))[: width + 1].tolist()
            name = f"one node to {width} others, {k + 1}"
            yield Flows(name, np.full(width, source), np.array(others))


def ranks_by_host(hosts: Sequence[str]) -> dict[str, list[int]]:
    """Return the ranks on each node.

    `hosts`: the node of each rank.
    """
    by_host: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        by_host.setdefault(host, []).append(rank)
    if len(by_host) < 2:
        raise UsageError(
            f"all ranks are on one node, {printable(next(iter(by_host), '-'))}: no link is used",
            "at least 2 nodes are needed; 16 to 64 see most of a machine",
        )
    counts = {host: len(ranks) for host, ranks in by_host.items()}
    fewest, most = (choose(counts, key=lambda host: counts[host]) for choose in (min, max))
    if counts[fewest] != counts[most]:
        raise UsageError(
            f"nodes have different numbers of ranks: {counts[fewest]} on {printable(fewest)}, "
            f"{counts[most]} on {printable(most)}",
            "srun --ntasks-per-node=… starts the same number on each",
        )
    return by_host


def pairs_by_level(machine: Machine, rows: Ints, ppn: int) -> dict[str, list[tuple[int, int]]]:
    """Return pairs of nodes by the innermost level that both share.

    `rows` (n,): the job's nodes. `ppn`: ranks per node: from two on there are pairs inside a node.
    Positions in the job's list; innermost level first: ``node``, the topology's levels,
    ``beyond``; on a torus ``router`` and hops.
    """
    a, b = np.triu_indices(len(rows), 1)
    distance = machine_distance(machine)
    torus = distance.coords is not None
    far = (distance.hops if torus else distance.level)(rows[a], rows[b])
    names = ("node", *distance.names[:-1], "beyond")
    rng = np.random.default_rng(SEED)
    by_level: dict[str, list[tuple[int, int]]] = defaultdict(list)
    if ppn > 1:
        by_level["node"] = [(k, k) for k in range(min(TIMED, len(rows)))]
    several = np.unique(far)
    if torus and len(several) > DISTANCES:
        several = several[np.linspace(0, len(several) - 1, DISTANCES).round().astype(int)]
    for apart in several.tolist():
        here = rng.permutation(np.flatnonzero(far == apart))[:TIMED]
        hops = f"{apart} hop{'s' * (apart > 1)}" if apart else "router"
        ends = zip(a[here].tolist(), b[here].tolist(), strict=True)
        by_level[hops if torus else names[apart]] = list(ends)
    return dict(by_level)


#: A class is the bottleneck if it takes this many times as long as any other.
MARGIN = 1.05

#: Margins above this are equally good: the first such set is used.
ENOUGH = 1.25

#: Sets that are measured for each class.
KEPT = 2

#: The class of nodes' own links.
NODE = "injection"


@dataclass(frozen=True, slots=True, eq=False)
class FlowTimes:
    """Seconds of the busiest link of each class, by the machine's own figures."""

    flows: Sequence[Flows]
    classes: tuple[str, ...]
    seconds: Floats  # (flows, classes), for a GB a flow, under the machine's routing

    def take(self, some: Sequence[int]) -> FlowTimes:
        """Return the table restricted to these sets."""
        listed = list(some)
        return replace(self, flows=[self.flows[i] for i in listed], seconds=self.seconds[listed])


@dataclass(frozen=True, slots=True, eq=False)
class MeasurePlan:
    """What to measure on which nodes; identical on all ranks."""

    ranks_of_nodes: list[list[int]]  # ranks of each node
    table: FlowTimes  # of the sets of flows that were chosen
    pairs: dict[str, list[tuple[int, int]]]  # nodes by level, as `pairs_by_level` returns them
    node_set: int  # the set of flows for comparing one sending rank per node with all of them

    @property
    def ppn(self) -> int:
        """Ranks per node."""
        return len(self.ranks_of_nodes[0])


def with_limited_nodes(machine: Machine) -> tuple[Machine, bool]:
    """Return the machine with limited injection bandwidth, and whether that was assumed.

    An unlimited one is taken to be as fast as the fastest link.
    """
    topology = machine.topology
    known = channels(machine).bandwidth
    known = known[np.isfinite(known)]
    if not len(known):
        raise UsageError(
            f"{machine.name} states no link bandwidths, so no bottleneck can be found",
            "give a site, or a spec with bandwidths, with -m",
        )
    if np.isfinite(injection_bandwidth(machine)).all():
        return machine, False
    bandwidth = {**topology.bandwidth, NODE: float(known.max())}
    return replace(machine, topology=replace(topology, bandwidth=bandwidth), _cache={}), True


def margins(seconds: Floats) -> Floats:
    """Return how many times as long each class takes as any other.

    `seconds` (…, classes).
    """
    margin = np.zeros_like(seconds)
    for k in range(seconds.shape[-1]):
        others = np.delete(seconds, k, axis=-1).max(axis=-1, initial=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            margin[..., k] = np.where(seconds[..., k] > 0, seconds[..., k] / others, 0.0)
    return margin


def undirected_class(kind: str) -> str:
    """Return the class that determines a channel class's bandwidth: up and down are one."""
    if kind == "ejection":
        return NODE
    return f"up{kind[4:]}" if kind.startswith("down") else kind


def predict_table(machine: Machine, rows: Ints, flows: Sequence[Flows]) -> FlowTimes:
    """Return the time of each set of flows under the machine's routing."""
    kinds = [NODE, *(undirected_class(kind) for kind in channels(machine).kinds)]
    classes = tuple(dict.fromkeys(kinds))
    seconds = [_class_seconds(machine, rows, flow_set, classes) for flow_set in flows]
    return FlowTimes(flows, classes, np.array(seconds).reshape(len(flows), len(classes)))


def _class_seconds(
    machine: Machine, rows: Ints, flows: Flows, classes: Sequence[str]
) -> list[float]:
    """Return the seconds of the busiest link of each class."""
    demand = Demand.of(machine, Traffic.of(rows[flows.source], rows[flows.target], GB))
    seconds = dict.fromkeys(classes, 0.0)
    for kind, longest in loads(machine, demand).by_class().items():
        name = undirected_class(kind)
        seconds[name] = max(seconds[name], longest)
    return list(seconds.values())


def choose_sets(machine: Machine, rows: Ints) -> FlowTimes:
    """Return the sets of flows worth measuring out of all `candidates`.

    Of each class those in which it is the bottleneck most clearly; of equals those of fewest
    flows. Those in which every node sends are always among them, as witnesses of whether the
    routing explains the times: a wrong one gets most of them wrong.

    `machine`: as `with_limited_nodes` returns it. `rows` (n,).
    """
    table = predict_table(machine, rows, candidates(machine, rows))
    margin = np.minimum(margins(table.seconds), ENOUGH)
    sizes = np.array([len(flow_set) for flow_set in table.flows])
    chosen: dict[int, None] = {}
    for kind in range(len(table.classes)):
        ranked = np.lexsort((sizes, -margin[:, kind].round(2)))[:KEPT].tolist()
        chosen |= {i: None for i in ranked if margin[i, kind] >= MARGIN}
    chosen |= {i: None for i in range(len(sizes)) if sizes[i] >= len(rows)}
    return table.take(list(chosen))
