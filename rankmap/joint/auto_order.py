"""Strategy ``auto`` of the ranks' order: by predicted time where that can be told, else by J.

Time can be told where the machine states bandwidths. What was optimised, and
why that, stands in the order's remark and in its ``optimised``.

Where ranks are so few that there is time for every order, all are looked at.
Else, on nodes with as many ranks each, it is the search of ``nidmap plan``
(`rankmap.joint.search`) with no other node to go to: what it finds for these
nodes is found here, whatever their order. Where nodes differ in their ranks,
nodes cannot change places freely: the orders of that search are tried on the
slots as they are, and then ranks, and nodes with as many, are exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placement.errors import NidmapError, UsageError
from placement.network import channels
from placement.network.model import injection_bandwidth
from placement.request import Request
from placement.support.array_types import Ints
from placement.support.quantities import time_text
from rankmap import progress
from rankmap.joint import work
from rankmap.joint.budget import TUNING, Budget
from rankmap.joint.followed import exchange_nodes
from rankmap.joint.job import predictor, stand_in
from rankmap.joint.judge import Judge, State
from rankmap.joint.rank_orders import quick_orders, ranks_alike, ready, searched_orders
from rankmap.joint.search import search
from rankmap.order import Order
from rankmap.orders import arrange
from rankmap.orders.auto import choose, describe_choice
from rankmap.pattern import Pattern, parse_pattern
from rankmap.predict import Predictor
from rankmap.predict.gain import Gain, Gains, Placed
from rankmap.predict.job_pattern import fit_pattern
from rankmap.refine import cache
from rankmap.score import plain
from rankmap.slots import Slots

__all__ = ["Fastest", "auto_order", "fastest_order", "without_time"]

#: The part of the seconds that the cheapest order by J may take, which is a candidate.
BY_J = 0.3

#: What every launcher does by itself.
DEFAULT = "row-major"

#: What an order is called after exchanges that are judged by ranks that are followed.
FOLLOWED = "exchanged as ranks are followed"

#: An order is faster than the default only by more than rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Fastest:
    """The fastest order that was found.

    Attributes
    ----------
    slots : int64 (ranks,)
        Slot of each rank.
    name : str
        Where it comes from; ``row-major`` for the default.
    time_s, default_time_s : float
        Of it, and with rank r on slot r.
    judged : int
        Orders that were looked at.
    every : bool
        Whether these were all there are.
    alike : bool
        Whether no order can make a difference, as every rank does the same.
    same : bool
        Whether all that were looked at take the same time.
    """

    slots: Ints
    name: str
    time_s: float
    default_time_s: float
    judged: int = 1
    every: bool = False
    alike: bool = False
    same: bool = False


def auto_order(
    slots: Slots,
    pattern: str | Pattern,
    job: Mapping[str, Any] | None = None,
    seconds: float = math.inf,
) -> Order:
    """Return the best order of a job's ranks on its nodes.

    Parameters
    ----------
    slots : Slots
    pattern : str or Pattern
        See `rankmap.pattern.parse_pattern`.
    job : mapping or None
        What else is said of what the job sends: ``bytes``, ``routing`` … as
        `rankmap.joint.job.predictor` takes them.
    seconds : float
        Of processor time that there are.

    Returns
    -------
    Order
        Never slower, as predicted (or of a higher J), than the default order.

    Raises
    ------
    UsageError
        A pattern whose ranks are not the slots, or a word on the job that makes no sense.

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.slots import slots_of
    >>> found = auto_order(slots_of(nidmap.load_machine("torus:8,bw=1"), "0-5", 1), "stencil:2x3")
    >>> found.optimised["by"], found.optimised["time_s"] < found.optimised["default_time_s"]
    ('time', True)
    """
    given = dict(job or {})
    why = without_time(slots, given.get("routing", ""))
    if why:
        return _by_j(slots, pattern, seconds, why)
    ppn = slots.counts.tolist()
    asked, _ = predictor(slots.machine, {**given, "pattern": pattern, "ppn": ppn})  # type: ignore[arg-type]  # without_time has seen it
    return _by_time(asked, slots, pattern, seconds)


def without_time(slots: Slots, routing: str = "") -> str:
    """Return why no time can be predicted on some slots; '' where it can.

    Raises
    ------
    UsageError
        A routing that does not apply.
    """
    if slots.machine is None or slots.rows is None:
        return "no machine is named"
    try:
        bandwidth = channels(slots.machine, routing).bandwidth
    except UsageError as error:
        if routing:
            raise
        return error.message
    known = bandwidth if len(bandwidth) else injection_bandwidth(slots.machine)
    return "" if np.isfinite(known).any() else f"{slots.machine.name} states no bandwidths"


def _by_j(slots: Slots, pattern: str | Pattern, seconds: float, why: str) -> Order:
    wanted = fit_pattern(parse_pattern(pattern) if isinstance(pattern, str) else pattern, slots)
    found = choose(wanted, slots, seconds)
    made = describe_choice(found)
    optimised = {
        "by": "J",
        "why": why,
        "cost": plain(found.cost),
        "default_cost": plain(found.default_cost),
        "finished": found.close or not math.isfinite(seconds),
    }
    notes = getattr(wanted, "notes", ())
    remark = "; ".join([*notes, f"chosen by J ({why}): {made.remark}"])
    return Order(made.slots, slots, made.strategy, wanted.spec, remark, optimised)


def _by_time(asked: Predictor, slots: Slots, pattern: str | Pattern, seconds: float) -> Order:
    wanted = fit_pattern(asked.pattern, slots)
    mapping = not math.isfinite(seconds) or cache.kernels_compiled()
    others = _cheapest(slots, pattern, seconds)  # may have to compile first
    budget = Budget(watch=lambda _: progress.step(), seconds=seconds)
    found = fastest_order(asked, slots, budget, others, mapping)
    finished = found.every or found.alike
    finished = finished or not (budget.late or budget.work < TUNING.budget or not mapping)
    gain = _gain(asked, slots, found)
    said = _words(found, gain)
    if gain is None:
        row_major = np.arange(len(slots))
        found = replace(found, slots=row_major, name=DEFAULT, time_s=found.default_time_s)
    optimised = {
        "by": "time",
        "time_s": found.time_s,
        "default_time_s": found.default_time_s,
        "gain": (gain or Gain(1.0, 1.0, 1.0)).document(),
        "routing": asked.routing,
        "bytes": asked.size,
        "algorithm": asked.algorithm,
        "looked_at": found.judged,
        "every_order": found.every,
        "finished": finished,
    }
    notes = getattr(wanted, "notes", ())
    remark = "; ".join([*notes, f"chosen by predicted time: {said}"])
    return Order(found.slots, slots, f"auto: {found.name}", wanted.spec, remark, optimised)


def _gain(asked: Predictor, slots: Slots, found: Fastest) -> Gain | None:
    """Return what an order wins; None where the default is not worth leaving for it."""
    if found.time_s >= found.default_time_s * (1 - TUNING.clearly):
        return None
    assert slots.rows is not None
    gain = Gains(asked, Placed(slots.rows)).of(Placed(slots.rows, found.slots))
    return gain if gain.pays(TUNING.clearly) else None


def _cheapest(slots: Slots, pattern: str | Pattern, seconds: float) -> dict[str, Any]:
    """Return the order with the least J, by its name; none where there is none."""
    limited = f":seconds={BY_J * seconds:g}" if math.isfinite(seconds) else ""
    try:
        made = arrange(slots, pattern, f"auto{limited}")
    except NidmapError:
        return {}
    return {f"{made.strategy.removeprefix('auto: ')}, by J": made.slots}


def _words(found: Fastest, gain: Gain | None) -> str:
    """Say what was found, in one clause."""
    default = time_text(found.default_time_s)
    if found.alike:
        return f"no order makes a difference here ({default}), the default is kept"
    many = f"all {found.judged} orders" if found.every else f"{found.judged} orders looked at"
    if found.same:
        return f"{many} take {default}, the default is kept"
    if found.name == DEFAULT:
        return f"the default order is the fastest of {many} ({default})"
    if gain is None:
        return f"the default order is kept ({default}): none of {many} is clearly faster"
    likely = f", likely {gain.likely:.2f} x" if gain.unknowns else ""
    unsure = f"; most unsure: {gain.most_unsure}" if gain.unknowns else ""
    unsure += f"; {gain.loses_if}" if gain.loses_if else ""
    return (
        f"{time_text(found.time_s)} against {default} of the default order"
        f", {gain.range_text} as fast{likely} ({many}{unsure})"
    )


def fastest_order(
    asked: Predictor,
    slots: Slots,
    budget: Budget,
    others: dict[str, Ints] | None = None,
    mapping: bool = True,
) -> Fastest:
    """Return the order of the ranks with the least predicted time on some slots.

    Parameters
    ----------
    asked : Predictor
        With the slots' own ranks a node.
    slots : Slots
        Of a machine.
    budget : Budget
    others : dict of str to int64 (ranks,) or None
        Orders that somebody else has made, which this one is never slower than.
    mapping : bool
        Whether there is time to load what maps graphs.

    Returns
    -------
    Fastest
        Never slower, as predicted, than rank r on slot r.

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.joint.budget import Budget
    >>> from rankmap.predict import Predictor
    >>> from rankmap.slots import slots_of
    >>> m = nidmap.load_machine("torus:8,bw=1")
    >>> asked = Predictor(m, "stencil:2x3", [1] * 6, 1e6, latency=0)
    >>> found = fastest_order(asked, slots_of(m, "0-5", 1), Budget())
    >>> found.default_time_s, found.time_s, found.every
    (0.003, 0.002, True)
    """
    assert slots.rows is not None
    pattern = fit_pattern(asked.pattern, slots)
    first = asked.time(slots.rows)
    row_major = np.arange(len(slots))
    if len(slots.counts) == 1 or ranks_alike(pattern, asked.algorithms(pattern)):
        return Fastest(row_major, DEFAULT, first, first, alike=True)
    every = _every_order(asked, slots, budget)
    if every is not None:
        return every
    ready_made = {DEFAULT: row_major, **(others or {})}
    quick = stand_in(asked, slots.rows)
    if mapping:
        ready(pattern)
    if mapping and slots.ppn is not None:
        made, judged = _search_orders(quick, slots, budget)
    else:
        made, judged = _try_usual_orders(quick, pattern, slots, budget, ready_made, mapping)
    times = {name: asked.time(slots.rows, row) for name, row in (ready_made | made).items()}
    if asked.following and slots.ppn is not None:
        name = min(times, key=times.__getitem__)
        made[FOLLOWED] = _exchange_whole_nodes(asked, slots, (ready_made | made)[name], budget)
        times[FOLLOWED] = asked.time(slots.rows, made[FOLLOWED])
    name = min(times, key=times.__getitem__)  # of equals the default, which stands first
    if times[name] >= first * (1 - ROUNDING):
        name = DEFAULT
    row = (ready_made | made)[name]
    same = max(times.values()) <= first * (1 + ROUNDING) and name == DEFAULT
    return Fastest(row, name, times[name], first, judged + len(times), same=same)


def _exchange_whole_nodes(asked: Predictor, slots: Slots, row: Ints, budget: Budget) -> Ints:
    """Return an order after exchanges of whole nodes that are judged as was asked."""
    assert slots.rows is not None
    assert slots.ppn is not None
    alike = copy(asked)
    alike.ppn = slots.ppn
    nowhere = slots.rows[:0]
    found = exchange_nodes(alike, State(slots.rows, row, FOLLOWED), nowhere, nowhere, budget)
    order = np.argsort(slots.rows)
    place = order[np.searchsorted(slots.rows, found.rows, sorter=order)]
    return place[row // slots.ppn] * slots.ppn + row % slots.ppn


def _every_order(asked: Predictor, slots: Slots, budget: Budget) -> Fastest | None:
    """Look at every order; None where that takes too long."""
    assert slots.rows is not None
    us = work.judging(asked, slots.rows)
    if _ways(slots.counts) * us > TUNING.every * budget.work:
        return None
    budget.part(TUNING.every, "every order")
    row_major = np.arange(len(slots))
    first = least = asked.time(slots.rows)
    best, most, judged = row_major, first, 0
    for node in _layouts(slots.node):
        if budget.ended:
            return None
        budget.spend(us)
        row = Order.of_nodes(node, slots).slots
        time = asked.time(slots.rows, row)
        judged += 1
        most = max(most, time)
        if time < least * (1 - ROUNDING):
            best, least = row, time
    name = DEFAULT if best is row_major else "exhaustive"
    same = most <= first * (1 + ROUNDING) and best is row_major
    return Fastest(best, name, least, first, judged, every=True, same=same)


def _ways(counts: Ints) -> float:
    """Return how many ways there are to put the ranks on the nodes."""
    logs = math.lgamma(int(counts.sum()) + 1) - sum(math.lgamma(n + 1) for n in counts.tolist())
    return math.exp(min(logs, 700.0))


def _layouts(node: Ints) -> Iterator[Ints]:
    """Yield every way to give ranks their nodes, from the ascending one on.

    Examples
    --------
    >>> [row.tolist() for row in _layouts(np.array([0, 0, 1]))]
    [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """
    row = node.copy()
    while True:
        yield row
        falls = np.flatnonzero(row[:-1] < row[1:])
        if not len(falls):
            return
        at = int(falls[-1])
        last = int(np.flatnonzero(row > row[at])[-1])
        row = row.copy()
        row[[at, last]] = row[[last, at]]
        row[at + 1 :] = row[at + 1 :][::-1]


def _search_orders(quick: Predictor, slots: Slots, budget: Budget) -> tuple[dict[str, Ints], int]:
    """Return what the search of ``plan`` finds on these nodes, as slots of theirs."""
    assert slots.rows is not None
    ppn = int(slots.counts[0])
    free = np.zeros(len(quick.machine), dtype=bool)
    free[slots.rows] = True
    alike = copy(quick)
    alike.ppn = ppn  # places share one number of ranks
    found = search(alike, Request(len(slots.rows), free), budget)
    place = np.full(len(quick.machine), -1)
    place[slots.rows] = np.arange(len(slots.rows))
    made: dict[str, Ints] = {}
    for state in found.states:
        on = np.arange(len(slots)) if state.slots is None else state.slots
        listed, _, how = state.name.partition(", ")
        made.setdefault(how or f"nodes by {listed}", place[state.rows[on // ppn]] * ppn + on % ppn)
    return made, found.judged


def _try_usual_orders(
    quick: Predictor,
    pattern: Pattern,
    slots: Slots,
    budget: Budget,
    made: dict[str, Ints],
    mapping: bool,
) -> tuple[dict[str, Ints], int]:
    """Return the best of the usual orders on the slots as they are, and what exchanges make of it.

    Parameters
    ----------
    made : dict of str to int64 (ranks,)
        Orders to begin with.
    """
    assert slots.rows is not None
    judge = Judge(quick, slots.rows)
    us = work.quick_order(len(slots))
    makes = {name: (us, make) for name, make in quick_orders(pattern, slots).items()}
    if mapping:
        dearest = TUNING.dearest * budget.work / TUNING.budget
        makes |= searched_orders(pattern, slots, dearest)
    budget.part(TUNING.orders, "orders")
    worth = {name: judge.score(slots.rows, row)[0].soft for name, row in made.items()}
    rows = dict(made)
    for name, (us, make) in makes.items():
        if not budget.spend(us + judge.us, name):
            break
        try:
            row = make(slots)
        except NidmapError:
            continue  # does not fit this pattern or these nodes
        if row is not None:
            rows[name], worth[name] = row, judge.score(slots.rows, row)[0].soft
    best = min(worth, key=worth.__getitem__)
    budget.part(TUNING.steps + TUNING.prices, "exchanges")
    row = _exchange_by_lot(judge, slots, rows[best], worth[best], budget)
    return {best: rows[best], f"{best}, then exchanges": row}, judge.judged


def _exchange_by_lot(judge: Judge, slots: Slots, row: Ints, worth: float, budget: Budget) -> Ints:
    """Return an order after exchanges drawn by lot that each made it better.

    Two ranks change places, or two nodes with as many ranks all of theirs.
    """
    assert slots.rows is not None
    rng = np.random.default_rng(0)
    node, counts, first = slots.node[row], slots.counts, slots.first
    stale, ranks = 0, len(row)
    while stale < TUNING.stale * max(2, len(counts)) and budget.spend(judge.us):
        other, stale = row.copy(), stale + 1
        if rng.random() < 0.5:
            a, b = rng.integers(ranks, size=2).tolist()
            if node[a] == node[b]:
                continue
            other[[a, b]] = row[[b, a]]
        else:
            a, b = rng.integers(len(counts), size=2).tolist()
            if a == b or counts[a] != counts[b]:
                continue
            here, there = node == a, node == b
            other[here] += first[b] - first[a]
            other[there] += first[a] - first[b]
        score = judge.score(slots.rows, other)[0].soft
        if score < worth * (1 - TUNING.won):
            row, worth, stale = other, score, 0
            node = slots.node[row]
    return row
