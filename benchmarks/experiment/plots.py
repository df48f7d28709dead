# SPDX-License-Identifier: Apache-2.0
"""The experiment as pictures: gains by seed, predicted against measured, links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.rankmap.compare.plots import picture_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Run = dict[str, Any]

#: Of cases, where points of several share a panel; and of arms.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#5c5c5c", "#882255")
_ARMS = {"nidmap": "#0072b2", "order": "#009e73", "random": "#8a8a8a"}
_OTHER = "#d55e00"

#: What an arm is called where there is room for two short lines.
_WORDS = {"order": "nidmap's\norder", "nidmap": "nidmap", "random": "random"}

_SETTINGS = {
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.grid": True, "axes.grid.axis": "y", "grid.color": "#e4e4e4", "grid.linewidth": 0.6,
}  # fmt: skip

#: Inches of each picture.
SIZES = {"gains": (11.6, 4.4), "predicted": (5.6, 5.4), "links": (9.2, 4.0)}


def draw(name: str, runs: Sequence[Run]) -> bytes:
    """Draw one picture as SVG.

    Parameters
    ----------
    name : str
        One of `PLOTS`.
    runs : sequence of dict
    """

    def build(new: Any) -> Any:
        figure = new(figsize=SIZES[name], layout="constrained")
        PLOTS[name](figure, runs)
        return figure

    return picture_bytes("svg", build, _SETTINGS)


def _cases(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run["case"] for run in runs))


def _gains(figure: Any, runs: Sequence[Run]) -> None:
    """Draw each seed's ratio with its interval, one panel per case, and each arm's median."""
    cases = _cases(runs)
    arms = {case: _arms(runs, case) for case in cases}
    panels = figure.subplots(
        1, len(cases), sharey=True, squeeze=False,
        width_ratios=[len(arms[case]) + 0.2 for case in cases],
    )[0]  # fmt: skip
    ratios = [arm["ratio"] for run in runs for arm in run["arms"]]
    for panel, case in zip(panels, cases, strict=True):
        panel.axhline(1.0, color="black", linewidth=0.8)
        for k, name in enumerate(arms[case]):
            found = [arm for run in runs if run["case"] == case
                     for arm in run["arms"] if arm["arm"] == name]  # fmt: skip
            _points(panel, k, _ARMS.get(name, _OTHER), found)
        panel.set_title(case, fontsize=9, fontweight="bold")
        words = [_WORDS.get(name, name.replace(" ", "\n")) for name in arms[case]]
        panel.set_xticks(range(len(words)), words, fontsize=7.5)
        panel.set_xlim(-0.6, len(words) - 0.4)
        panel.set_yscale("log")
        low, high = min(ratios) / 1.25, max(ratios) * 1.25
        panel.set_ylim(low, high)
        panel.set_yticks([t for t in (0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4) if low < t < high])
        panel.yaxis.set_major_formatter("{x:g} x")
        panel.tick_params(axis="x", length=0)
        panel.minorticks_off()
    panels[0].set_ylabel("times as fast as Slurm's choice")


def _arms(runs: Sequence[Run], case: str) -> list[str]:
    """Return a case's ratios to Slurm's choice, without the controls."""
    names = [a["arm"] for run in runs if run["case"] == case for a in run["arms"]]
    return [name for name in dict.fromkeys(names) if name not in ("slurm", "slurm again")]


def _points(panel: Any, at: int, colour: str, found: list[Run]) -> None:
    """Draw an arm's seeds side by side, with their median as a labelled bar."""
    x = at + np.linspace(-0.25, 0.25, len(found)) if len(found) > 1 else [at]
    ratio, low, high = (
        np.array([arm[name] or default for arm in found], float)
        for name, default in (("ratio", 0.0), ("low", 0.0), ("high", -np.inf))
    )
    off = np.maximum([ratio - low, high - ratio], 0.0)
    panel.errorbar(x, ratio, off, fmt="o", markersize=3.5, linewidth=0.7, color=colour, alpha=0.75)
    middle = float(np.median(ratio))
    panel.plot([at - 0.36, at + 0.36], [middle, middle], color=colour, linewidth=2.2)
    # Above all points and intervals that are in sight, where nothing is hidden by it.
    panel.annotate(
        f"{middle:.2f}", (at, max(ratio)), (0, 8), textcoords="offset points", ha="center",
        fontsize=8, color=colour, fontweight="bold",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8},
    )  # fmt: skip


def _draw_predictions(figure: Any, runs: Sequence[Run]) -> None:
    """Draw measured against predicted ratios, with a band of 15 %."""
    panel = figure.subplots()
    ends = [1.0]
    for k, case in enumerate(_cases(runs)):
        arms = [a for r in runs if r["case"] == case for a in r["arms"]
                if a["arm"] != "slurm" and not a["control"]]  # fmt: skip
        x, y = [a["predicted"] for a in arms], [a["ratio"] for a in arms]
        ends += x + y
        panel.plot(
            x, y, "o", markersize=5, markeredgecolor="white", markeredgewidth=0.4,
            color=_COLOURS[k % len(_COLOURS)], label=case, alpha=0.85,
        )  # fmt: skip
    low, high = min(ends) * 0.9, max(ends) * 1.1
    line = np.array([low, high])
    panel.fill_between(line, line / 1.15, line * 1.15, color="#ececec", label="15 % off", zorder=0)
    panel.plot(line, line, color="black", linewidth=0.6, zorder=1)
    panel.set(xscale="log", yscale="log", xlabel="predicted: times as fast as Slurm's choice",
              ylabel="measured", xlim=(low, high), ylim=(low, high), aspect="equal")  # fmt: skip
    ticks = [t for t in (0.4, 0.6, 1, 1.5, 2, 3, 4) if low < t < high]
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_ticks(ticks, [f"{t:g}" for t in ticks])
        axis.set_ticks([], minor=True)
    panel.legend(fontsize=8, frameon=False, loc="upper left")


def _links(figure: Any, runs: Sequence[Run]) -> None:
    """Draw one seed's bytes link by link, and the deviation of all counts."""
    one, every = figure.subplots(1, 2)
    bins = np.arange(-0.06, 0.0601, 0.0025)
    high = 0.0
    for k, case in enumerate(_cases(runs)):
        colour = _COLOURS[k % len(_COLOURS)]
        mine = [run for run in runs if run["case"] == case]
        first = [link for arm in mine[0]["arms"] for link in arm["links"]]
        x = [link["predicted"] / 1e6 for link in first]
        high = max([high, *x])
        y = [link["counted"] / 1e6 for link in first]
        one.plot(x, y, "o", markersize=2.6, color=colour, label=case, alpha=0.6)
        off = [link["counted"] / link["predicted"] - 1
               for run in mine for arm in run["arms"] for link in arm["links"]]  # fmt: skip
        counts, _ = np.histogram(np.clip(off, bins[0], bins[-1]), bins)
        every.stairs(counts / max(1, len(off)), bins, color=colour, linewidth=1.3)
    one.plot([0, high], [0, high], color="black", linewidth=0.6)
    one.set(xlabel="predicted with headers, MB a run", ylabel="counted by the kernel, MB a run")
    one.legend(fontsize=8, frameon=False)
    every.axvspan(-0.05, 0.05, color="#f1f1f1", zorder=0)
    every.set(xlabel="counted over predicted", ylabel="part of all links")
    every.xaxis.set_major_formatter(lambda x, _: f"{x:+.0%}")
    every.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")


#: Pictures by name.
PLOTS: dict[str, Callable[[Any, Sequence[Run]], None]] = {
    "gains": _gains,
    "predicted": _draw_predictions,
    "links": _links,
}
