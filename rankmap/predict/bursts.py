"""What queues add to a phase: bursts that meet at links which are about equally full.

A rank's message does not flow, it goes in bursts of some packets. A link that has work
for almost all of a phase must never wait for a burst, or it ends after the phase's fluid
time; in which order bursts come is chance. With

* T seconds: the fluid time of the phase, its longest link's,
* W <= T seconds: a link's own work, n bursts of s = W / n seconds,
* A seconds: the time in which they arrive, until what leads to the link has ended,

the work that has come after a share v of the arrivals is v W + sigma B(v), where B is a
Brownian bridge: all of it has come at the end. A node sends its bursts in random order, and
a share p of them over this link, so that it adds n s^2 (1 - p) to sigma^2, as draws without
replacement do: what a node sends over one link alone comes evenly. The link ends when all
that comes after its last idle moment is through, at

    sup_v  v A + (1 - v) W - sigma B(v),

so that it ends more than x after T where the bridge crosses a straight line from
x + T - W to x + T - A. That has the probability exp(-2 (x + T - W) (x + T - A) / sigma^2)
exactly, by the reflection principle (J. L. Doob, Heuristic approach to the
Kolmogorov-Smirnov theorems, Ann. Math. Statist. 20 (1949), 393-403); 1 before all has
arrived. The link before it has ended so late itself: where half of all orders of its own
bursts have, with its feeders' work for A. A phase ends with its last link, and links are taken as
independent. Nothing is fitted.

A program that waits at the end of each of its passes, as a halo exchange in every time step,
has that of each pass: a recording of P passes takes P times what a P-th of its bytes does,
whatever P is. Ranks that run ahead meet less of it, with the fluid time as the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from placement.network import Loads
from placement.support.array_types import Floats, Ints
from placement.support.arrays import sum_by_key, summed
from placement.traffic import Traffic
from rankmap.placement import Placement
from rankmap.predict.phase import Phase

__all__ = ["LIKELY", "RANGE", "Filled", "Queues", "fill_links"]

#: The share of all orders of bursts under which a phase ends sooner: the likely one, and both ends.
#: Messages that are posted by a schedule without conflicts, as all-to-alls among the nodes of one
#: switch are, never wait for each other: the least.
LIKELY, RANGE = 0.5, (0.0, 0.9)

#: Pairs of nodes whose routes are followed; of more, what each sends over a link is a small share.
MOST_PAIRS = 20_000

#: Halvings of the bracket around a quantile, which is a factor of ten wide at most.
_HALVINGS = 24

#: A probability that changes no figure.
_NONE = 1e-9


class Queues(NamedTuple):
    """Links of a phase as queues see them.

    Attributes
    ----------
    idle : float64 (l,)
        Seconds of the fluid time for which each link has no work: T - W.
    ahead : float64 (l,)
        Seconds of it that are left when a link's last burst arrives: T - A; below 0 after it.
    variance : float64 (l,)
        sigma^2 of its arrivals, in seconds squared.
    passes : float
        How often such a phase follows another one, each with queues of its own.

    Examples
    --------
    A link that is busy all of a second, with 100 bursts of 10 ms:

    >>> one = Queues(np.zeros(1), np.zeros(1), np.array([1 * 0.01]))
    >>> round(one.excess(0.5), 4), round(one.excess(0.9), 4)
    (0.0589, 0.1073)
    """

    idle: Floats
    ahead: Floats
    variance: Floats
    passes: float = 1.0

    def excess(self, share: float = LIKELY) -> float:
        """Return the seconds beyond the fluid time that a share of all orders stay below.

        Of all passes together: a program posts alike in each.
        """
        if not len(self.variance) or not share:
            return 0.0
        low = float(self._exceeded(1 - share).max())
        high = float(self._exceeded(-math.expm1(math.log(share) / len(self.variance))).max())
        late = self.beyond(low) > _NONE / len(self.variance)
        some = Queues(self.idle[late], self.ahead[late], self.variance[late])
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if np.log1p(-some.beyond(middle)).sum() < math.log(share):
                low = middle
            else:
                high = middle
        return high * self.passes

    def beyond(self, x: float) -> Floats:
        """Return the probability that each link ends more than `x` seconds after the fluid time."""
        exponent = -2 * (x + self.idle) * np.maximum(0.0, x + self.ahead) / self.variance
        return np.asarray(np.minimum(np.exp(exponent), 1 - 1e-16))

    def _exceeded(self, tail: float) -> Floats:
        """Return the seconds that each link alone exceeds with a probability; 0 for less often."""
        return np.maximum(0.0, _end(-self.idle, -self.ahead, self.variance, tail))


def _end(work: Floats, arriving: Floats, variance: Floats, tail: float) -> Floats:
    """Return when a link has ended but for a probability: where the bridge meets that line."""
    mean, half = (work + arriving) / 2, (work - arriving) / 2
    return np.asarray(mean + np.sqrt(half**2 - variance * math.log(tail) / 2))


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """What a phase, or a step of it, sends over each link that it uses.

    Links are channels between routers, then the nodes' injection, then their ejection.

    Attributes
    ----------
    link : int64 (l,)
    load : float64 (l,)
        Bytes.
    mixed : float64 (l,)
        1 - p: how far a sender's bursts over the link stand between others of its own.
    follows : tuple of int64 (k,) or None
        Places in `link`, and those that follow them on some way; None where routes are unknown.
    message : float
        Bytes of a message, in the mean.
    passes : float
        In how many passes, each after the one before, that is sent.
    """

    link: Ints
    load: Floats
    mixed: Floats
    follows: tuple[Ints, Ints] | None
    message: float
    passes: float = 1.0

    def queues(self, bandwidth: Floats, burst: float, sending: float = 0.0) -> Queues:
        """Return the queues at the links, in each pass.

        Parameters
        ----------
        bandwidth : float64 (c + 2 nodes,)
            GB/s of all links.
        burst : float
            Bytes that a message is sent in.
        sending : float
            Seconds in which the busiest rank sends what it sends.
        """
        own = bandwidth[self.link] * 1e9
        work, sending = self.load / self.passes / own, sending / self.passes
        fluid = max(sending, float(work.max(initial=0.0)))
        variance = work * min(burst, self.message) / own * self.mixed
        arriving = np.full(len(work), fluid)
        if self.follows is not None:
            ended = _end(work, self._arrived(work, sending), variance, 1 - LIKELY)
            arriving = self._arrived(ended, sending)
        some = variance > 0
        return Queues((fluid - work)[some], (fluid - arriving)[some], variance[some], self.passes)

    def _arrived(self, ended: Floats, sending: float) -> Floats:
        """Return when the last burst of each link arrives, where links have ended so late."""
        assert self.follows is not None
        before, after = self.follows
        found = np.full(len(ended), sending)
        np.maximum.at(found, after, ended[before])
        return found


def fill_links(phase: Phase, loads: Loads) -> Filled:
    """Return what a phase's messages between nodes send over each link.

    Parameters
    ----------
    phase : Phase
    loads : Loads
        Of all that it sends, under a routing with one path a pair.
    """
    placement, flows = phase.placement, phase.traffic.listed()
    size = float(flows.bytes.sum() / max(1.0, flows.messages.sum())) / phase.passes
    routed = 0 < len(flows) <= MOST_PAIRS and placement.machine.router.shape[1] == 1
    if not routed:
        return replace(_fill_without_routes(loads, size), passes=phase.passes)
    return replace(_fill_with_routes(placement, flows, loads, size), passes=phase.passes)


def _fill_without_routes(loads: Loads, size: float) -> Filled:
    """Return links without their routes: bursts arrive all the time, among many others."""
    every = np.concatenate([loads.load, loads.injection, loads.ejection])
    link = np.flatnonzero(every)
    from_node = (link >= len(loads.load)) & (link < len(loads.load) + len(loads.injection))
    return Filled(link, every[link], np.where(from_node, 0.0, 1.0), None, size)


def _fill_with_routes(placement: Placement, flows: Traffic, loads: Loads, size: float) -> Filled:
    """Return links with what follows what, and with how each sender's bursts are mixed."""
    from placement.network.routes import walk

    a, b = placement.rows[flows.source], placement.rows[flows.target]
    message, channel = walk(placement.machine, a, b, loads.routing)
    first, pairs = len(loads.load), np.arange(len(a))
    second = first + len(loads.injection)
    message = np.concatenate([pairs, message, pairs])
    order = np.argsort(message, kind="stable")
    message = message[order]
    link, place = np.unique(
        np.concatenate([first + a, channel, second + b])[order], return_inverse=True
    )
    weight = flows.bytes[message]
    sent = summed(flows.source, flows.bytes)
    sender, share = sum_by_key(flows.source[message] * len(link) + place, weight)
    sender, over = np.divmod(sender, len(link))
    load = summed(place, weight)
    own = summed(over, share**2 / sent[sender], len(link))
    on = message[1:] == message[:-1]
    follows = np.unique(place[:-1][on] * len(link) + place[1:][on])
    return Filled(link, load, np.maximum(0.0, 1 - own / load), np.divmod(follows, len(link)), size)
