# SPDX-License-Identifier: Apache-2.0
"""The result of a routing: directed channels, and the bytes on each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.errors import UsageError
from nidmap.placement.fabrics import FABRICS
from nidmap.placement.machine import Machine, once
from nidmap.placement.support.array_types import Floats, Ints, Strs
from nidmap.placement.support.arrays import add_by_key, rank_within
from nidmap.placement.support.quantities import GB
from nidmap.placement.topologies import links, router_names


@dataclass(frozen=True, slots=True, eq=False)
class Channels:
    """The directed channels of a machine's network, one per row (c rows).

    Parallel links that share their load equally (a black bundle) are one
    channel with the bandwidth of all; cables of switches, of which a message
    takes one, are one channel each.
    """

    machine: Machine
    # source, target: (c,), routers that the channel leaves and enters
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    kind: NDArray[np.int8]  # (c,), index into `kinds`
    # ``green``, ``black``, ``blue``; ``local``, ``global``; ``x`` …; ``up1``, ``down1`` …
    kinds: tuple[str, ...]
    count: NDArray[np.int32]  # (c,), number of parallel links that it represents
    bandwidth: Floats  # (c,), GB/s of the whole channel; inf where unlimited or unstated

    def __len__(self) -> int:
        return len(self.source)

    def names(self, rows: Ints | slice | None = None) -> Strs:
        """Return ``c0-0c0s0a0->c0-0c0s1a0 green`` for these channels (None: for all).

        Each name is one channel's: of several of a class from one router to
        the same other one (a torus axis of extent 2 has + and -), those after
        the first end in ``#2``, ``#3``.
        """
        some = slice(None) if rows is None else rows
        called = router_names(self.machine)
        source, target = called[self.source[some]].tolist(), called[self.target[some]].tolist()
        words = np.array(self.kinds)[self.kind[some]].tolist()
        again = ["" if k == 0 else f"#{k + 1}" for k in self.earlier(some).tolist()]
        parts = zip(source, target, words, again, strict=True)
        return np.array([f"{a}->{b} {word}{nth}" for a, b, word, nth in parts], dtype=np.str_)

    def earlier(self, some: Ints | slice) -> Ints:
        """Return the rank of channels among those with the same ends and class, from 0."""
        key = self.source.astype(np.int64) << 40 | self.target.astype(np.int64) << 8 | self.kind
        wanted = np.arange(len(key))[some]
        if len(wanted) == 1:  # the busiest one, asked for over and over
            return np.array([np.count_nonzero(key[: wanted[0]] == key[wanted[0]])])
        return rank_within(key)[wanted]


def from_links(machine: Machine) -> Channels:
    """Return two channels per row of the machine's links: all from a to b first, then all back.

    InfiniBand deals flows out to the cables of a bundle whatever their rates, so
    the slowest has its share of the bytes and holds up the others; Aries,
    Gemini and Slingshot choose for each packet, and use what all cables have.
    """
    rows = links(machine)
    gbs: Floats = rows.bandwidth
    fabric = FABRICS.get(machine.topology.fabric)
    if rows.cable is not None and fabric and fabric.by_cable:
        first = np.cumsum(rows.count) - rows.count
        gbs = np.fmin.reduceat(rows.cable, first) * rows.count
    gbs = np.where(np.isnan(gbs), np.inf, gbs)
    return Channels(
        machine=machine,
        source=np.concatenate([rows.a, rows.b]),
        target=np.concatenate([rows.b, rows.a]),
        kind=np.tile(rows.kind, 2),
        kinds=rows.kinds,
        count=np.tile(rows.count, 2),
        bandwidth=np.tile(gbs, 2),
    )


def has_spines(machine: Machine) -> bool:
    """Return whether the groups have leaf and spine routers: a DragonFly+."""
    return machine.topology.kind == "dragonfly+"


@once
def injection_bandwidth(machine: Machine) -> Floats:
    """Return the GB/s that each node can send, and receive.

    The rate of its slowest attachment, as its bytes are dealt out to all alike, times their
    number. Where cables are not listed with rates of their own it is the topology's ``injection``
    (on trees and fat trees: the links between nodes and leaves, ``up0``).

    Returns (n,): inf where the machine states none.
    """
    attachments: Floats = np.maximum(1.0, (machine.router >= 0).sum(axis=1))
    return slowest_attachment(machine) * attachments


def slowest_attachment(machine: Machine) -> Floats:
    """Return GB/s of the slowest of each node's attachments, float64 (n,); inf: no figure."""
    figures = machine.topology.bandwidth
    usual = float(figures.get("injection", figures.get("up0", np.inf)))
    if machine.attachment_gbs is None:
        return np.full(len(machine), usual)
    gbs = np.where(machine.attachment_gbs > 0, machine.attachment_gbs, usual)
    slowest: Floats = np.where(machine.router >= 0, gbs, np.inf).min(axis=1, initial=np.inf)
    return np.where(np.isinf(slowest), usual, slowest)


