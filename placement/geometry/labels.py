"""Where nodes sit by the labels that Kubernetes gives them.

Kueue's ``Topology`` says which labels are levels, the outermost first; without one it is the
first family here that the nodes carry, inside region and zone. A unit is named by all values
down to its level, as Kueue takes it: rack r1 of block b1 is not rack r1 of block b2. Of a
domain of accelerators (NVLink) only its own name counts, wherever its nodes stand.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.errors import ParseError, printable
from placement.geometry import slurm_tree
from placement.lookup import find_rows
from placement.machine import FREE_STATES, Machine, Switches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from placement.dumps.tables import Table
    from placement.geometry.network import Network
    from placement.records import Dump
    from placement.support.array_types import Ints, Mask, Strs

__all__ = ["locate"]

#: Levels outside of all others.
_OUTSIDE = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")

#: The labels of a network, outermost first, by what sets them; topograph's have as many tiers
#: as there are, and Kueue's examples are of any provider.
_FAMILIES = (
    tuple(rf"fabric\.topograph\.run/tier-{tier}" for tier in reversed(range(24))),
    tuple(
        rf"network\.topology\.(?:nvidia\.com|kubernetes\.io)/{word}"
        for word in ("datacenter", "core", "spine", "leaf", "block")
    ),
    tuple(rf"topology\.k8s\.aws/network-node-layer-{layer}" for layer in range(1, 5)),
    tuple(rf"oci\.oraclecloud\.com/host\.{word}" for word in ("network_block_id", "rack_id")),
    tuple(rf".*/(?:gce-)?topology-{word}" for word in ("zone", "block", "subblock", "rack")),
)

#: The label of a domain of accelerators, by what sets it.
_ACCELERATORS = (
    "accelerator.topograph.run/domain",
    "network.topology.nvidia.com/accelerator",
    "network.topology.kubernetes.io/accelerator",
    "topology.k8s.aws/ultraserver-id",
    "nvidia.com/gpu.clique",
)

#: A node's own label, which is a level of Kueue's below all others.
_NODE = "kubernetes.io/hostname"


class _Level(NamedTuple):
    """One level.

    Attributes
    ----------
    word : str
        What one of its units is called.
    unit : int64 (n,)
        The unit that each node is in, numbered from 0.
    value : str (n,)
        The node's label.
    accelerators : bool
    """

    word: str
    unit: Ints
    value: Strs
    accelerators: bool = False


def locate(table: Table, dumps: Sequence[Dump]) -> Network:
    """Return the places of nodes by their labels.

    Nodes that lack a level are alone there, and no plan takes them.

    Parameters
    ----------
    table : Table
        Nodes by name; the state of nodes that lack a level becomes ``unlabelled``.
    dumps : sequence of Dump
        One with ``labels``, and perhaps one with ``levels``.

    Returns
    -------
    Network
        A tree whose levels are called as their labels; all nodes equally near where no label
        tells them apart.

    Raises
    ------
    ParseError
        A level that no node has.
    """
    levels, lack, notes = _levels(table, _labels(table, dumps), dumps)
    whole = ~lack & (table["role"] != "service")
    told, before = [], 1
    for level in levels:
        units = len(np.unique(level.unit[whole]))
        if before < units < whole.sum():  # a level says something that those outside do not
            told.append(level)
            before = units
        elif level.accelerators and told and units == before:
            told[-1] = level  # each switch has a domain of its own
    if not told:
        network = slurm_tree.flat(table)
        return replace(network, notes=(*network.notes, *notes))
    network = _network(told, int(table["gpus"].max(initial=0)))
    return replace(network, notes=(*network.notes, *notes))


def _network(levels: list[_Level], gpus: int) -> Network:
    network = slurm_tree.place_forest(_forest(levels))
    words = [level.word for level in levels]
    plain = len(set(words)) == len(words) and not any(hasattr(Machine, word) for word in words)
    if plain and "node" not in words:
        topology = replace(network.topology, levels=(*words, "node"))
        network = replace(network, topology=topology)
    return slurm_tree.as_domains(network, gpus) if levels[-1].accelerators else network


def _forest(levels: list[_Level]) -> Switches:
    """Return the units as switches, those of the innermost level first, below one root."""
    sizes = [int(level.unit.max()) + 1 for level in reversed(levels)]
    first = np.concatenate([[0], np.cumsum(sizes)])
    parent = np.full(first[-1] + 1, -1, dtype=np.int32)
    names: list[str] = []
    for k, level in enumerate(reversed(levels)):
        row = np.unique(level.unit, return_index=True)[1]
        above = levels[-2 - k].unit[row] if k + 1 < len(levels) else 0
        parent[first[k] : first[k + 1]] = first[k + 1] + above
        outer = levels[: len(levels) - k]
        names += ["/".join(str(one.value[r]) for one in outer) for r in row.tolist()]
    height = np.repeat(np.arange(len(sizes) + 1, dtype=np.int32), [*sizes, 1])
    return Switches((*names, "root"), parent, height, levels[-1].unit.astype(np.int32))


def _labels(table: Table, dumps: Sequence[Dump]) -> dict[str, Strs]:
    """Return the values of each label in the table's order, '' for none."""
    dump = next(d for d in reversed(dumps) if "labels" in d.parameters)
    assert dump.nodes is not None
    assert dump.nodes.name is not None
    at = find_rows(dump.nodes.name, table["name"])
    labels = dump.parameters["labels"]
    assert isinstance(labels, dict)
    return {key: np.array([*values, ""])[at] for key, values in labels.items()}


