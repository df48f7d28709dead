"""One sentence: what the plan is expected to win against the scheduler's own choice, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.support.quantities import size_text, time_text

if TYPE_CHECKING:
    from placement.support.array_types import Floats
    from rankmap.predict import Prediction
    from rankmap.predict.gain import Gain
    from rankmap.predict.prediction import PhaseTime

__all__ = ["reason", "why"]

#: Links that carry less than this share of the busiest of their class are not counted as used.
USED = 1e-6


def why(
    best: Prediction, default: Prediction | None, gain: Gain | None, same: bool, base: str
) -> str:
    """Return the sentence.

    Parameters
    ----------
    best : Prediction
        Of the plan.
    default : Prediction or None
        Of the baseline; None where the scheduler would start nothing.
    gain : Gain or None
        Of the plan over the baseline; None where it is the baseline.
    same : bool
        Whether both are the same nodes.
    base : str
        What the baseline is called.
    """
    if default is None:
        return f"{time_text(best.time_s)} expected; {base} would start no such job"
    if gain is None:
        return _kept(best, base)
    times = f"{time_text(best.time_s)} against {time_text(default.time_s)}"
    here = " on the same nodes by the order of the ranks" if same else ""
    unsure = f"; most unsure: {gain.most_unsure}" if gain.unknowns else ""
    likely = f", likely {gain.likely:.2f} x" if gain.unknowns else ""
    head = f"{gain.range_text} as fast as {base}{here}{likely} ({times}{unsure})"
    return f"{head}: {reason(best, default)}"


def _kept(found: Prediction, base: str) -> str:
    if found.share > 0.999:
        return (
            f"{base} is already best: {time_text(found.time_s)},"
            f" {_percent(found.share)} of the limit for any nodes"
        )
    return f"{base} is kept: nothing tried is clearly faster ({time_text(found.time_s)})"


def _percent(share: float) -> str:
    return f"{np.floor(1000 * share) / 10:.3g} %"


def reason(best: Prediction, default: Prediction) -> str:
    """Return why one placement is faster than another.

    Goes by the phase in which most is won and the link that binds there in
    the slower one: how uneven the load of its class is, and what becomes of it.
    """
    pairs = list(zip(default.phases, best.phases, strict=True))
    before, after = max(pairs, key=lambda pair: pair[0].seconds - pair[1].seconds)
    if before.bandwidth_s - after.bandwidth_s < (before.seconds - after.seconds) / 2:
        return _latency(best, default)
    worst = before.loads.worst()
    if worst.kind in ("injection", "ejection"):
        return _own_links(before, after)
    then, now = (_loads(one, worst.kind) for one in (before, after))
    top = float(then.max())
    uneven = top / then.mean()
    if uneven >= 1.05:
        what = f"one {worst.kind} link carries {uneven:.1f} x the mean"
    elif len(then) > 1:
        what = f"{len(then)} {worst.kind} links carry {size_text(top)} each"
    else:
        what = f"one {worst.kind} link carries {size_text(top)}"
    return f"there {what}; {_becomes(then, now, worst.kind)}"


def _becomes(before: Floats, after: Floats, kind: str) -> str:
    """Say what the plan makes of the load of the class that binds in the default.

    The busiest link's load is all bytes over the links that carry them, times
    how much more than the mean it has: what of the three changes most is named.
    """
    if not len(after):
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
        return "the plan's carry about the same each"
    return f"the plan's busiest carries {uneven:.1f} x its mean"


def _own_links(before: PhaseTime, after: PhaseTime) -> str:
    worst = before.loads.worst()
    less = 1 - after.loads.by_class()[worst.kind] / worst.seconds
    share = f"here {100 * less:.0f} % less"
    return f"there a node sends {size_text(worst.load)} over its own link, {share}"


def _latency(best: Prediction, default: Prediction) -> str:
    """Say which of the other terms is less."""
    after = {one.name: one.seconds for one in best.terms}
    saved = {one.name: one.seconds - after.get(one.name, 0.0) for one in default.terms}
    name = max(saved, key=lambda one: saved[one])
    words = {
        "latency": "messages pass fewer links",
        "messages": "fewer messages leave a node",
        "bandwidth": "the busiest links carry less",
    }
    return f"{words.get(name, f'less {name}')} (saves {time_text(saved[name])})"


def _loads(found: PhaseTime, kind: str) -> Floats:
    """Return the bytes on the links of a class that carry any."""
    channels = found.loads.channels
    if kind not in channels.kinds:
        return np.zeros(0)
    own = found.loads.load[channels.kind == channels.kinds.index(kind)]
    return np.asarray(own[own > USED * own.max(initial=0.0)])