class Worst(NamedTuple):
    """The channel, or the node's own link, that takes longest."""

    kind: str  # link class; ``injection`` and ``ejection`` are the nodes' own links
    name: str  # name of the channel or node; '' if nothing takes any time
    load: float  # bytes
    bandwidth: float  # GB/s
    seconds: float


class Ways(NamedTuple):
    """The bytes on channels under two splits between minimal paths and detours."""

    # minimal, best: (c,), None on detours; divided so that the busiest channel takes least
    minimal: Floats
    best: Floats
    detoured: float  # share of the bytes between routers that the best division puts on detours


#: Shares of the best split's detours that are considered.
TAKEN = np.linspace(0.0, 1.0, 17)


def busiest_by_share(load: Floats | Ways, bandwidth: Floats) -> Floats:
    """Return the busiest channel's seconds for each entry of `TAKEN`; one without detours.

    `load` (c,): bytes. `bandwidth` (c,): GB/s.
    """
    if not isinstance(load, Ways):
        return np.atleast_1d((load / (bandwidth * GB)).max(initial=0.0))
    minimal, best = (divided / (bandwidth * GB) for divided in load[:2])
    counts = np.maximum(minimal, best) >= 0.999 * best.max(initial=0.0)  # others are never busiest
    minimal, best = minimal[counts], best[counts]
    between = minimal + TAKEN[:, None] * (best - minimal)
    return np.asarray(between.max(axis=1, initial=0.0))


class Sending(NamedTuple):
    """The time of messages sent together."""

    seconds: float
    busy: float  # share of that for which the busiest channel is busy
    taken: int  # place in `TAKEN` of the detours that are taken


