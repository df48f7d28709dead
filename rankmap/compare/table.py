"""A comparison as a table: for a terminal, and as CSV."""

from __future__ import annotations

import csv
import io

from placement.commands.tables import align_columns
from rankmap.compare import Comparison, Entry

__all__ = ["as_csv", "as_text", "cells", "levels"]


#: Columns of words: strategy, order, class, link.
_WORDS = (0, 1, 6, 7)


def levels(found: Comparison) -> list[str]:
    """Return the levels that nodes are counted by, outermost first."""
    return list(found.entries[0].plan.facts["touches"])


def cells(found: Comparison, entry: Entry) -> list[str]:
    """Return one entry as the cells of a row."""
    from placement.support.quantities import size_text, time_text

    worst, binds, link = entry.found.bottleneck, entry.found.binds, "-"
    if binds == "link":
        binds, link = worst.kind, worst.name.rpartition(" ")[0] or worst.name
    touches = [str(entry.plan.facts["touches"][level]) for level in levels(found)]
    return [
        entry.strategy,
        entry.order,
        time_text(entry.found.time_s),
        f"{entry.ratio:.3f}",
        "-" if entry.default else entry.gain.range_text,
        f"{100 * entry.found.share:.3g} %" if entry.found.bound_s else "-",
        binds or "-",
        link,
        size_text(entry.found.hop_bytes),
        *touches,
    ]


def heads(found: Comparison) -> list[str]:
    """Return what stands above the columns."""
    return [
        "strategy", "order", "time", "to default", "as fast", "of the limit", "binds", "link",
        "hop-bytes",
        *levels(found),
    ]  # fmt: skip


def as_text(found: Comparison) -> str:
    """Return a comparison for a person: a sentence, the table, what was assumed."""
    table = [heads(found), *(cells(found, entry) for entry in found.entries)]
    loads = found.best.found.loads
    lines = [found.sentence, "", align_columns(table, left=_WORDS)]
    lines.append(f"wiring: {loads.wiring}; routing: {loads.routing}")
    lines += [f"note: {note}" for note in found.notes]
    return "\n".join(lines) + "\n"


def as_csv(found: Comparison) -> str:
    """Return a comparison as CSV, figures in full: seconds, bytes, GB/s.

    A cell that a spreadsheet would take for a formula is led by an apostrophe.
    """
    kinds = list(found.best.found.by_class)
    head = [
        "strategy", "order", "default", "time_s", "ratio", "gain_low", "gain_likely",
        "gain_high", "bound_s", "percent_of_bound", "binds",
        "bottleneck_class", "bottleneck_link", "bottleneck_load", "bottleneck_bandwidth",
        "hop_bytes", *levels(found), *(f"{kind}_s" for kind in kinds), "nodelist",
    ]  # fmt: skip
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    write(head)
    for entry in found.entries:
        one = entry.document()
        worst = one["bottleneck"]
        row = [
            one["strategy"], one["order"], int(one["default"]), one["time_s"], one["ratio"],
            *(one["gain"][end] for end in ("low", "likely", "high")),
            one["bound_s"], one["percent_of_bound"], one["binds"], worst["class"],
            worst["link"], worst["load"], worst["bandwidth"], one["hop_bytes"],
            *(one["touches"][x] for x in levels(found)),
            *(one["by_class"][kind] for kind in kinds), one["nodelist"],
        ]  # fmt: skip
        write([_harmless(value) for value in row])
    return out.getvalue()


def _harmless(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula.

    Examples
    --------
    >>> _harmless("=1+1"), _harmless(-1.5)
    ("'=1+1", -1.5)
    """
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value
