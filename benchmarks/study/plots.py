# SPDX-License-Identifier: Apache-2.0
"""The study as pictures: published against modelled values, one picture per paper.

matplotlib is loaded here and nowhere else.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.study.published import DASH, FFT, ISX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.study.result import Part

#: Okabe and Ito's colours, which colour-blind readers tell apart.
PAPER, MODEL, THIRD, FOURTH = "#d55e00", "#0072b2", "#009e73", "#cc79a7"
PALE = "#a6cee8"

STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
}


def draw(parts: Sequence[Part], form: str = "svg") -> dict[str, bytes]:
    """Draw a picture for each paper with series, as ``svg`` or ``png``.

    Raises
    ------
    UsageError
        matplotlib is not there.
    """
    from nidmap.rankmap.compare.plots import picture_bytes

    out = {}
    for paper, make in PICTURES.items():
        series = {k: v for part in parts if part.paper == paper for k, v in part.series.items()}
        if not series:
            continue
        out[paper] = picture_bytes(form, partial(_fill_figure, make, series), STYLE)
    return out


def _fill_figure(
    make: Callable[[Any, dict[str, Any]], None], series: dict[str, Any], new: Any
) -> Any:
    """Return a new figure with a paper's series."""
    figure = new(layout="constrained")
    make(figure, series)
    return figure


def _fft(figure: Any, series: dict[str, Any]) -> None:
    figure.set_size_inches(11.5, 7.6)
    panels: dict[str, Callable[[Any, Any], None]] = {
        "placement": _placement,
        "order": _order,
        "bandwidth": _bandwidth,
        "scaling": _scaling,
    }
    grid = figure.subplots(2, 2).ravel()
    for axes, (name, panel) in zip(grid, panels.items(), strict=True):
        if name in series:
            panel(axes, series[name])
        else:
            axes.set_axis_off()


def _placement(axes: Any, one: Any) -> None:
    place = np.arange(len(one["nodes"]))
    model = 100 * np.array(one["model"])
    middle = np.median(model, axis=1)
    axes.bar(place - 0.2, 100 * np.array(one["published"]), 0.38, color=PAPER, label="paper")
    axes.bar(place + 0.2, middle, 0.38, color=MODEL, label="model, median")
    spread = [middle - model.min(axis=1), model.max(axis=1) - middle]
    axes.errorbar(place + 0.2, middle, spread, fmt="none", ecolor="black", capsize=2, lw=0.9)
    axes.axhline(0, color="black", lw=0.8)
    axes.set_xticks(place, [str(n) for n in one["nodes"]])
    axes.set_xlabel("nodes, 1 rank each")
    axes.set_ylabel("time saved, %")
    axes.set_title("Table IV: directly connected blades against the default")
    axes.legend(frameon=False, loc="upper left", ncols=2)
    axes.set_ylim(top=1.2 * float(model.max()))


def _order(axes: Any, one: Any) -> None:
    place = np.arange(len(one["ranks"]))
    low, high = (np.clip(100 * np.array(one[k]), -120, None) for k in ("low", "high"))
    axes.bar(place, high - low, 0.5, low, color=PALE, label="model, all grids")
    axes.plot(place, 100 * np.array(one["published"]), "D", color=PAPER, label="paper")
    for k, value in enumerate(one["low"]):
        if value < -1.2:
            axes.text(k, -118, f"to {100 * value:.0f}", ha="center", va="bottom", fontsize=8)
    axes.axhline(0, color="black", lw=0.8)
    axes.set_xticks(place, [f"{n:,}" for n in one["ranks"]])
    axes.set_xlabel("ranks, 32 a node")
    axes.set_ylabel("time saved, %")
    axes.set_ylim(-122, 25)
    axes.set_title("Table III: Morton's order against row-major")
    axes.legend(frameon=False, loc="upper left", ncols=2)


