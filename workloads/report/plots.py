"""Figures of a report as SVG text; matplotlib is imported by whoever imports this."""

from __future__ import annotations

import io
import re
import textwrap
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from placement.quantities import exact_size, rate_text, time_text

mpl.use("svg")

from matplotlib.figure import Figure  # after the backend is chosen
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes

    from workloads.report.fits import Fitted
    from workloads.report.scaling import Series

__all__ = ["bandwidth", "forest", "gamma", "improvement", "scaling"]

#: Okabe and Ito's colours, told apart by most eyes, with markers for the rest.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#1b1b1f")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_GREY = "#8a8a8f"

#: Any: matplotlib types its settings by their several hundred names.
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "nidmap",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6ea",
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def _figure(width: float, height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(1, panels, squeeze=False)[0].tolist()
    return figure, axes


def _svg(figure: Figure) -> str:
    """Return the figure as an SVG element, the same for the same data."""
    out = io.StringIO()
    with mpl.rc_context(_SETTINGS):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.S)


def _title(axes: Axes, text: str) -> None:
    axes.set_title("\n".join(textwrap.wrap(text, 58)[:3]), fontsize=10, loc="left")


def _style(k: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[k % len(_COLOURS)],
        "marker": _MARKERS[k % len(_MARKERS)],
        "markersize": 5,
        "linewidth": 1.6,
    }


def _ranks_axis(axes: Axes, ranks: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(set(ranks)), [str(n) for n in sorted(set(ranks))])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("ranks")


