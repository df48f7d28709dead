# SPDX-License-Identifier: Apache-2.0
"""A comparison as a picture: time by strategy, load by link class, traffic by group.

matplotlib is loaded here and nowhere else; it is not needed for the table.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nidmap.placement.support.array_types import Floats
from nidmap.placement.support.quantities import size_unit, time_unit
from nidmap.rankmap.compare import Comparison, Entry

#: Colours that colour-blind readers tell apart (Okabe and Ito), one a term.
COLOURS = {
    "bandwidth": "#0072b2",
    "memory": "#cc79a7",
    "latency": "#e69f00",
    "messages": "#009e73",
    "histogram": "#d55e00",
}

#: A term that is nowhere a larger share of the longest time than this is not drawn.
SEEN = 1e-3

#: Rows that a picture has room for.
MOST_ROWS = 24

#: Groups that a heat map shows one by one; more are put together.
MOST_GROUPS = 64


def draw_comparison(found: Comparison, form: str) -> bytes:
    """Return a comparison as ``svg`` or ``png``."""
    return picture_bytes(form, lambda new: _draw_figure(found, new), {"text.parse_math": False})


def picture_bytes(form: str, build: Callable[[Any], Any], style: Mapping[str, Any]) -> bytes:
    """Return a figure as ``svg`` or ``png``, reproducible byte by byte.

    `build`: takes matplotlib's class of figures and returns one. `style`: settings of matplotlib
    besides those of all our pictures.
    """
    import matplotlib
    from matplotlib.figure import Figure

    #: Any: matplotlib types its settings by their several hundred names.
    settings: Any = {"svg.hashsalt": "nidmap", "svg.fonttype": "none", "font.size": 9.0, **style}
    with matplotlib.rc_context(settings):
        figure = build(Figure)
        out = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else {}
        figure.savefig(out, format=form, dpi=144, metadata=metadata)
    return out.getvalue()


def block_heat(entry: Entry) -> tuple[Floats, str]:
    """Return the bytes between the outermost blocks of routers, and what the blocks are called.

    Returns (g, g): from row to column; inside a block on the diagonal. ``group``, ``x`` (planes
    of a torus) or ``leaf``.
    """
    from nidmap.placement.topologies import router_coords

    machine = entry.found.loads.channels.machine
    first = router_coords(machine)[:, 0]
    used = np.flatnonzero(np.bincount(np.maximum(first, 0)))
    label = np.searchsorted(used, np.maximum(first, 0)).astype(np.int64)
    size = len(used)
    if size > MOST_GROUPS:
        label, size = label * MOST_GROUPS // size, MOST_GROUPS
    table = np.zeros((size, size))
    for phase in entry.found.phases:
        for source, target, amount in phase.demand.blocks():
            np.add.at(table, (label[source], label[target]), amount)
    return table, machine.topology.levels[0]


def _draw_figure(comparison: Comparison, figure: Any) -> Any:
    """Return the whole picture."""
    shown = list(comparison.entries[:MOST_ROWS])
    if not any(entry.default for entry in shown):
        shown[-1] = comparison.default
    height = 1.6 + 0.34 * len(shown)
    drawn = figure(figsize=(11.5, height + 4.6), layout="constrained")
    drawn.suptitle(textwrap.fill(comparison.sentence, 100), fontsize=11, fontweight="bold")
    top, bottom = drawn.subfigures(2, 1, height_ratios=[height, 4.4])
    left, right = top.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    _draw_times(left, shown)
    _draw_classes(right, shown)
    _draw_heats(bottom, comparison)
    return drawn


def _draw_times(axes: Any, shown: list[Entry]) -> None:
    """Draw a bar per row, split into its terms, with a tick at the lower limit."""
    place = np.arange(len(shown))
    longest = max(entry.found.time_s for entry in shown)
    unit, scale = time_unit(longest)
    start = np.zeros(len(shown))
    for k, term in enumerate(shown[0].found.terms):
        width = np.array([entry.found.terms[k].seconds * scale for entry in shown])
        if width.max() > SEEN * longest * scale:
            axes.barh(place, width, left=start, color=COLOURS[term.name], label=term.name)
            start += width
    limit = [entry.found.bound_s * scale for entry in shown]
    if any(limit):
        axes.scatter(limit, place, marker="|", s=140, color="black", label="limit", zorder=3)
    for at, entry in zip(place, shown, strict=True):
        axes.text(start[at], at, f" {entry.ratio:.2f} x", va="center", fontsize=8)
    axes.set_yticks(place, [f"{e.strategy} · {e.order}" for e in shown])
    for label, entry in zip(axes.get_yticklabels(), shown, strict=True):
        label.set_fontweight("bold" if entry.default else "normal")
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(0, max(float(start.max()), *limit, 1e-300) * 1.12)
    axes.set_xlabel(f"predicted time, {unit} (the default in bold; figures: time to default's)")
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1)}
        axes.legend(**where, ncols=6, frameon=False, fontsize=8, borderpad=0)


def _draw_classes(axes: Any, shown: list[Entry]) -> None:
    """Draw the time of each class's busiest link, as a share of the longest."""
    kinds = [k for k in shown[0].found.by_class if any(e.found.by_class[k] for e in shown)]
    kinds = kinds or list(shown[0].found.by_class)[:1]
    table = np.array([[entry.found.by_class[kind] for kind in kinds] for entry in shown])
    most = table.max() or 1.0
    axes.imshow(table / most, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    unit, scale = time_unit(most)
    for (row, column), seconds in np.ndenumerate(table):
        dark = seconds > 0.6 * most
        text = f"{seconds * scale:.3g}" if seconds else "0"
        axes.text(
            column, row, text, ha="center", va="center", fontsize=8, color="white" if dark else "k"
        )
    axes.set_xticks(np.arange(len(kinds)), kinds)
    axes.set_xlabel(f"busiest link of each class, {unit}")
    axes.tick_params(axis="y", left=False)


def _draw_heats(part: Any, comparison: Comparison) -> None:
    """Draw the traffic between groups, for the fastest entry and for the default."""
    shown = [comparison.best] if comparison.best.default else [comparison.best, comparison.default]
    tables = [block_heat(entry) for entry in shown]
    most = max(float(table.max()) for table, _ in tables) or 1.0
    axes = part.subplots(1, len(shown), squeeze=False)[0]
    unit, scale = size_unit(most)
    for panel, entry, (table, level) in zip(axes, shown, tables, strict=True):
        image = panel.imshow(table * scale, cmap="Blues", vmin=0, vmax=most * scale)
        panel.set_title(f"traffic with {entry.strategy} · {entry.order}", fontsize=9)
        panel.set_xlabel(f"to {level}")
        panel.set_ylabel(f"from {level}")
        panel.xaxis.get_major_locator().set_params(integer=True)
        panel.yaxis.get_major_locator().set_params(integer=True)
    part.colorbar(image, ax=list(axes), label=f"{unit} between nodes", shrink=0.9)