def _bandwidth(axes: Any, one: Any) -> None:
    nodes = one["nodes"]
    axes.loglog(nodes, one["full"], "o-", color=MODEL, label="model, a node at 32 ranks")
    axes.loglog(nodes, one["wide"], "o:", color=THIRD, label="the same, green links x 4")
    axes.loglog(nodes, one["one"], "s--", color=FOURTH, label="model, a node at 1 rank")
    axes.loglog(
        list(FFT.FULL_NODE_GBS), list(FFT.FULL_NODE_GBS.values()), "D", color=PAPER,
        label="paper, a node at 32 ranks", ms=7,
    )  # fmt: skip
    axes.axhline(FFT.ONE_RANK_GBS, color=PAPER, lw=1, ls="--", label="paper, at 1 rank")
    axes.set_xticks(nodes, [str(n) for n in nodes])
    axes.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    axes.minorticks_off()
    axes.set_xlabel("nodes")
    axes.set_ylabel("GB/s a node")
    axes.set_title("IV-B: all-to-all bandwidth")
    axes.legend(frameon=False, fontsize=8)


def _scaling(axes: Any, one: Any) -> None:
    nodes = np.array(one["nodes"], dtype=float)
    for colour, (side, seconds) in zip(
        (MODEL, THIRD, FOURTH, "black"), one["sides"].items(), strict=False
    ):
        axes.loglog(nodes, seconds, "o-", ms=3, color=colour, label=f"model, {side} cubed")
    first = one["sides"][max(one["sides"], key=int)]
    near, far = nodes[nodes <= 60], nodes[nodes > 60]
    start = 1.6 * first[0]
    line = start * (near / near[0]) ** -FFT.REGIONS[0]
    axes.loglog(near, line, "--", color=PAPER, label="paper's slopes")
    begin = 1.6 * first[len(near)]
    axes.loglog(far, begin * (far / far[0]) ** -FFT.REGIONS[1], "--", color=PAPER)
    axes.axvline(62, color="grey", lw=0.8, ls=":")
    axes.text(62, axes.get_ylim()[1], " a chassis", fontsize=8, color="grey", va="top")
    axes.set_xlabel("nodes, 32 ranks each")
    _plain(axes.xaxis, axes.yaxis)
    axes.set_ylabel("s a transform")
    axes.set_title("Figure 4: strong scaling, 0.84 and 0.78 in the paper")
    axes.legend(frameon=False, fontsize=8)


def _dash(figure: Any, series: dict[str, Any]) -> None:
    figure.set_size_inches(8.5, 4.2)
    axes = figure.subplots()
    found = np.array(series["hierarchical"])
    sizes = series["sizes"]
    axes.axhspan(*DASH.FACTOR, color=PAPER, alpha=0.15, lw=0, label="paper, all sizes")
    axes.fill_between(sizes, found.min(axis=0), found.max(axis=0), color=PALE)
    axes.plot(sizes, np.median(found, axis=0), "o-", color=MODEL, ms=4,
              label=f"model, {len(found)} fragmentations")  # fmt: skip
    axes.plot(sizes, series["hilbert"], "--", color=THIRD, label="with hilbert")
    axes.axhline(1, color="black", lw=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 2**10, 2**20], ["1 B", "1 kB", "1 MB"])
    axes.set_xlabel("message")
    axes.set_ylabel("times as fast as the launcher's order")
    axes.set_title("Figure 7: hierarchical mapping of a stencil on 384 sparse nodes")
    axes.legend(frameon=False, loc="upper left")


