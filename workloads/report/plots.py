"""Figures of a report as SVG text; matplotlib is imported by whoever imports this."""

from __future__ import annotations

import re
import textwrap
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from placement.support.quantities import exact_size, rate_text, time_text
from rankmap.compare.plots import picture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes

    from workloads.report.cases import Series
    from workloads.report.sections import Fitted, Section

    Rows = Sequence[Mapping[str, Any]]

__all__ = ["draw_sections"]

#: Okabe and Ito's colours, told apart by most eyes, with markers for the rest.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#1b1b1f")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_GREY = "#8a8a8f"

_SETTINGS = {
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6ea",
    "axes.axisbelow": True,
    "legend.frameon": False,
}

#: Most figures of one kind, and comparisons of a figure: a page of hundreds answers nothing.
_MOST, _MOST_COMPARISONS = 12, 40


def draw_sections(sections: Sequence[Section]) -> None:
    """Add the figures to the sections."""
    predicted = {
        f"{row['files']} {row['arm']}": row["predicted_ratio"]
        for section in sections
        if section.name == "predicted"
        for row in section.rows
        if row["predicted_ratio"]
    }
    for section in sections:
        if section.name == "ab":
            section.figures += _comparisons(section.rows, predicted)
        elif section.name == "bandwidth":
            section.figures.append(_svg(_bandwidth, section.rows, size=(9, 4), panels=2))
        by_series = groupby(section.fitted, lambda one: one.series)
        section.figures += [_svg(_gamma, list(group)) for _, group in by_series][:_MOST]
        section.figures += [_svg(_scaling, one) for one in section.series[:_MOST]]


def _comparisons(rows: Rows, predicted: Mapping[str, float]) -> list[str]:
    """Return the intervals, and the improvement by message size where there are several sizes."""
    shown = [row for row in rows if row["ratio"] is not None]
    shown = [row for row in shown if row["phase"] == "communication"] or shown
    height = 1.2 + 0.34 * min(len(shown), _MOST_COMPARISONS)
    figures = [_svg(_forest, shown, predicted, size=(8, height))] if shown else []
    for name in dict.fromkeys(row["workload"] for row in shown):
        sized = [r for r in shown if r["workload"] == name and r["bytes"] is not None]
        if len({row["bytes"] for row in sized}) > 1:
            figures.append(_svg(_improvement, sized))
    return figures


def _svg(
    draw: Callable[..., None], *data: Any, size: tuple[float, float] = (7, 4), panels: int = 1
) -> str:
    """Return what ``draw(figure, axes, *data)`` draws as an SVG element."""

    def build(new: Any) -> Any:
        figure = new(figsize=size, layout="constrained")
        axes = figure.subplots(1, panels, squeeze=False)[0]
        draw(figure, axes[0] if panels == 1 else axes, *data)
        return figure

    text = picture("svg", build, _SETTINGS).decode()
    return re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.S)


def _title(axes: Axes, text: str) -> None:
    axes.set_title("\n".join(textwrap.wrap(text, 58)[:3]), fontsize=10, loc="left")


def _style(k: int) -> dict[str, Any]:
    colour, marker = _COLOURS[k % len(_COLOURS)], _MARKERS[k % len(_MARKERS)]
    return {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.6}


def _binary_axis(axes: Axes, label: str, ticks: Sequence[int], **how: Any) -> None:
    """Let x be logarithmic, with these ticks; bytes are written with their unit."""
    words = exact_size if label.startswith("bytes") else str
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [words(n) for n in ticks], **how)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(label)