def pay_for_detours(by_share: Floats, least_s: float, cost: float) -> Sending:
    """Return the least seconds over all shares of the detours.

    `by_share` (k,): of the busiest channel, as `busiest_by_share` has it. `least_s`: what nodes'
    own links and ranks need. `cost`: what is added where all detours are taken, as a share.
    """
    needed = np.maximum(by_share, least_s)
    seconds = needed * (1 + cost * TAKEN[: len(by_share)])
    at = int(np.argmin(seconds))
    busy = float(by_share[at] / needed[at]) if needed[at] else 0.0
    return Sending(float(seconds[at]), busy, at)


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """Bytes on every channel of a network when an entire demand is sent.

    Loads of the same machine and routing add (a job and its background).
    """

    channels: Channels
    used: Ints  # (k,), the channels that carry anything, ascending
    carried: Floats  # (k,), bytes on each of them
    # injection, ejection: (n,), bytes that each node sends and receives
    injection: Floats
    ejection: Floats
    routing: str
    wiring: str  # how routers are joined (`nidmap.placement.topologies.wiring_text`)
    notes: tuple[str, ...] = ()  # assumptions, one sentence each
    slower: float = 1.0  # how many times as long as its bytes need everything is sent
    ways: Ways | None = None  # where routers adapt, the divisions between which `load` lies

    @property
    def load(self) -> Floats:
        """Bytes on every channel, float64 (c,)."""
        out = np.zeros(len(self.channels))
        out[self.used] = self.carried
        return out

    def __add__(self, other: Loads) -> Loads:
        ours, theirs = self.channels, other.channels
        same = ours.machine is theirs.machine and len(ours) == len(theirs)
        if not same or ours.kinds != theirs.kinds:
            raise UsageError("loads of two different networks cannot be added")
        used, place = np.unique(np.concatenate([self.used, other.used]), return_inverse=True)
        carried = add_by_key(place, np.concatenate([self.carried, other.carried]), len(used))
        return replace(
            self,
            used=used,
            carried=carried,
            injection=self.injection + other.injection,
            ejection=self.ejection + other.ejection,
            slower=max(self.slower, other.slower),
            ways=None,
            routing=" + ".join(dict.fromkeys((self.routing, other.routing))),
            notes=tuple(dict.fromkeys(self.notes + other.notes)),
        )

    def by_share(self) -> Floats:
        """Return the busiest channel's seconds by entry of `TAKEN`; one without detours."""
        return busiest_by_share(self.ways or self.carried, self.channels.bandwidth[self.used])

    def losing(self, loss: float, least_s: float = 0.0) -> Loads:
        """Return the loads if sending takes 1 + `loss` times as long with all bytes on detours.

        `least_s`: what else sending needs; with the nodes' own links where these need longer.
        """
        if self.ways is None:
            return self
        minimal, best, detoured = self.ways
        plain = replace(self, slower=1.0)
        own_s = max(float(plain.nodes(kind).max(initial=0.0)) for kind in ("injection", "ejection"))
        at = pay_for_detours(self.by_share(), max(own_s, least_s), loss * detoured).taken
        share, slower = 100 * detoured * TAKEN[at], float(1 + loss * detoured * TAKEN[at])
        note = f"adaptive: {share:.1f} % of the bytes between routers on detours"
        if slower > 1:
            note += f", so that sending takes {slower:.3g} times as long"
        carried = minimal + TAKEN[at] * (best - minimal)
        return replace(self, carried=carried, slower=slower, notes=(*self.notes[:-1], note))

    def seconds(self) -> Floats:
        """Return the seconds that every channel takes, float64 (c,).

        0.0 where a channel is unlimited.
        """
        out = np.zeros(len(self.channels))
        out[self.used] = self.used_seconds()
        return out

    def used_seconds(self) -> Floats:
        """Return the seconds of the channels in use, float64 (k,)."""
        usable = self.channels.bandwidth[self.used] * GB
        return np.asarray(self.carried * self.slower / usable)

    def nodes(self, kind: str) -> Floats:
        """Return the seconds of every node's own links, float64 (n,).

        `kind`: ``injection`` or ``ejection``.
        """
        load = self.injection if kind == "injection" else self.ejection
        return np.asarray(load * self.slower / (injection_bandwidth(self.channels.machine) * GB))

    def by_class(self) -> dict[str, float]:
        """Return the largest load / bandwidth of every link class in seconds.

        ``injection`` and ``ejection`` first; 0.0 where a class is unlimited
        or carries nothing.
        """
        kinds = self.channels.kinds
        most = np.zeros(len(kinds))
        np.maximum.at(most, self.channels.kind[self.used], self.used_seconds())
        ends = {
            kind: float(self.nodes(kind).max(initial=0.0)) for kind in ("injection", "ejection")
        }
        return ends | dict(zip(kinds, most.tolist(), strict=True))

    def worst(self) -> Worst:
        """Return the bottleneck: a channel, or a node's injection or ejection.

        Of equals the first is named: injection, ejection, then the channels
        in their order. Where no link is limited, the largest load counts and
        it takes 0 seconds.
        """
        machine = self.channels.machine
        own_gbs = injection_bandwidth(machine)
        worst = Worst("injection", "", 0.0, float(own_gbs[0]) if len(machine) else np.inf, 0.0)
        for kind, load, seconds in (
            ("injection", self.injection, self.nodes("injection")),
            ("ejection", self.ejection, self.nodes("ejection")),
            ("", self.carried, self.used_seconds()),
        ):
            if not load.any():
                continue
            row = place = int(np.argmax(seconds if seconds.any() else load))
            if (seconds[place], load[place]) > (worst.seconds, worst.load):
                if not kind:
                    row = int(self.used[place])
                name = machine.names[row] if kind else self.channels.names(slice(row, row + 1))[0]
                word = kind or self.channels.kinds[self.channels.kind[row]]
                gbs = own_gbs[row] if kind else self.channels.bandwidth[row]
                worst = Worst(
                    word, str(name), float(load[place]), float(gbs), float(seconds[place])
                )
        return worst