def _isx(figure: Any, series: dict[str, Any]) -> None:
    figure.set_size_inches(8.5, 3.6)
    axes = figure.subplots()
    runs = series["runs"]
    ways = list(next(iter(runs.values())))
    colours = (MODEL, PALE, THIRD, FOURTH)
    for k, (way, colour) in enumerate(zip(ways, colours, strict=True)):
        for place, found in enumerate(runs.values()):
            values = np.array(found[way])
            middle = float(np.median(values))
            spread = [[middle - values.min()], [values.max() - middle]]
            axes.bar(place + 0.2 * k, middle, 0.18, color=colour, label=way if not place else None)
            axes.errorbar(place + 0.2 * k, middle, spread, color="black", capsize=2, lw=0.9)
    axes.axhspan(
        *ISX.OBSERVED_GBS, color=PAPER, alpha=0.15, lw=0, label="paper, observed", zorder=0
    )
    axes.axhline(ISX.CONFIGURED_GBS, color=PAPER, lw=1, ls="--", label="paper, limit")
    axes.set_xticks(np.arange(len(runs)) + 0.3, [f"{name} ranks" for name in runs])
    axes.set_ylabel("GB/s a node")
    axes.set_title("ISx's exchange on Edison")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def _mpsort(figure: Any, series: dict[str, Any]) -> None:
    figure.set_size_inches(10.5, 4.2)
    left, right = figure.subplots(1, 2)
    ranks = series["ranks"]
    for colour, size in zip((MODEL, THIRD, FOURTH), series["model"], strict=True):
        items = f"{int(size):,} items"
        left.loglog(ranks, series["published"][size], "D", color=colour, label=f"paper, {items}")
        left.loglog(ranks, series["model"][size], "-", color=colour, label=f"model, {items}")
    left.set_xlabel("ranks, 32 a node")
    left.set_ylabel("s")
    left.set_title("Table 1: wall time")
    left.set_ylim(0.005, 900)
    left.legend(frameon=False, fontsize=8, loc="lower right", ncols=2)
    _plain(left.xaxis, left.yaxis)
    _draw_stacks(right, series)


def _plain(*some: Any) -> None:
    """Label logarithmic axes with numbers instead of powers."""
    for axis in some:
        axis.set_major_formatter("{x:,g}")


def _draw_stacks(axes: Any, series: dict[str, Any]) -> None:
    parts = series["components"]
    place = np.arange(len(parts))
    start = np.zeros(len(parts))
    names = list(next(iter(parts.values())))
    for colour, name in zip((THIRD, FOURTH, "#e69f00", MODEL), names, strict=True):
        high = np.array([one[name] for one in parts.values()])
        axes.bar(place, high, 0.6, start, color=colour, label=name)
        start += high
    axes.set_xticks(place, [f"{int(r):,}" for r in parts], rotation=30, ha="right")
    axes.set_xlabel("ranks")
    axes.set_ylabel("s")
    axes.set_title("Model: components, 10 M items a rank")
    axes.legend(frameon=False, fontsize=8)


def _tara(figure: Any, series: dict[str, Any]) -> None:
    figure.set_size_inches(8.5, 3.8)
    left, right = figure.subplots(1, 2)
    names = {"global": "Table 4.2: constant global memory", "local": "Table 4.4: m = 512 N"}
    nodes = series["nodes"]
    for axes, (key, title) in zip((left, right), names.items(), strict=True):
        axes.loglog(nodes, series[f"published_{key}"], "D", color=PAPER, label="paper")
        axes.loglog(nodes, series[key], "o-", color=MODEL, label="model")
        axes.loglog(nodes, series[f"slow_{key}"], "o:", color=THIRD,
                    label=f"model, {series['rate']:g} GB/s a link")  # fmt: skip
        axes.set_xticks(nodes, [str(n) for n in nodes])
        axes.set_yticks([0.05, 0.1, 0.2, 0.5, 1, 2])
        axes.set_ylim(0.04 if key == "global" else 0.3, 1.5 if key == "global" else 2.8)
        axes.minorticks_off()
        _plain(axes.yaxis)
        axes.set_xlabel("nodes, 8 ranks each")
        axes.set_ylabel("s")
        axes.set_title(title)
        axes.legend(frameon=False)


PICTURES: dict[str, Callable[[Any, dict[str, Any]], None]] = {
    "fft": _fft,
    "dash": _dash,
    "isx": _isx,
    "mpsort": _mpsort,
    "tara": _tara,
}
