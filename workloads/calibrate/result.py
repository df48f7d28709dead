"""From the readings of all rounds to figures with intervals, in the words of a site file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from workloads.ab.statistics import interval
from workloads.calibrate.choice import NODE, Chosen
from workloads.calibrate.fit import Network, fit_network
from workloads.calibrate.readings import GAP_BYTES, per_gb

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from placement.machine import Machine
    from placement.support.array_types import Floats

    Rows = Sequence[dict[str, float]]
    Sizes = dict[str, tuple[int, int]]

__all__ = ["Measured", "Result", "result_of"]

#: A rank is as fast as its node where it reaches this share of it.
AS_FAST = 0.97


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure of the result.

    Attributes
    ----------
    key : str
        As in a site file: ``bandwidth.blue``.
    value : object
        A number, or names of routings.
    how : str
        What it is, for the reader.
    unit : str
    low, high : float or None
        Ends of the interval; None where there is none.
    mark : str
    stated : float or None
        What the machine's configuration says.
    """

    key: str
    value: Any
    how: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    mark: str = "measured"
    stated: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """All that was found.

    Attributes
    ----------
    figures : list of Measured
    network : Network
        How well each routing fits.
    same : tuple of str
        Routings whose times are those of the best on these nodes.
    unreached : tuple of str
        Classes that bind in no set of flows between these nodes.
    notes : list of str
    """

    figures: list[Measured]
    network: Network
    same: tuple[str, ...]
    unreached: tuple[str, ...]
    notes: list[str] = field(default_factory=list)


def result_of(
    machine: Machine,
    chosen: Chosen,
    rounds: Rows,
    sizes: Sizes,
    *,
    ppn: int,
    node_set: int,
    hops: Callable[[str], dict[str, float]],
    assumed_node: bool = False,
) -> Result:
    """Return the figures that rounds of readings say.

    Parameters
    ----------
    machine : Machine
        As `workloads.calibrate.choice.without_stated_routing` returns it.
    chosen : Chosen
    rounds : sequence of dict of str to float
        Readings by their names (`workloads.calibrate.readings`).
    sizes : dict of str to (int, int)
        Bytes of the readings that have two sizes.
    ppn : int
        Ranks a node.
    node_set : int
        The set of flows in which ranks a node were compared.
    hops : callable
        From a routing to the links between routers on the way of each timed pair, by the
        reading's name.
    assumed_node : bool
        Whether the machine states no bandwidth of a node's link.
    """
    table = chosen.table
    sets = np.column_stack(
        [_per_gb(rounds, sizes, f"flows {k}") for k in range(len(table.flows))]
    )  # seconds for a GB a flow, float64 (rounds, sets)
    network = fit_network(table, np.median(sets, axis=0))
    same = tuple(
        name
        for name in table.routings
        if name == network.best.routing
        or {name, network.best.routing} in [{*pair} for pair in chosen.alike]
    )
    unreached = tuple(name for name in table.classes if name not in network.best.shares)
    found = Result([], network, same, unreached)
    width = int(np.bincount(table.flows[node_set].source).max())
    rates = _rates(rounds, sizes, ppn, node_set, width)
    fastest = max(rates.values(), key=lambda rate: float(np.median(rate)))
    found.figures.extend(_links(machine, chosen, network, sets, fastest, assumed_node))
    found.figures.extend(_ranks(rounds, sizes, ppn, rates))
    if ppn == 1:
        found.notes.append(
            "one rank a node: what a node sends with more of them, and copies inside it, were not"
            " measured"
        )
    found.figures.extend(_latencies(rounds, hops(network.best.routing)))
    found.figures.extend(_messages(rounds, sizes, ppn))
    found.figures.extend(_routing(network))
    return found


def _per_gb(rounds: Rows, sizes: Sizes, name: str) -> Floats:
    short, long = (
        np.array([one[f"{name} {word}"] for one in rounds]) for word in ("short", "long")
    )
    return per_gb(short, long, sizes[name])


def _middle_of(key: str, values: Floats, how: str, **more: Any) -> Measured:
    """Return the middle of positive values, and the interval that `bench ab` would give it."""
    found = interval([np.log(values)])
    if found is None:
        return Measured(key, float(np.median(values)), how, **more)
    low, high = (end if 0 < end < math.inf else None for end in (found.low, found.high))
    return Measured(key, found.ratio, how, low=low, high=high, **more)


def _keys(machine: Machine, kind: str) -> list[tuple[str, float]]:
    """Return the figures of the machine that a class of links rests on, with their keys."""
    figures = machine.topology.bandwidth
    if kind == NODE:
        stated = figures.get(NODE, figures.get("up0", 0.0))
        both = {NODE: stated, **{k: v for k, v in figures.items() if k == "ejection"}}
        return list(both.items())
    own = {key: v for key, v in figures.items() if key in (kind, f"{kind}-cable")}
    return list((own or {kind: figures.get("up", 0.0)}).items())


