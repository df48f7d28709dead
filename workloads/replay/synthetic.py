# SPDX-License-Identifier: Apache-2.0
"""Synthetic traces by the model of Lublin and Feitelson (2003), with its typeless parameters.

J. Parallel Distrib. Comput. 63(11), 1105-1122: sizes are two-stage uniform in their logarithm,
many of them powers of two; logarithms of run times are hyper-gamma, longer for larger jobs;
gaps between submissions are log-gamma, stretched by a daily cycle. The model was fitted to
machines of about 128 nodes; here sizes go up to the machine's, and a job's share of the
largest size, not its number of nodes, decides how likely its run time is of either gamma.

The model has no limits, users or programs. A job asks for one to five times its run time
(Mu'alem and Feitelson 2001), rounded up to a usual limit; users and their programs follow
Zipf's law.
"""

from __future__ import annotations

import math

import numpy as np

from nidmap.placement.options import Options
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.workloads.replay.trace import Columns, Trace, clean_trace

#: Nodes of the machines that the model was fitted to.
_FITTED = 128
_SERIAL, _POWER, _LOW, _PROB = 0.244, 0.576, 0.8, 0.86
_RUN_SHORT, _RUN_LONG, _MIX = (4.2, 0.94), (312.0, 0.03), (-0.0054, 0.78)
_GAP, _CYCLE = (10.2303 * 1.0225, 0.4871), (8.1737, 3.9631)
#: Half hours of a day, the one that a day begins with, and the logarithm of the longest times.
_HALVES, _DAWN, _LONGEST = 48, 11, 12.0

#: Limits that users ask for, in minutes.
_USUAL = np.array([5, 15, 30, 60, 120, 240, 480, 720, 1440, 2880, 4320, 10080]) * 60.0

_USERS, _PROGRAMS = 60, 12


def synthetic_trace(
    days: float, load: float, seed: int, nodes: int, largest: int | None = None
) -> Trace:
    """Return a synthetic trace."""
    largest = min(nodes, largest or nodes)
    rng = np.random.default_rng(seed)
    sizes, runs = np.empty(0, dtype=np.int64), np.empty(0)
    wanted = load * nodes * days * 86400
    while (sizes * runs).sum() < wanted:
        more = _sizes(rng, 1000, largest)
        sizes, runs = np.append(sizes, more), np.append(runs, _run_times(rng, more, largest))
    count = int(np.searchsorted(np.cumsum(sizes * runs), wanted)) + 1
    sizes, runs = sizes[:count], runs[:count]
    runs *= wanted / float((sizes * runs).sum())  # the last job was more than what was missing
    submit = _arrivals(rng, count, days)
    limit = _USUAL[np.minimum(np.searchsorted(_USUAL, runs * rng.uniform(1, 5, count)), 11)]
    user = _zipf(rng, _USERS, count)
    program = (user * 7 + _zipf(rng, 3, count)) % _PROGRAMS
    name = f"lublin: {days:g} days, load {load:g}, seed {seed}"
    nan = np.full(count, math.nan)
    labels = [np.char.add(word, column.astype(str)) for word, column in
              (("", np.arange(1, count + 1)), ("user", user), ("program", program))]  # fmt: skip
    columns = Columns(labels[0], submit, nan, runs, limit, sizes.astype(float), *labels[1:])
    return clean_trace(columns, name)


def parse_synthetic(text: str, nodes: int, draw: int = 0) -> Trace:
    """Return the trace of ``lublin:days=31,load=0.85,seed=1,largest=1024``, each optional.

    `draw` is added to the seed.
    """
    options = Options(text if ":" in text else "lublin:seed=1")
    options.only("days", "load", "seed", "largest")
    given = options.given
    days = options.figure(given.get("days", "31"), "days", "number from 0.01 to 3660", 0.01, 3660)
    load = options.figure(given.get("load", "0.85"), "load", "share from 0.01 to 10", 0.01, 10)
    largest = options.whole("largest", nodes)
    return synthetic_trace(days, load, options.whole("seed", 1) + draw, nodes, largest)


def _sizes(rng: np.random.Generator, count: int, nodes: int) -> Ints:
    """Draw sizes: one node, a power of two, or any other."""
    high = math.log2(nodes)
    middle = max(_LOW, high - 2.5)
    lower = rng.random(count) <= _PROB
    exponent = rng.uniform(np.where(lower, _LOW, middle), np.where(lower, middle, high))
    kind = rng.random(count)
    exponent = np.where(kind <= _SERIAL + _POWER, np.round(exponent), exponent)
    drawn = np.where(kind <= _SERIAL, 1, np.round(2**exponent)).astype(np.int64)
    return np.minimum(drawn, nodes)


def _run_times(rng: np.random.Generator, sizes: Ints, nodes: int) -> Floats:
    """Draw run times in seconds; those that are too long are drawn again."""
    chance = np.clip(_MIX[0] * sizes * (_FITTED / nodes) + _MIX[1], 0, 1)
    drawn = np.full(len(sizes), np.inf)
    while (again := np.flatnonzero(drawn > _LONGEST)).size:
        short = rng.random(len(again)) <= chance[again]
        both = (rng.gamma(*part, size=len(again)) for part in (_RUN_SHORT, _RUN_LONG))
        drawn[again] = np.where(short, *both)
    return np.asarray(np.maximum(1.0, np.floor(np.exp(drawn))))


def _arrivals(rng: np.random.Generator, count: int, days: float) -> Floats:
    """Draw submissions: gaps in points, of which each half hour of a day has a number."""
    gaps = np.exp(np.minimum(rng.gamma(*_GAP, size=count), _LONGEST)) / 1800
    fine = np.arange(0.5, _HALVES + _DAWN + 1, 0.05)
    density = fine ** (_CYCLE[0] - 1) * np.exp(-fine / _CYCLE[1])
    cumulative = np.concatenate([[0.0], np.cumsum(density)])
    halves = np.arange(_DAWN, _HALVES + _DAWN)
    points = np.empty(_HALVES)
    edges = np.interp(np.append(halves - 0.5, halves[-1] + 0.5), fine, cumulative[1:])
    points[(halves - 1) % _HALVES] = np.diff(edges)
    points /= points.mean()
    when = np.cumsum(gaps)
    when *= days * _HALVES / when[-1]
    passed = np.concatenate([[0.0], np.cumsum(np.tile(points, math.ceil(days)))])
    return np.asarray(np.interp(when, passed, np.arange(len(passed)) * 1800.0))


def _zipf(rng: np.random.Generator, kinds: int, count: int) -> Ints:
    weight = 1 / np.arange(1, kinds + 1)
    return np.asarray(rng.choice(kinds, size=count, p=weight / weight.sum()))
