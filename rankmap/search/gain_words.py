# SPDX-License-Identifier: Apache-2.0
"""A plan's gain over the scheduler's own choice, and the reason, in one sentence."""

from __future__ import annotations

import numpy as np

from nidmap.placement.support.array_types import Floats
from nidmap.placement.support.quantities import size_text, time_text, times_text
from nidmap.rankmap.predict import Prediction
from nidmap.rankmap.predict.gain import Gain
from nidmap.rankmap.predict.prediction import PhaseTime

#: Links that carry less than this share of the busiest of their class are not counted as used.
USED = 1e-6


def gain_sentence(
    best: Prediction,
    default: Prediction | None,
    gain: Gain | None,
    same: bool,
    base: str,
    closer: str = "",
) -> str:
    """Say in one sentence what a plan gains over the baseline, and why.

    `best`: of the plan. `default`: of the baseline; None where the scheduler would start nothing.
    `gain`: of the plan over the baseline; None where it is the baseline. `same`: whether both are
    the same nodes. `base`: what the baseline is called. `closer`: that its nodes are closer
    together than the baseline's; '' where they are not.
    """
    if default is None:
        return f"{time_text(best.time_s)} expected; {base} would start no such job"
    if gain is None:
        return _kept_sentence(best, base)
    if not default.time_s:
        return "no placement is faster than another: messages take no time here"
    times = times_text(best.time_s, default.time_s)
    same_nodes = " on the same nodes, by the order of the ranks alone" if same else ""
    unsure = f"; largest uncertainty: {gain.most_unsure}" if gain.unknowns else ""
    unsure += f"; {gain.loses_if}" if gain.loses_if else ""
    unsure += f"; {gain.of_run}" if gain.of_run else ""
    likely = f", likely {gain.likely:.2f} x" if gain.unknowns else ""
    if closer and not gain.told:
        return f"no clear gain over {base} ({gain.range_text} as fast{likely}: {times}); {closer}"
    head = f"{gain.range_text} as fast as {base}{same_nodes}{likely} ({times}{unsure})"
    return f"{gain.untold}{head}: {gain_reason(best, default)}"


def _kept_sentence(prediction: Prediction, base: str) -> str:
    if prediction.share > 0.999:
        return (
            f"{base} is already best: {time_text(prediction.time_s)},"
            f" {np.floor(1000 * prediction.share) / 10:.3g} % of the limit for any nodes"
        )
    return f"{base} is kept: nothing tried is clearly faster ({time_text(prediction.time_s)})"


def gain_reason(best: Prediction, default: Prediction) -> str:
    """Return why one placement is faster than another.

    Goes by the phase in which most is won and the link that is the bottleneck there in
    the slower one: how uneven the load of its class is, and what becomes of it.
    """
    pairs = list(zip(default.phases, best.phases, strict=True))
    before, after = max(pairs, key=lambda pair: pair[0].seconds - pair[1].seconds)
    if before.cost.bandwidth - after.cost.bandwidth < (before.seconds - after.seconds) / 2:
        return _latency_words(best, default)
    worst = before.loads.worst()
    if worst.kind in ("injection", "ejection"):
        return _own_links(before, after)
    then, now = (_carrying_loads(phase, worst.kind) for phase in (before, after))
    top = float(then.max())
    uneven = top / then.mean()
    if uneven >= 1.05:
        what = (
            f"the busiest {worst.kind} link carries {uneven:.1f} times the mean of the"
            f" {len(then)} in use"
        )
    elif len(then) > 1:
        what = f"{len(then)} {worst.kind} links carry {size_text(top)} each"
    else:
        what = f"one {worst.kind} link carries {size_text(top)}"
    return f"there {what}; {_load_change(then, now, worst.kind)}"


def _load_change(before: Floats, after: Floats, kind: str) -> str:
    """Describe how the plan changes the loads on the bottleneck links of the default.

    The busiest link's load is all bytes over the links that carry them, times
    how much more than the mean it has: what of the three changes most is named.
    """
    if not after.any():
        return f"the plan takes no {kind} link"
    fewer = before.sum() / after.sum()
    wider = len(after) / len(before)
    uneven = after.max() / after.mean()
    evener = before.max() / before.mean() / uneven
    most = max(fewer, wider, evener)
    if most < 1.01:
        return "the plan's have more bandwidth left"
    if wider == most:
        return f"the plan spreads it over {len(after)} (there {len(before)})"
    if fewer == most:
        return f"the plan sends {100 * (1 - 1 / fewer):.0f} % less over {kind} links"
    if uneven < 1.05:
        return "this plan balances the links"
    return f"the plan's busiest carries {uneven:.1f} times its mean"


def _own_links(before: PhaseTime, after: PhaseTime) -> str:
    worst = before.loads.worst()
    less = 1 - after.loads.by_class()[worst.kind] / worst.seconds
    share = f"here {100 * less:.0f} % less"
    return f"there a node sends {size_text(worst.load)} over its own link, {share}"


def _latency_words(best: Prediction, default: Prediction) -> str:
    """Say which term of the time decreases, if no link's load explains the gain."""
    after = {term.name: term.seconds for term in best.terms}
    saved = {term.name: term.seconds - after.get(term.name, 0.0) for term in default.terms}
    name = max(saved, key=lambda term: saved[term])
    words = {
        "latency": "messages pass fewer links",
        "messages": "fewer messages leave a node",
        "bandwidth": "the busiest links carry less",
    }
    return f"{words.get(name, f'less {name}')} (saves {time_text(saved[name])})"


def _carrying_loads(phase: PhaseTime, kind: str) -> Floats:
    """Return the bytes on the links of a class that carry any."""
    channels = phase.loads.channels
    if kind not in channels.kinds:
        return np.zeros(0)
    loads = phase.loads
    class_loads = loads.carried[channels.kind[loads.used] == channels.kinds.index(kind)]
    return np.asarray(class_loads[class_loads > USED * class_loads.max(initial=0.0)])