def _log_axis(axes: Axes, words: Callable[[float], str]) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: words(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _seconds_axis(axes: Axes) -> None:
    _log_axis(axes, time_text)
    axes.set_ylabel("time of the slowest rank, median")


def _bytes_axis(axes: Axes, sizes: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    shown = sorted(set(sizes))
    step = max(1, -(-len(shown) // 8))
    axes.set_xticks(shown[::step], [exact_size(n) for n in shown[::step]], rotation=30, ha="right")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("bytes a pair of ranks")


def scaling(series: Series) -> str:
    """Return time by ranks of each phase, with what perfect scaling would be."""
    figure, (axes,) = _figure(7, 4)
    for k, phase in enumerate(series.phases()):
        points = [(n, e) for n, e in series.points(phase) if e["median"] > 0]
        if not points:
            continue
        ranks = [n for n, _ in points]
        middle = [e["median"] for _, e in points]
        off = [
            [max(e["median"] - e["low"], 0) for _, e in points],
            [max(e["high"] - e["median"], 0) for _, e in points],
        ]
        axes.errorbar(ranks, middle, yerr=off, label=phase, capsize=2, **_style(k))
    total = series.points("total")
    if total and total[0][1]["median"] > 0:
        first, seconds = total[0][0], total[0][1]["median"]
        strong = series.kind == "strong"
        ideal = [seconds * (first / n if strong else 1.0) for n, _ in total]
        axes.plot([n for n, _ in total], ideal, "--", color=_GREY, linewidth=1, label="perfect")
    _ranks_axis(axes, [case.ranks for case in series.cases])
    _seconds_axis(axes)
    _title(axes, f"{series.workload}, {series.kind}: {series.name}")
    figure.legend(loc="outside right upper", frameon=False)
    return _svg(figure)


def bandwidth(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return bandwidth by message size: a process's, and a node's."""
    figure, panels = _figure(9, 4, 2)
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        name = f"{row['call']}, {row['ppn']} a node, {row['ranks']} ranks"
        lines.setdefault(name, []).append(row)
    for axes, column, title in zip(
        panels, ("process", "node"), ("a process", "a node's processes"), strict=True
    ):
        for k, (name, found) in enumerate(lines.items()):
            ranked = sorted((row for row in found if row["bytes"]), key=lambda row: row["bytes"])
            sizes = [row["bytes"] for row in ranked]
            rates = [row[f"{column}_bytes_per_s"] for row in ranked]
            label = name if column == "process" else None
            axes.plot(sizes, rates, label=label, **_style(k))
        _bytes_axis(axes, [row["bytes"] for row in rows if row["bytes"]])
        _log_axis(axes, rate_text)
        axes.set_ylabel("sent to other ranks")
        axes.set_title(title, fontsize=10, loc="left")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return _svg(figure)


def improvement(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the ratio by message size of each arm, with its interval."""
    figure, (axes,) = _figure(7, 4)
    axes.axhline(1.0, color=_GREY, linewidth=1)
    arms: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        arms.setdefault(f"{row['arm']} against {row['against']}", []).append(row)
    for k, (name, found) in enumerate(arms.items()):
        ranked = sorted(found, key=lambda row: row["bytes"])
        middle = [row["ratio"] for row in ranked]
        off = [
            [m - (row["low"] or 0) for m, row in zip(middle, ranked, strict=True)],
            [(row["high"] or m) - m for m, row in zip(middle, ranked, strict=True)],
        ]
        # Side by side, so that one arm's interval does not hide another's.
        sizes = [max(int(row["bytes"]), 1) * 1.06**k for row in ranked]
        control = bool(ranked[0]["control"])
        style = _style(k) | ({"color": _GREY, "linestyle": ":"} if control else {})
        axes.errorbar(sizes, middle, yerr=off, label=name, capsize=3, **style)
    _bytes_axis(axes, [max(int(row["bytes"]), 1) for row in rows])
    axes.set_ylim(*_span([end for row in rows for end in (row["low"], row["high"]) if end]))
    axes.set_ylabel("times faster (above 1: the arm is faster)")
    _title(axes, f"{rows[0]['workload']}: improvement by message size")
    figure.legend(loc="outside right upper", frameon=False)
    return _svg(figure)


def forest(
    rows: Sequence[Mapping[str, Any]], predicted: Mapping[str, float], limit: int = 40
) -> str:
    """Return the interval of each comparison, controls in grey, predictions as diamonds.

    Parameters
    ----------
    rows : sequence of mapping
        Comparisons with a ratio.
    predicted : mapping of str to float
        By ``files arm``: the predicted ratio.
    limit : int
        Most comparisons to draw.
    """
    shown = list(rows)[:limit]
    figure, (axes,) = _figure(8, 1.2 + 0.34 * len(shown))
    axes.axvline(1.0, color=_GREY, linewidth=1)
    ends = [v for row in shown for v in (row["low"], row["high"], row["ratio"]) if v]
    left, right = _span(ends + list(predicted.values()))
    for k, row in enumerate(shown):
        colour = _GREY if row["control"] else _COLOURS[0]
        low, high = max(row["low"] or left, left), min(row["high"] or right, right)
        axes.plot([low, high], [k, k], color=colour, linewidth=2.2, solid_capstyle="butt")
        axes.plot([row["ratio"]], [k], "o", color=colour, markersize=6)
        said = predicted.get(f"{row['files']} {row['arm']}")
        if said:
            axes.plot([said], [k], "D", mfc="none", mec="#1b1b1f", markersize=7)
    labels = [f"{row['workload']} {row['options']}: {row['arm']}"[:70] for row in shown]
    axes.set_yticks(range(len(shown)), labels)
    axes.set_ylim(len(shown) - 0.4, -0.6)  # the first on top, none on the frame
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left, right)
    phase = shown[0]["phase"]
    axes.set_xlabel(f"{phase}: times faster than {shown[0]['against']} (1: no difference)")
    return _svg(figure)


def _span(ends: Sequence[float]) -> tuple[float, float]:
    """Return the axis: all that is finite, cut where an interval says nothing."""
    low = max(min([*ends, 0.95]), 0.2)
    high = min(max([*ends, 1.05]), 5.0)
    room = 0.05 * (high - low)
    return low - room, high + room


def gamma(fitted: Sequence[Fitted]) -> str:
    """Return the samples and the lines T = C p^-gamma through them."""
    figure, (axes,) = _figure(7, 4)
    for k, one in enumerate(fitted):
        style = _style(k)
        axes.plot(one.ranks, one.seconds, linestyle="none", **style | {"label": None})
        for j, piece in enumerate(one.pieces):
            ends = [piece.first, piece.last]
            line = [piece.constant * n**-piece.gamma for n in ends]
            label = f"{one.phase}: {piece.words()}"
            axes.plot(ends, line, "-" if j == 0 else "--", color=style["color"], label=label)
    _ranks_axis(axes, [n for one in fitted for n in one.ranks])
    _seconds_axis(axes)
    _title(axes, f"{fitted[0].workload}: {fitted[0].name}")
    figure.legend(loc="outside lower center", ncols=1, frameon=False)
    return _svg(figure)