def _bytes_axis(axes: Axes, sizes: Sequence[int]) -> None:
    shown = sorted(set(sizes))
    step = max(1, -(-len(shown) // 8))
    _binary_axis(axes, "bytes a pair of ranks", shown[::step], rotation=30, ha="right")


def _log_axis(axes: Axes, label: str, words: Callable[[float], str]) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: words(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel(label)


def _time_by_ranks(axes: Axes, ranks: Sequence[int]) -> None:
    _binary_axis(axes, "ranks", sorted(set(ranks)))
    _log_axis(axes, "time of the slowest rank, median", time_text)


def _error_bars(middle: Any, low: Any, high: Any) -> Any:
    return np.maximum([np.subtract(middle, low), np.subtract(high, middle)], 0)


def _scaling(figure: Any, axes: Axes, series: Series) -> None:
    """Draw time by ranks of each phase, and what perfect scaling would be."""
    for k, phase in enumerate(series.phases):
        points = [(n, e) for n, e in series.points(phase) if e["median"] > 0]
        if points:
            middle, low, high = ([e[q] for _, e in points] for q in ("median", "low", "high"))
            off = _error_bars(middle, low, high)
            ranks = [n for n, _ in points]
            axes.errorbar(ranks, middle, yerr=off, label=phase, capsize=2, **_style(k))
    total = series.points("total")
    if total and total[0][1]["median"] > 0:
        ranks = [n for n, _ in total]
        fall = [ranks[0] / n if series.kind == "strong" else 1.0 for n in ranks]
        ideal = np.multiply(total[0][1]["median"], fall)
        axes.plot(ranks, ideal, "--", color=_GREY, linewidth=1, label="perfect")
    _time_by_ranks(axes, [case.ranks for case in series.cases])
    _title(axes, f"{series.workload}, {series.kind}: {series.name}")
    figure.legend(loc="outside right upper", frameon=False)


def _bandwidth(figure: Any, panels: Sequence[Axes], rows: Rows) -> None:
    """Draw bandwidth by message size: a process's, and a node's."""
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted((row for row in rows if row["bytes"]), key=lambda row: row["bytes"]):
        name = f"{row['call']}, {row['ppn']} a node, {row['ranks']} ranks"
        lines.setdefault(name, []).append(row)
    titles = {"process": "a process", "node": "a node's processes"}
    for axes, (column, title) in zip(panels, titles.items(), strict=True):
        for k, (name, found) in enumerate(lines.items()):
            rates = [row[f"{column}_bytes_per_s"] for row in found]
            label = name if column == "process" else None
            axes.plot([row["bytes"] for row in found], rates, label=label, **_style(k))
        _bytes_axis(axes, [row["bytes"] for row in rows if row["bytes"]])
        _log_axis(axes, "sent to other ranks", rate_text)
        _title(axes, title)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)


def _improvement(figure: Any, axes: Axes, rows: Rows) -> None:
    """Draw the ratio by message size of each arm, with its interval."""
    axes.axhline(1.0, color=_GREY, linewidth=1)
    arms: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["bytes"]):
        arms.setdefault(f"{row['arm']} against {row['against']}", []).append(row)
    for k, (name, found) in enumerate(arms.items()):
        middle = [row["ratio"] for row in found]
        low, high = [row["low"] or 0 for row in found], [row["high"] or 0 for row in found]
        # Side by side, so that one arm's interval does not hide another's.
        sizes = [max(int(row["bytes"]), 1) * 1.06**k for row in found]
        style = _style(k) | ({"color": _GREY, "linestyle": ":"} if found[0]["control"] else {})
        off = _error_bars(middle, low, high)
        axes.errorbar(sizes, middle, yerr=off, label=name, capsize=3, **style)
    _bytes_axis(axes, [max(int(row["bytes"]), 1) for row in rows])
    axes.set_ylim(*_span([end for row in rows for end in (row["low"], row["high"]) if end]))
    axes.set_ylabel("times faster (above 1: the arm is faster)")
    _title(axes, f"{rows[0]['workload']}: improvement by message size")
    figure.legend(loc="outside right upper", frameon=False)


def _forest(figure: Any, axes: Axes, rows: Rows, predicted: Mapping[str, float]) -> None:
    """Draw the interval of each comparison, controls in grey, predictions as diamonds."""
    shown = list(rows)[:_MOST_COMPARISONS]
    axes.axvline(1.0, color=_GREY, linewidth=1)
    ends = [v for row in shown for v in (row["low"], row["high"], row["ratio"]) if v]
    left, right = _span(ends + list(predicted.values()))
    for k, row in enumerate(shown):
        colour = _GREY if row["control"] else _COLOURS[0]
        low, high = max(row["low"] or left, left), min(row["high"] or right, right)
        axes.plot([low, high], [k, k], color=colour, linewidth=2.2, solid_capstyle="butt")
        axes.plot([row["ratio"]], [k], "o", color=colour, markersize=6)
        if ratio := predicted.get(f"{row['files']} {row['arm']}"):
            axes.plot([ratio], [k], "D", mfc="none", mec="#1b1b1f", markersize=7)
    labels = [f"{row['workload']} {row['options']}: {row['arm']}"[:70] for row in shown]
    axes.set_yticks(range(len(shown)), labels)
    axes.set_ylim(len(shown) - 0.4, -0.6)  # the first on top, none on the frame
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left, right)
    what = f"times faster than {shown[0]['against']} (1: no difference)"
    axes.set_xlabel(f"{shown[0]['phase']}: {what}")


def _span(ends: Sequence[float]) -> tuple[float, float]:
    """Return the axis: all that is finite, cut where an interval says nothing."""
    low, high = max(min([*ends, 0.95]), 0.2), min(max([*ends, 1.05]), 5.0)
    room = 0.05 * (high - low)
    return low - room, high + room


def _gamma(figure: Any, axes: Axes, fitted: Sequence[Fitted]) -> None:
    """Draw the samples and the lines T = C p^-gamma through them."""
    for k, one in enumerate(fitted):
        style = _style(k)
        axes.plot(list(one.points), list(one.points.values()), **style | {"linestyle": "none"})
        for where, fit in one.pieces:
            label = (
                f"{one.phase}: gamma {fit.gamma:.2f} ({fit.low:.2f} to {fit.high:.2f}), "
                f"{fit.first:g} to {fit.last:g} ranks{where and f', {where}'}"
            )
            line = [fit.seconds(n) for n in (fit.first, fit.last)]
            how = {"color": style["color"], "linestyle": "--" if where else "-", "label": label}
            axes.plot([fit.first, fit.last], line, **how)
    _time_by_ranks(axes, [n for one in fitted for n in one.points])
    _title(axes, f"{fitted[0].series.workload}: {fitted[0].series.name}")
    figure.legend(loc="outside lower center", ncols=1, frameon=False)
