# SPDX-License-Identifier: Apache-2.0
"""Ways over a third group by enumeration, in plain Python: what `Reference` lacks."""

from collections import Counter, defaultdict
from functools import cache
from itertools import product
from math import sqrt

from nidmap.placement.topologies import router_coords


class Thirds:
    """Shares of channels on minimal ways and on those over a third group, path by path.

    Parameters
    ----------
    reference : Reference
    """

    def __init__(self, reference):
        self.reference = reference
        reference.inside = cache(reference.inside)  # asked again for every pair of routers
        self.count = len(reference.group)
        self.place = router_coords(reference.machine)[:, 1:].tolist()  # chassis and blade
        leader = list(range(self.count))
        for _ in leader:
            for a, b in reference.ends:
                if reference.group[a] == reference.group[b]:
                    leader[a] = leader[b] = min(leader[a], leader[b])
        self.piece = leader
        self.links = defaultdict(list)
        for a in range(self.count):
            for b, channel in reference.out[a]:
                if reference.group[a] != reference.group[b]:
                    self.links[leader[a], leader[b]].append((a, channel, b))
        self.minimal = cache(reference.split_minimal)
        self.valiant = cache(self._valiant)
        self.inside = cache(self._inside)

    def _inside(self, here, there):
        """Return {channel: share} of the shortest paths inside a group."""
        paths = self.reference.inside(here, there)
        share = defaultdict(float)
        for path in paths:
            for channel in path:
                share[channel] += 1 / len(paths)
        return share

    def thirds(self, here, there):
        """Return the groups (pieces) linked to both ends' groups."""
        a, b = self.piece[here], self.piece[there]
        return [
            k
            for k in sorted(set(self.piece))
            if k not in (a, b) and self.links[a, k] and self.links[k, b]
        ]

    def bundle(self, a, b):
        """Return how many links join two groups."""
        return len(self.links[a, b])

    def others(self, here, there):
        """Return the other routers of a group that a detour passes; on a DragonFly+ none.

        Those of the row or column that both ends are in, where it has others, else all.
        """
        if self.reference.spines or self.piece[here] != self.piece[there]:
            return []
        same = [k for k, leader in enumerate(self.piece) if leader == self.piece[here]]
        others = [k for k in same if k not in (here, there)]
        place = self.place
        in_line = [
            k
            for k in others
            if any(a == b == c for a, b, c in zip(place[here], place[k], place[there], strict=True))
        ]
        return in_line or others

    def detour(self, here, there):
        """Return {channel: share} over another router of the group; the minimal shares if none."""
        share, others = defaultdict(float), self.others(here, there)
        for k in others:
            for ways in (self.inside(here, k), self.inside(k, there)):
                for channel, x in ways.items():
                    share[channel] += x / len(others)
        return share if others else self.minimal(here, there)

    def other(self, here, there):
        """Return {channel: share} on the ways that are not minimal."""
        inside = self.piece[here] == self.piece[there]
        return self.detour(here, there) if inside else self.valiant(here, there)

    def divisible(self, here, there):
        """Return whether there are ways of both kinds."""
        a, b = self.piece[here], self.piece[there]
        if a == b:
            return bool(self.others(here, there))
        return a != b and bool(self.links[a, b]) and bool(self.thirds(here, there))

    def _valiant(self, here, there):
        """Return {channel: share} over a third group; the minimal shares where there is none."""
        thirds = self.thirds(here, there)
        if self.piece[here] == self.piece[there] or not thirds:
            return self.minimal(here, there)
        share, ends = defaultdict(float), (self.piece[here], self.piece[there])
        weight = {k: sqrt(self.bundle(ends[0], k) * self.bundle(k, ends[1])) for k in thirds}

        def add(part, ways):
            for channel, x in ways.items():
                share[channel] += part * x

        for k in thirds:
            part_of = weight[k] / sum(weight.values())
            first = self.links[self.piece[here], k]
            second = self.links[k, self.piece[there]]
            for a, channel, _ in first:
                add(part_of / len(first), {channel: 1, **self.inside(here, a)})
            for _, channel, b in second:
                add(part_of / len(second), {channel: 1, **self.inside(b, there)})
            entered, left = Counter(b for _, _, b in first), Counter(a for a, _, _ in second)
            for (b, m), (a, n) in product(entered.items(), left.items()):
                add(m / len(first) * n / len(second) * part_of, self.inside(b, a))
        return share

    def loads(self, messages, split):
        """Return the bytes on every channel; parallel links are one channel."""
        total = [0.0] * len(self.reference.ends)
        for s, t, amount in self.reference.router_messages(messages):
            for channel, part in split(s, t).items():
                total[channel] += part * amount
        return total
