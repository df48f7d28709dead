# SPDX-License-Identifier: Apache-2.0
"""A job's load on the links, in a form that a page can draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.placement.support.arrays import add_by_key
from nidmap.placement.topologies import router_coords, router_names
from nidmap.web import replies

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine
    from nidmap.placement.network import Channels, Loads
    from nidmap.placement.support.array_types import Floats, Ints
    from nidmap.rankmap.predict import Prediction


#: Most groups that a matrix shows.
MOST_UNITS = 128

#: Most nodes of a job whose traffic is summed up pair by pair.
_MOST_NODES = 4096


def document(prediction: Prediction, limit: int) -> replies.Prediction:
    """Return a prediction with its loads: by router, the busiest links, group by group.

    A router that touches a channel with load has the busiest one's share.

    `limit`: links that are listed.
    """
    weight = _channel_weights(prediction.loads)
    top = float(weight.max(initial=0.0))
    share = weight / top if top else weight
    kept = (
        "time_s", "between", "limited_by", "limited_by_text", "spent", "bottleneck", "by_class",
        "terms", "bound_s", "bound", "percent_of_bound", "hop_bytes", "routing", "wiring",
        "pattern", "ppn", "ranks", "bytes", "algorithm", "sentence",
    )  # fmt: skip
    fields, channels = prediction.document(), prediction.loads.channels
    most = np.zeros(len(router_coords(channels.machine)))
    np.maximum.at(most, channels.source, share)
    np.maximum.at(most, channels.target, share)
    busy = np.flatnonzero(most)
    known: dict[str, Any] = {key: fields.get(key) for key in kept}
    return replies.Prediction(
        **known,
        routers=replies.RouterShares(busy.tolist(), np.round(most[busy], 4).tolist()),
        links=busiest_channels(prediction.loads, weight, share, limit),
        matrix=group_matrix(prediction),
    )


def _channel_weights(loads: Loads) -> Floats:
    """Return the seconds of every channel, or its bytes if no link is limited."""
    seconds = loads.seconds()
    return seconds if seconds.any() else loads.load


def busiest_channels(loads: Loads, weight: Floats, share: Floats, limit: int) -> replies.Links:
    """Return the busiest channels first."""
    used = np.flatnonzero(weight)
    rows = used[np.argsort(-weight[used], kind="stable")][:limit]
    channels = loads.channels
    return replies.Links(
        kinds=list(channels.kinds),
        source=channels.source[rows].tolist(),
        target=channels.target[rows].tolist(),
        kind=channels.kind[rows].tolist(),
        seconds=loads.seconds()[rows].tolist(),
        load=loads.load[rows].tolist(),
        share=np.round(share[rows], 4).tolist(),
        name=channels.names(rows).tolist() if len(rows) else [],
        total=len(used),
    )


def busiest_channel(prediction: Prediction) -> tuple[str, str, float] | None:
    """Return the busiest channel's class, ends and load relative to its class's mean.

    None where nothing goes from router to router. The mean is over the
    channels of the class that carry anything.
    """
    loads = prediction.loads
    weight = _channel_weights(loads)
    if not weight.any():
        return None
    row = int(np.argmax(weight))
    channels = loads.channels
    alike = weight[(channels.kind == channels.kind[row]) & (weight > 0)]
    kind = channels.kinds[channels.kind[row]]
    return kind, _name_ends(channels, row), float(weight[row] / alike.mean())


def _name_ends(channels: Channels, row: int) -> str:
    """Name the ends of a channel: two groups, or two routers."""
    machine = channels.machine
    coords = router_coords(machine)
    a, b = coords[channels.source[row]], coords[channels.target[row]]
    if machine.topology.levels[0] == "group" and a[0] != b[0]:
        return f"g{a[0]}-g{b[0]}"
    name = str(channels.names(slice(row, row + 1))[0])
    return name.rpartition(" ")[0].replace("->", " to ")


def group_matrix(prediction: Prediction) -> dict[str, Any] | None:
    """Return the traffic between groups (slices, leaves); None if unknown."""
    loads = prediction.loads
    machine = loads.channels.machine
    topology, coords = machine.topology, router_coords(machine)
    axis = min(2, topology.router_levels - 1) if topology.kind == "torus" else 0
    level, unit = topology.levels[axis], coords[:, axis].astype(np.int64)
    nodes = np.flatnonzero((loads.injection > 0) | (loads.ejection > 0))
    units = np.unique(unit[machine.router[nodes, 0]])
    units = units[units >= 0]
    grouped = level == "group"
    if not 1 < len(units) <= MOST_UNITS or (len(nodes) > _MOST_NODES and not grouped):
        return None
    place = np.full(int(unit.max()) + 1, -1, dtype=np.int64)
    place[units] = np.arange(len(units))
    label, seconds = place[unit], None
    if grouped:
        seconds, load = _between_groups(loads, label, len(units))
        seconds = seconds if loads.seconds().any() else None  # no bandwidth is known
    else:
        load = np.zeros((len(units), len(units)))
        for phase in prediction.phases:
            for source, target, size in phase.demand.blocks():
                load += _sum_pairs(label[source], label[target], size, len(units))
    return {
        "level": level,
        "what": "links" if grouped else "bytes",
        "units": units.tolist(),
        "labels": _unit_labels(machine, level, axis, units),
        "seconds": None if seconds is None else seconds.tolist(),
        "load": load.tolist(),
    }


def _unit_labels(machine: Machine, level: str, axis: int, units: Ints) -> list[str]:
    """Name units: groups by number, the switches of a tree by name."""
    if level == "group":
        return [f"g{unit}" for unit in units.tolist()]
    coords, names = router_coords(machine)[:, axis], router_names(machine)
    routers = [np.flatnonzero(coords == unit) for unit in units.tolist()]
    if machine.topology.kind == "torus" or any(len(rows) != 1 for rows in routers):
        return [f"{level} {unit}" for unit in units.tolist()]
    return [str(names[rows[0]]) for rows in routers]


def group_links(loads: Loads) -> dict[str, Any]:
    """Return the busiest channel of each two outermost units, and within each (a == b).

    Also of units where the job has no nodes, through which routers send its packets.
    """
    channels = loads.channels
    unit = router_coords(channels.machine)[:, 0].astype(np.int64)
    weight = _channel_weights(loads)
    used = np.flatnonzero(
        (weight > 0) & (unit[channels.source] >= 0) & (unit[channels.target] >= 0)
    )
    ends = np.sort([unit[channels.source[used]], unit[channels.target[used]]], axis=0)
    busiest = used[np.lexsort((-weight[used], ends[1], ends[0]))]
    ends = np.sort([unit[channels.source[busiest]], unit[channels.target[busiest]]], axis=0)
    first = np.flatnonzero(np.diff(ends, axis=1, prepend=-1).any(axis=0))
    return {
        "a": ends[0, first].tolist(),
        "b": ends[1, first].tolist(),
        "seconds": loads.seconds()[busiest[first]].tolist(),
        "load": loads.load[busiest[first]].tolist(),
    }


def _between_groups(loads: Loads, label: Ints, count: int) -> tuple[Floats, Floats]:
    """Return the busiest channel's seconds and all channels' bytes between groups."""
    a, b = label[loads.channels.source], label[loads.channels.target]
    both = (a >= 0) & (b >= 0) & (a != b)
    seconds = np.zeros((count, count))
    np.maximum.at(seconds, (a[both], b[both]), loads.seconds()[both])
    return seconds, _sum_pairs(a[both], b[both], loads.load[both], count)


def _sum_pairs(a: Ints, b: Ints, amount: Floats, count: int) -> Floats:
    """Return the sum of the amounts by pair of units; -1 stands for none."""
    both = (a >= 0) & (b >= 0)
    return add_by_key(a[both] * count + b[both], amount[both], count * count).reshape(count, count)