def _levels(
    table: Table, labels: Mapping[str, Strs], dumps: Sequence[Dump]
) -> tuple[list[_Level], Mask, tuple[str, ...]]:
    """Return the levels, outermost first, which nodes lack one, and what is to be said."""
    stated = next((d for d in reversed(dumps) if d.parameters.get("levels")), None)
    if stated is None:
        keys = _family(labels)
    else:
        given = stated.parameters["levels"]
        keys = [str(key) for key in given if key != _NODE] if isinstance(given, tuple) else []
        for key in keys:
            if key not in labels:
                text = f"no node has the label {printable(key)} of this Topology"
                raise ParseError(stated.source, 0, text)
    lack = np.any([labels[key] == "" for key in keys], axis=0) | np.zeros(len(table), np.bool_)
    notes = _mark_lacking(table, lack, keys)
    levels, outer = [], np.zeros(len(table), dtype=np.int64)
    for key in keys:
        level = _below(outer, key, _alone(labels[key], table["name"]))
        levels.append(level)
        outer = level.unit
    domain = next((key for key in _ACCELERATORS if key in labels and key not in keys), "")
    if stated is None and domain:
        value = _alone(labels[domain], table["name"])
        level = _Level("domain", np.unique(value, return_inverse=True)[1], value, True)
        levels, notes = _with_domains(levels, level, notes)
    return levels, lack, notes


def _family(labels: Mapping[str, Strs]) -> list[str]:
    """Return the labels that are levels where no Topology says which."""
    for family in _FAMILIES:
        found = [key for rule in family for key in sorted(labels) if re.fullmatch(rule, key)]
        if found:
            return [*(key for key in _OUTSIDE if key in labels), *found]
    return [key for key in _OUTSIDE if key in labels]


def _mark_lacking(table: Table, lack: Mask, keys: list[str]) -> tuple[str, ...]:
    """Mark the nodes that lack a level as not free, and say which."""
    rows = np.flatnonzero(lack & (table["role"] != "service"))
    if not len(rows):
        return ()
    free = np.isin(table["state"], (*FREE_STATES, ""))
    table.columns["state"] = np.where(lack & free, "unlabelled", table["state"])
    some = ", ".join(table.called(int(row)) for row in rows[:3])
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return (f"no plan takes {some}{more}: not all of {printable(', '.join(keys), 200)}",)


def _alone(values: Strs, names: Strs) -> Strs:
    """Return the values of a label, each node that has none with one of its own."""
    return np.where(values == "", np.char.add("~", names), values)


def _below(outer: Ints, key: str, value: Strs) -> _Level:
    """Return the level of a label, its units told apart by what they are in."""
    code = np.unique(value, return_inverse=True)[1]
    unit = np.unique(outer * (int(code.max()) + 1) + code, return_inverse=True)[1]
    word = re.sub(r"^(?:gce-)?topology-|^host\.|^network-node-|_id$", "", key.rpartition("/")[2])
    return _Level(printable(word, 30), unit, value)


def _with_domains(
    levels: list[_Level], domains: _Level, notes: tuple[str, ...]
) -> tuple[list[_Level], tuple[str, ...]]:
    """Put the domains where they nest; levels that cut across them are left out."""
    pairs = [_pairs(level.unit, domains.unit) for level in levels]
    units, count = [int(level.unit.max()) + 1 for level in levels], int(domains.unit.max()) + 1
    outside = [one for one, n in zip(levels, pairs, strict=True) if n == count]
    inside = [
        one for one, n, own in zip(levels, pairs, units, strict=True) if n == own and n != count
    ]
    cut = [one.word for one in levels if one not in outside and one not in inside]
    if cut:
        text = f"{' and '.join(cut)} left out: they cut across domains of accelerators"
        notes = (*notes, text)
    return [*outside, domains, *inside], notes


def _pairs(one: Ints, other: Ints) -> int:
    return len(np.unique(one * (int(other.max()) + 1) + other))
