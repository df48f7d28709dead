# SPDX-License-Identifier: Apache-2.0
"""Loads by walking every path in plain Python: slow, and nothing shared with the product."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from functools import partial

import numpy as np

from nidmap.placement.network import channels
from nidmap.placement.topologies import links, router_coords, router_names


def by_name(machine, load, routing=""):
    """Return loads above 0 by channel (source, target, class); parallel channels in a tuple."""
    found = channels(machine, routing)
    out = defaultdict(list)
    rows = zip(found.source, found.target, found.kind, load, strict=True)
    for s, t, k, x in rows:
        if x:
            out[int(s), int(t), found.kinds[k]].append(float(x))
    return {key: tuple(sorted(x)) for key, x in out.items()}


def walked(paths):
    """Add up (path, bytes) to {channel key: bytes}; a 4th part of a key tells parallel ones."""
    out = defaultdict(float)
    for path, amount in paths:
        for channel in path:
            out[channel] += amount
    grouped = defaultdict(list)
    for key, x in out.items():
        grouped[key[:3]].append(x)
    return {key: tuple(sorted(x)) for key, x in grouped.items() if any(x)}


def torus_path(at, to, extents, back=False):
    """Return the steps (position, axis, direction) from one position to another.

    `back`: half a ring to coordinate 0 goes to -.
    """
    at, path = list(at), []
    for axis, extent in enumerate(extents):
        ahead = (to[axis] - at[axis]) % extent
        step = 1 if 2 * ahead <= extent else -1
        if back and 2 * ahead == extent and to[axis] == 0:
            step = -1
        while at[axis] != to[axis]:
            path.append((tuple(at), axis, step))
            at[axis] = (at[axis] + step) % extent
    return path


def torus_loads(machine, messages, back=False):
    """Return loads by (source router, target router, class), walking each message."""
    levels = machine.topology.router_levels
    extents = machine.topology.extents[:levels]
    index = {tuple(c): i for i, c in enumerate(router_coords(machine).tolist())}

    def keys(a, b):
        at, to = (tuple(machine.coords[row, :levels].tolist()) for row in (a, b))
        for spot, axis, step in torus_path(at, to, extents, back):
            after = list(spot)
            after[axis] = (after[axis] + step) % extents[axis]
            kind = machine.topology.levels[axis]
            yield index[spot], index[tuple(after)], kind, (spot, step)

    return walked((keys(a, b), x) for a, b, x in messages if a != b)


def neighbours(machine):
    """Return, for each switch, those above it and below it, ascending, with links of each."""
    above, below = defaultdict(dict), defaultdict(dict)
    found = links(machine)
    for a, b, kind, count in zip(found.a, found.b, found.kind, found.count, strict=True):
        above[int(a)][int(b)] = (found.kinds[kind], int(count))
        below[int(b)][int(a)] = (found.kinds[kind], int(count))
    return above, below


def reach_down(machine):
    """Return the rows of the nodes below each switch."""
    _, below = neighbours(machine)
    own = defaultdict(set)
    for row, routers in enumerate(machine.router.tolist()):
        for router in routers:
            if router >= 0:
                own[router].add(row)

    def nodes(switch):
        out = set(own[switch])
        for child in below[switch]:
            out |= nodes(child)
        return out

    return {switch: nodes(switch) for switch in range(len(router_names(machine)))}


def d_mod_k_loads(machine, messages, up, index=None):
    """Return loads of a regular fat tree; `up` = w1 … wh. Climbs ports one at a time.

    The cable of a bundle is the destination's, on the way up and on the way down.
    """
    above, below = neighbours(machine)
    under = reach_down(machine)
    ports_out, ports_in = defaultdict(float), defaultdict(float)

    def keys(a, b, x):
        d = b if index is None else index[b]
        port = d % up[0]
        ports_out[a, port] += x
        at, level, w = int(machine.router[a, port]), 1, up[0]
        while b not in under[at]:
            parents = sorted(above[at])
            cables = above[at][parents[0]][1]
            port = (d // w) % (up[level] * cables)
            after = parents[port % up[level]]
            yield at, after, above[at][after][0], port // up[level]
            at, level, w = after, level + 1, w * up[level]
        while at not in machine.router[b].tolist():
            after = next(child for child in below[at] if b in under[child])
            kind, cables = below[at][after]
            level = int(kind[2:])
            port = (d // math.prod(up[:level])) % (up[level] * cables)
            yield at, after, kind.replace("up", "down"), port // up[level]
            at = after
        ports_in[b, machine.router[b].tolist().index(at)] += x

    found = walked((keys(a, b, x), x) for a, b, x in messages if a != b)
    return found, dict(ports_out), dict(ports_in)


def extended(above, below, climb, state):
    """Yield what follows a state (switch, whether it came down), with channel and links."""
    at, descending = state
    for after, (kind, count) in above[at].items():
        if not (climb and descending):
            yield (after, False), (at, after, kind), count
    for after, (kind, count) in below[at].items():
        yield (after, True), (at, after, kind.replace("up", "down")), count


def shortest_paths(source, target, more):
    """Return all shortest paths as (channels, how many ways links make of it)."""
    frontier = [((source, False), [], 1)]
    for _ in range(20):
        ends = [(keys, n) for state, keys, n in frontier if state[0] == target]
        if ends:
            return ends
        frontier = [
            (after, [*keys, key], n * count)
            for state, keys, n in frontier
            for after, key, count in more(state)
        ]
    raise AssertionError("no path")


def shortest_loads(machine, traffic, climb):
    """Return loads when router pairs split equally over all shortest paths, links singly.

    `climb`: paths go up first and then down.
    """
    above, below = neighbours(machine)
    out = defaultdict(Fraction)
    for (source, target), amount in traffic.items():
        if source == target or not amount:
            continue
        found = shortest_paths(source, target, partial(extended, above, below, climb))
        total = sum(n for _, n in found)
        for keys, n in found:
            for key in keys:
                out[key] += Fraction(amount) * n / total
    cables = {key: n for at in above for _, key, n in extended(above, below, False, (at, False))}
    cables |= {key: n for at in below for _, key, n in extended(above, below, False, (at, False))}
    return {key: (float(x / cables[key]),) * cables[key] for key, x in out.items() if x}


def everyone(rows, ranks, amount):
    """Return the messages of an all-to-all as (a, b, bytes)."""
    pairs = list(zip(rows, ranks, strict=True))
    return [(a, b, amount * p * q) for a, p in pairs for b, q in pairs if a != b]


def same(found, wanted):
    """Assert that two results agree to rounding."""
    assert found.keys() == wanted.keys()
    for key, x in wanted.items():
        np.testing.assert_allclose(found[key], x, rtol=1e-9)
