"""Which sets of flows are measured: those that make one class bind, and tell routings apart.

A set makes a class of links bind where its busiest link of that class takes
longer than any other link, by what the machine's configuration says of
bandwidths; which link that is depends on the routing, so sets are chosen for
every routing that the network could have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placement.errors import UsageError
from placement.machine import Machine
from placement.network import Demand, channels, loads, routings
from placement.network.model import injection_bandwidth
from placement.support.array_types import Floats, Ints
from placement.support.quantities import GB
from placement.traffic import Traffic
from workloads.calibrate.flows import Flows, candidates

__all__ = [
    "ENOUGH",
    "MARGIN",
    "NODE",
    "Chosen",
    "FlowTimes",
    "MeasurePlan",
    "choose_sets",
    "margins",
    "merged_class",
    "predict_table",
    "without_stated_routing",
]  # fmt: skip

#: A class binds where it takes so many times as long as any other.
MARGIN = 1.05

#: No margin is better than this one: the first such set counts.
ENOUGH = 1.25

#: Two routings are told apart by a set of flows whose times differ by this factor.
APART = 1.25

#: Differences in time below this factor are none that a measurement could show.
SAME = 1.03

#: Sets of flows that are to tell two routings apart.
WITNESSES = 3

#: Sets that are kept of those that make a class bind under the default routing.
KEPT = 3

#: The class of nodes' own links.
NODE = "injection"


@dataclass(frozen=True, slots=True, eq=False)
class FlowTimes:
    """Seconds that the busiest link of each class takes, by the machine's own figures.

    Attributes
    ----------
    flows : sequence of Flows
    routings, classes : tuple of str
    seconds : float64 (flows, routings, classes)
        For a GB a flow.
    clean : frozenset of int or None
        Sets in which a class was chosen to bind: what it carries is read off
        these alone. None: all.
    """

    flows: Sequence[Flows]
    routings: tuple[str, ...]
    classes: tuple[str, ...]
    seconds: Floats
    clean: frozenset[int] | None = None

    @property
    def times(self) -> Floats:
        """Seconds of each set under each routing, float64 (flows, routings)."""
        return np.asarray(self.seconds.max(axis=2))

    def take(self, some: Sequence[int]) -> FlowTimes:
        """Return the table of these sets."""
        listed = list(some)
        return replace(self, flows=[self.flows[i] for i in listed], seconds=self.seconds[listed])


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """What is measured.

    Attributes
    ----------
    table : FlowTimes
        Of the sets that were chosen.
    alike : tuple of (str, str)
        Routings that no set of flows between these nodes tells apart.
    """

    table: FlowTimes
    alike: tuple[tuple[str, str], ...]

    def unreached(self, routing: str) -> tuple[str, ...]:
        """Return the classes that no set makes bind under a routing."""
        most = margins(self.table.seconds)[:, self.table.routings.index(routing)].max(
            axis=0, initial=0.0
        )
        return tuple(name for name, m in zip(self.table.classes, most, strict=True) if m < MARGIN)


@dataclass(frozen=True, slots=True, eq=False)
class MeasurePlan:
    """Where all of it is measured; the same on all ranks.

    Attributes
    ----------
    seats : list of list of int
        Ranks of each node.
    chosen : Chosen
    pairs : dict of str to list of (int, int)
        Nodes by level, as `workloads.calibrate.flows.pairs_by_level` returns them.
    node_set : int
        The set of flows in which what ranks send is compared by their number.
    """

    seats: list[list[int]]
    chosen: Chosen
    pairs: dict[str, list[tuple[int, int]]]
    node_set: int

    @property
    def ppn(self) -> int:
        """Ranks of a node."""
        return len(self.seats[0])


def without_stated_routing(machine: Machine) -> tuple[Machine, bool]:
    """Return the machine without what it is said to route by, each node's link limited.

    Returns
    -------
    (Machine, bool)
        And whether a node's link had to be assumed, as fast as the fastest link.

    Raises
    ------
    UsageError
        Where no bandwidth of any link is known.
    """
    stated = dict(machine.topology.parameters)
    for name in ("routing", "routings"):
        stated.pop(name, None)
    topology = replace(machine.topology, parameters=stated)
    machine = replace(machine, topology=topology, _cache={})
    known = channels(machine).bandwidth
    known = known[np.isfinite(known)]
    if not len(known):
        raise UsageError(
            f"{machine.name} states no bandwidth of its links, so that none can be told to bind",
            "-m a site, or a spec with bandwidths",
        )
    if np.isfinite(injection_bandwidth(machine)).all():
        return machine, False
    bandwidth = {**topology.bandwidth, NODE: float(known.max())}
    return replace(machine, topology=replace(topology, bandwidth=bandwidth), _cache={}), True


def margins(seconds: Floats) -> Floats:
    """Return how many times as long each class takes as the margin other one.

    Parameters
    ----------
    seconds : float64 (…, classes)

    Examples
    --------
    >>> margins(np.array([[4.0, 2.0, 0.0]])).tolist()
    [[2.0, 0.5, 0.0]]
    """
    margin = np.zeros_like(seconds)
    for k in range(seconds.shape[-1]):
        others = np.delete(seconds, k, axis=-1).max(axis=-1, initial=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            margin[..., k] = np.where(seconds[..., k] > 0, seconds[..., k] / others, 0.0)
    return margin


def merged_class(kind: str) -> str:
    """Return the class whose bandwidth a class of channels has: up and down are one.

    Examples
    --------
    >>> merged_class("down1"), merged_class("ejection"), merged_class("blue")
    ('up1', 'injection', 'blue')
    """
    if kind == "ejection":
        return NODE
    return f"up{kind[4:]}" if kind.startswith("down") else kind


def predict_table(
    machine: Machine, rows: Ints, flows: Sequence[Flows], routings: Sequence[str]
) -> FlowTimes:
    """Return what each set of flows takes under each routing.

    Parameters
    ----------
    machine : Machine
        As `without_stated_routing` returns it.
    rows : int64 (n,)
        The job's nodes.
    flows : sequence of Flows
    routings : sequence of str
    """
    kinds = [NODE, *(merged_class(kind) for kind in channels(machine, routings[0]).kinds)]
    classes = tuple(dict.fromkeys(kinds))
    seconds = np.zeros((len(flows), len(routings), len(classes)))
    for i, one in enumerate(flows):
        for r, routing in enumerate(routings):
            seconds[i, r] = _seconds(machine, rows, one, routing, classes)
    return FlowTimes(flows, tuple(routings), classes, seconds)


def _seconds(
    machine: Machine, rows: Ints, flows: Flows, routing: str, classes: Sequence[str]
) -> list[float]:
    """Return the seconds of the busiest link of each class."""
    demand = Demand.of(machine, Traffic.of(rows[flows.source], rows[flows.target], GB))
    seconds = dict.fromkeys(classes, 0.0)
    for kind, longest in loads(machine, demand, routing).by_class().items():
        name = merged_class(kind)
        seconds[name] = max(seconds[name], longest)
    return list(seconds.values())


def choose_sets(machine: Machine, rows: Ints, seed: int = 0) -> Chosen:
    """Return the sets of flows that are worth measuring, of all `candidates`.

    All are looked at under the network's usual routing, and the best of each
    class, and all permutations, under every other one as well. A shift by
    half the nodes and a random permutation are always among them, as
    witnesses of what the fit says.

    Parameters
    ----------
    machine : Machine
        As `without_stated_routing` returns it.
    rows : int64 (n,)
    seed : int
    """
    names, flows = routings(machine), candidates(machine, rows, seed)
    first = predict_table(machine, rows, flows, names[:1])
    several = [i for i, one in enumerate(flows) if len(one) >= len(rows)]
    best = {i for k in range(len(first.classes)) for i in _best(first, 0, k, KEPT)}
    some = sorted(best.union(several))
    table = predict_table(machine, rows, [flows[i] for i in some], names)
    shift = f"each node to the one {len(rows) // 2} further"
    always = [i for i, one in enumerate(table.flows) if one.name in (shift, "random permutation 1")]
    return choose_from(table, always)


def choose_from(table: FlowTimes, always: Sequence[int] = ()) -> Chosen:
    """Return the sets that make each class bind under each routing, and tell routings apart.

    Parameters
    ----------
    table : FlowTimes
    always : sequence of int
        Sets that are taken whatever they tell.
    """
    picked: dict[int, None] = {}
    for r in range(len(table.routings)):
        for k in range(len(table.classes)):
            picked |= dict.fromkeys(_best(table, r, k, 1))
    clean = frozenset(range(len(picked)))
    picked |= dict.fromkeys(always)
    alike = []
    for a in range(len(table.routings)):
        for b in range(a):
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.abs(np.log(table.times[:, a] / table.times[:, b]))
            ratio = np.nan_to_num(ratio)
            if ratio.max(initial=0.0) < np.log(SAME):
                alike.append((table.routings[b], table.routings[a]))
            elif np.sum(ratio[list(picked)] > np.log(APART)) < WITNESSES:
                most = np.argsort(-ratio, kind="stable")[:WITNESSES].tolist()
                picked |= dict.fromkeys(i for i in most if ratio[i] > np.log(SAME))
    return Chosen(replace(table.take(list(picked)), clean=clean), tuple(alike))


def _best(table: FlowTimes, routing: int, kind: int, count: int) -> list[int]:
    """Return the sets that make a class bind most clearly; of equals those of fewest flows."""
    margin = np.minimum(margins(table.seconds)[:, routing, kind], ENOUGH)
    sizes = [len(one) for one in table.flows]
    ranked = sorted(range(len(margin)), key=lambda i: (-round(float(margin[i]), 2), sizes[i]))
    return [i for i in ranked[:count] if margin[i] >= MARGIN]
