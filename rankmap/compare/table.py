"""A comparison as a table: for a terminal, and as CSV."""

from __future__ import annotations

from typing import Any

from placement.support.quantities import size_text, time_text
from placement.support.tables import align_columns, csv_table
from rankmap.compare import Comparison, Entry

__all__ = ["as_csv", "as_text"]

#: Columns of words: strategy, order, class, link.
_WORDS = (0, 1, 6, 7)


def _counted_levels(comparison: Comparison) -> list[str]:
    """Return the levels that nodes are counted by, outermost first."""
    return list(comparison.entries[0].plan.facts["touches"])


def _row_cells(comparison: Comparison, entry: Entry) -> list[str]:
    """Return one entry as the cells of a row."""
    worst, binds, link = entry.found.bottleneck, entry.found.binds, "-"
    if binds == "link":
        binds, link = worst.kind, worst.name.rpartition(" ")[0] or worst.name
    touches = [str(entry.plan.facts["touches"][level]) for level in _counted_levels(comparison)]
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


def _column_heads(comparison: Comparison) -> list[str]:
    """Return what stands above the columns."""
    return [
        "strategy", "order", "time", "to default", "as fast", "of the limit", "binds", "link",
        "hop-bytes",
        *_counted_levels(comparison),
    ]  # fmt: skip


def as_text(found: Comparison) -> str:
    """Return a comparison for a person: a sentence, the table, what was assumed."""
    table = [_column_heads(found), *(_row_cells(found, entry) for entry in found.entries)]
    loads = found.best.found.loads
    lines = [found.sentence, "", align_columns(table, left=_WORDS)]
    lines.append(f"wiring: {loads.wiring}; routing: {loads.routing}")
    lines += [f"note: {note}" for note in found.notes]
    return "\n".join(lines) + "\n"


def as_csv(found: Comparison) -> str:
    """Return a comparison as CSV, figures in full: seconds, bytes, GB/s.

    A cell that a spreadsheet would take for a formula is led by an apostrophe.
    """
    rows = [_figure_cells(entry.document()) for entry in found.entries]
    heads = list(rows[0])
    return csv_table([heads, *([row[head] for head in heads] for row in rows)])


def _figure_cells(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a row, by what stands above them, of an entry as JSON takes it."""
    row = {name: entry[name] for name in ("strategy", "order", "default", "time_s", "ratio")}
    row["default"] = int(row["default"])
    row |= {f"gain_{end}": entry["gain"][end] for end in ("low", "likely", "high")}
    row |= {name: entry[name] for name in ("bound_s", "percent_of_bound", "binds")}
    row |= {f"bottleneck_{name}": figure for name, figure in entry["bottleneck"].items()}
    del row["bottleneck_seconds"]
    row |= {"hop_bytes": entry["hop_bytes"], **entry["touches"]}
    row |= {f"{kind}_s": seconds for kind, seconds in entry["by_class"].items()}
    return {**row, "nodelist": entry["nodelist"]}