def _links(
    machine: Machine,
    chosen: Chosen,
    network: Network,
    sets: Floats,
    fastest: Floats,
    assumed_node: bool,
) -> list[Measured]:
    """Return the bandwidths of all classes: those that were not reached in proportion.

    A node's own link is as fast as what any number of its ranks sends (`fastest`, GB/s of
    each round): a busy computer lets several come out low.
    """
    table, best = chosen.table, network.best
    seconds = table.seconds[:, table.routings.index(best.routing)]
    found, shares = [], []
    for k, kind in enumerate(table.classes):
        if kind not in best.shares:
            continue
        at = best.sets[kind]
        share = seconds[at, k] / sets[:, at]
        of_node = kind == NODE
        how = "a node's own link" if of_node else f"links of class {kind}"
        how += f": {table.flows[at].name}"
        for key, stated in _keys(machine, kind):
            told = None if of_node and assumed_node else stated
            rate = share * stated
            if key == NODE and np.median(fastest) > np.median(rate):
                rate = fastest
            found.append(_middle_of(f"bandwidth.{key}", rate, how, unit="GB/s", stated=told))
        if not of_node:
            shares.append(best.shares[kind])
            found.append(
                _middle_of(f"stated.payload_{kind}", share, "share of the stated bandwidth")
            )
    if not shares:
        return found
    usual = float(np.median(shares))
    for kind in table.classes:
        if kind not in best.shares and kind != NODE:
            found += [
                Measured(f"bandwidth.{key}", usual * stated, f"not reached with these nodes: "
                         f"{usual:.4g} of {stated:g}, as of the other links", "GB/s",
                         mark="assumed", stated=stated)
                for key, stated in _keys(machine, kind)
            ]  # fmt: skip
    how = "the bandwidths of links here are what programs' bytes reach"
    return [*found, Measured("sending.payload", 1.0, how)]


def _rates(rounds: Rows, sizes: Sizes, ppn: int, node_set: int, width: int) -> dict[int, Floats]:
    """Return the GB/s that a node sends in each round, by how many of its ranks send.

    Parameters
    ----------
    rounds : sequence of dict
    sizes : dict
    ppn, node_set : int
    width : int
        Flows that leave one node in that set.
    """
    names = {count: f"ranks {count}" for count in range(1, ppn)} | {ppn: f"flows {node_set}"}
    return {
        count: width / _per_gb(rounds, sizes, name)
        for count, name in names.items()
        if name in sizes
    }


def _ranks(rounds: Rows, sizes: Sizes, ppn: int, rates: dict[int, Floats]) -> list[Measured]:
    """Return what ranks send: one, several of a node, and inside a node."""
    figures = [
        _middle_of(f"stated.node_{count}_ranks", rate, f"a node, {count} of its ranks sending",
                  unit="GB/s")
        for count, rate in rates.items()
    ]  # fmt: skip
    alone, how = rates[1], "one rank of each node sends"
    if "copies" in sizes:
        inside = ppn / _per_gb(rounds, sizes, "copies")
        figures.append(_middle_of("sending.memory", inside, f"copies between {ppn} ranks of a node",
                                 unit="GB/s"))  # fmt: skip
        if np.median(alone) >= AS_FAST * np.median(rates[ppn]):
            how = "one rank fills its node's link; what it copies to ranks of its own node"
            alone = np.maximum(alone, inside / ppn)
    return [*figures, _middle_of("sending.process", alone, how, unit="GB/s")]


def _latencies(rounds: Rows, hops: dict[str, float]) -> list[Measured]:
    """Return the latency of each level, and what of it each link between routers adds."""
    levels: dict[str, list[str]] = {}
    for name in rounds[0]:
        if name.startswith("latency "):
            levels.setdefault(name[8:].rpartition(" ")[0], []).append(name)
    figures = []
    for level, names in levels.items():
        us = 1e6 * np.array([np.median([one[name] for name in names]) for one in rounds])
        key = f"stated.latency_{level.replace(' ', '_')}"
        figures.append(_middle_of(key, us, f"an empty message, {level}", unit="us"))
    far = [name for names in levels.values() for name in names if name in hops]
    lines = np.array([_line([hops[name] for name in far], [one[name] for name in far])
                      for one in rounds])  # fmt: skip
    ways = f"{len(far)} pairs of nodes"
    figures.append(_middle_of("latency.mpi_us", lines[:, 0] * 1e6, f"an empty message, {ways}",
                             unit="us"))  # fmt: skip
    hop = float(np.median(lines[:, 1])) * 1e9
    if len({hops[name] for name in far}) > 1:
        figures.append(Measured("latency.hop_ns", hop, f"each link between routers, {ways}", "ns"))
    return figures


def _line(hops: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Return the seconds without a hop and those that each adds, neither below nothing."""
    x, y = np.asarray(hops), np.asarray(seconds)
    each = max(0.0, float(np.polyfit(x, y, 1)[0])) if np.ptp(x) else 0.0
    none = float(y.mean() - each * x.mean())
    return (none, each) if none > 0 else (float(y.min()), 0.0)


def _messages(rounds: Rows, sizes: Sizes, ppn: int) -> list[Measured]:
    """Return the time between messages, and what a step of a staged exchange takes beyond bytes."""
    figures = []
    for key, name, how in (
        ("sending.message_us", "message", "between two short messages of a rank"),
        ("sending.nic_us", "node messages", f"between two of a node, {ppn} ranks sending"),
    ):
        if name in rounds[0]:
            us = 1e6 * np.array([one[name] for one in rounds])
            figures.append(_middle_of(key, us, how, unit="us"))
    less, more = sizes["step"]
    gaps = np.array([more * one["step short"] - less * one["step long"] for one in rounds])
    gaps *= 1e6 / (more - less)
    how = f"a step of a staged exchange beyond its bytes ({GAP_BYTES >> 10} and twice as many KiB)"
    if (gaps > 0).all():
        figures.append(_middle_of("sending.gap_us", gaps, how, unit="us"))
    else:
        figures.append(Measured("sending.gap_us", max(0.0, float(np.median(gaps))), how, "us"))
    return figures


def _routing(network: Network) -> list[Measured]:
    if not network.alike:
        return []
    how = f"predicted times are off by {network.best.error:.1%} in the mean"
    others = [fit for fit in network.fits if fit.routing not in network.alike]
    if others:
        nearest = min(others, key=lambda fit: fit.error)
        how += f", by {nearest.error:.1%} under {nearest.routing}"
    return [Measured("sending.routing", list(network.alike), how)]
