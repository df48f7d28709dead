"""Strategy ``auto`` of the ranks' order: by predicted time where that can be told, else by J.

Time can be told where the machine states bandwidths. What was optimised, and
why that, stands in the order's remark and in its ``optimised``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from placement.errors import NidmapError, UsageError
from placement.support.quantities import time_text
from rankmap import progress
from rankmap.joint.budget import TUNING, Budget
from rankmap.joint.given_nodes import Fastest, fastest_order
from rankmap.joint.job import predictor
from rankmap.order import Order
from rankmap.pattern import Pattern
from rankmap.predict import Predictor
from rankmap.predict.asked import fit_pattern
from rankmap.predict.gain import Gain, Gains, Placed
from rankmap.slots import Slots

__all__ = ["auto_order", "without_time"]

#: The part of the seconds that the cheapest order by J may take, which is a candidate.
BY_J = 0.3

#: Why no time is looked at where it would have to be simulated for every order.
SHARED = "links are shared fairly in time"


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
    fair = given.get("predictor") is not None and given["predictor"].fair
    why = SHARED if fair else without_time(slots, given.get("routing", ""))
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
    from placement.network import channels
    from placement.network.model import injection_bandwidth

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
    from rankmap.orders.auto import choose, describe_choice
    from rankmap.pattern import parse_pattern
    from rankmap.score import plain

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
    from rankmap.refine import cache

    wanted = fit_pattern(asked.pattern, slots)
    mapping = not math.isfinite(seconds) or cache.kernels_compiled()
    others = _cheapest(slots, pattern, seconds)  # may have to compile first
    budget = Budget(watch=lambda _: progress.step(), seconds=seconds)
    found = fastest_order(asked, slots, budget, others, mapping)
    finished = found.every or found.alike
    finished = finished or not (budget.late or budget.work < TUNING.budget or not mapping)
    gain = _gain(asked, slots, found)
    said = _words(found, gain, asked.routing)
    if gain is None:
        plain = np.arange(len(slots))
        found = replace(found, slots=plain, name="row-major", time_s=found.default_time_s)
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
    from rankmap.orders import arrange

    limited = f":seconds={BY_J * seconds:g}" if math.isfinite(seconds) else ""
    try:
        made = arrange(slots, pattern, f"auto{limited}")
    except NidmapError:
        return {}
    return {f"{made.strategy.removeprefix('auto: ')}, by J": made.slots}


def _words(found: Fastest, gain: Gain | None, routing: str) -> str:
    """Say what was found, in one clause."""
    default = time_text(found.default_time_s)
    if found.alike:
        return f"no order makes a difference here ({default}), the default is kept"
    many = f"all {found.judged} orders" if found.every else f"{found.judged} orders looked at"
    if found.same:
        return f"{many} take {default}, the default is kept"
    if found.name == "row-major":
        return f"the default order is the fastest of {many} ({default})"
    if gain is None:
        return f"the default order is kept ({default}): none of {many} is clearly faster"
    likely = f", likely {gain.likely:.2f} x" if gain.unknowns else ""
    unsure = f"; most unsure: {gain.most_unsure}" if gain.unknowns else ""
    return (
        f"{time_text(found.time_s)} against {default} of the default order"
        f"{gain.proviso(found.time_s, found.default_time_s, routing)},"
        f" {gain.range_text} as fast{likely} ({many}{unsure})"
    )
