# SPDX-License-Identifier: Apache-2.0
"""The attachments through which two nodes are connected, and the share of each pair of them.

A node with several adapters (rails) is attached to several switches. Where
links join all switches, each of the k x k pairs of attachments of two nodes
has an equal share of what they exchange. Rails that no cable joins are parts
of the network of their own: bytes go over the parts that both nodes are
attached to, each with as much as the node with fewer attachments there can
take, and within a part equally over all pairs. A node that has lost a rail
sends and receives by those that it has left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from nidmap.placement.errors import NidmapError, printable
from nidmap.placement.machine import Machine, once
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.arrays import connected_components
from nidmap.placement.topologies import links, router_count, router_names


@dataclass(frozen=True, slots=True, eq=False)
class Rails:
    """The parts of a network that contain the nodes' attachments."""

    machine: Machine
    part: Ints  # (n, k), part of each attachment, its lowest router; -1 where there is none
    alike: Floats  # (n, k), attachments of the node that are in the same part, at least 1
    kind: Ints  # (n,), equal for nodes whose shares to any other node are equal
    member: Ints  # (kinds,), a node of each kind
    # Cache of `between`
    known: dict[tuple[int, int], dict[int, float]] = field(default_factory=dict)

    @property
    def count(self) -> Floats:
        """Number of attachments of each node, at least 1, float64 (n,)."""
        return np.asarray(np.maximum(1.0, (self.part >= 0).sum(axis=1)))

    def shares(self, a: Ints, b: Ints) -> Iterator[tuple[int, int, Floats]]:
        """Yield each pair of attachments with its share of the traffic from `a` to `b`.

        `a`, `b`: rows of the machine, which broadcast. Yields `i, j`: columns of
        ``machine.router`` of the sender and of the receiver. Yields `share`: 0 where no path
        joins them; all are 0 where none joins the nodes.
        """
        weights = list(self._weights(a, b))
        total = np.sum([weight for *_, weight in weights], axis=0)
        total[total == 0] = 1.0
        for i, j, weight in weights:
            yield i, j, weight / total

    def _weights(self, a: Ints, b: Ints) -> Iterator[tuple[int, int, Floats]]:
        """Yield each pair of attachments with its capacity, as a number of attachments."""
        columns = range(self.part.shape[1])
        for i, j in ((i, j) for i in columns for j in columns):
            joined = (self.part[a, i] == self.part[b, j]) & (self.part[a, i] >= 0)
            yield i, j, joined / np.maximum(self.alike[a, i], self.alike[b, j])

    def between(self, a: int, b: int) -> dict[int, float]:
        """Return each part's share of the traffic between two kinds of nodes; {} for none."""
        if (a, b) in self.known:
            return self.known[a, b]
        ends = self.member[[a]], self.member[[b]]
        shares: dict[int, float] = {}
        for i, _, share in self.shares(*ends):
            if share[0]:
                part = int(self.part[ends[0][0], i])
                shares[part] = shares.get(part, 0.0) + float(share[0])
        self.known[a, b] = shares
        return shares

    def first_ends(self, a: Ints, b: Ints) -> tuple[Ints, Ints]:
        """Return the first connected routers of nodes `a` and `b`, int64 (m,) each.

        The routers of their first attachments where none is joined.
        """
        a, b = np.broadcast_arrays(a, b)
        source, target = (self.machine.router[end, 0].astype(np.int64) for end in (a, b))
        missing = np.ones(len(a), dtype=np.bool_)
        for i, j, weight in self._weights(a, b):
            rows = np.flatnonzero(missing & (weight > 0))
            source[rows] = self.machine.router[a[rows], i]
            target[rows] = self.machine.router[b[rows], j]
            missing[rows] = False
        return source, target

    def joined(self, a: Ints, b: Ints) -> Mask:
        """Return whether a path connects nodes `a` to nodes `b`, with broadcasting."""
        joined = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)), dtype=np.bool_)
        for _, _, weight in self._weights(a, b):
            joined |= weight > 0
            if joined.all():
                break
        return joined

    def refuse_apart(self, a: Ints, b: Ints) -> None:
        """Raise NidmapError if no path connects a node of `a` to that of `b`."""
        apart = np.flatnonzero(~self.joined(a, b))
        if len(apart):
            ends = self.machine.router[[a[apart[0]], b[apart[0]]], 0].tolist()
            raise no_path(self.machine, *ends)


@once
def rails_of(machine: Machine) -> Rails:
    """Return which attachments of a machine's nodes are connected."""
    cables = links(machine)
    ends = cables.a.astype(np.int64), cables.b.astype(np.int64)
    label = connected_components(router_count(machine), *ends)
    there = machine.router >= 0
    part = np.where(there, label[machine.router], -1)
    alike = np.maximum(1.0, (part[:, :, None] == part[:, None, :]).sum(axis=2))
    last = np.sort(part, axis=1)
    if (part[there] == part.max(initial=-1)).all():  # the number of attachments alters no share
        last = last[:, -1:]
    member, kind = _tell_apart(last)
    return Rails(machine, part, alike, kind, member)


def leaves_top_out(machine: Machine) -> bool:
    """Tell whether the switch list may lack links between its trees, as Slurm's files do.

    A fabric's own list has every cable.
    """
    return machine.topology.kind == "tree" and not machine.topology.fabric


def _tell_apart(rows: Ints) -> tuple[Ints, Ints]:
    """Return one row of each distinct kind, and each row's kind."""
    if (rows == rows[:1]).all():
        return np.arange(min(1, len(rows))), np.zeros(len(rows), dtype=np.int64)
    _, member, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return member, kind.reshape(-1)


def no_path(machine: Machine, source: int, target: int) -> NidmapError:
    """Return the error for two routers that are not connected."""
    names = router_names(machine)
    a, b = (printable(str(names[i])) for i in (source, target))
    return NidmapError(f"no path joins {a} and {b}", "is the list of links complete?")
