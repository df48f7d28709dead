"""Past jobs as a picture: size against slowdown, one dot a job."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from rankmap.compare.plots import COLOURS, picture
from rankmap.past_jobs.summary import WORSE, Summary

__all__ = ["draw"]

#: Applications that have a colour of their own; the others share grey.
_NAMED = 6


def draw(summary: Summary, form: str) -> bytes:
    """Return the picture of a summary as ``svg`` or ``png``."""
    return picture(form, lambda new: _figure(summary, new), {"text.parse_math": False})


def _figure(summary: Summary, figure: Any) -> Any:
    drawn = figure(figsize=(9, 5.6), layout="constrained")
    drawn.suptitle(textwrap.fill(summary.sentence, 90), fontsize=11, fontweight="bold")
    axes = drawn.add_subplot()
    names = [summary.application(verdict) for verdict in summary.verdicts]
    shown = list(dict.fromkeys(kin.application for kin in summary.kin))[:_NAMED]
    nodes = np.array([verdict.nodes for verdict in summary.verdicts], dtype=float)
    slow = np.array([verdict.slowdown.likely for verdict in summary.verdicts], dtype=float)
    hours = np.array([summary.hours_of(verdict) for verdict in summary.verdicts], dtype=float)
    area = 12 + 150 * np.sqrt(hours / max(hours.max(initial=0.0), 1e-300))
    other = np.array([name not in shown for name in names], dtype=bool)
    for mask, colour, label in (
        (other, "#999999", "others"),
        *(
            (np.array([name == wanted for name in names], dtype=bool), colour, wanted)
            for wanted, colour in zip(shown, COLOURS.values(), strict=False)
        ),
    ):
        if mask.any():
            dots: dict[str, Any] = {"color": colour, "label": label[:30], "alpha": 0.55}
            axes.scatter(nodes[mask], slow[mask], s=area[mask], linewidths=0, **dots)
    axes.axhline(WORSE, color="black", linewidth=0.8, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(0.97, max(1.5, float(slow.max(initial=1.0))) * 1.1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for set_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        set_formatter(lambda value, _: f"{value:.3g} x")
    axes.set_xlabel("nodes of the job (area of a dot: its node-hours)")
    axes.set_ylabel("communication against the best placement then free")
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8, markerscale=0.6)
    return drawn
