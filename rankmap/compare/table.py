"""A comparison as a table: for a terminal, as CSV, and on an HTML page."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from placement.commands.tables import align_columns
from placement.support.quantities import size_text, time_text
from rankmap.compare import Comparison, Entry

__all__ = ["as_csv", "as_html", "as_text", "csv_text", "html_page"]

#: Columns of words: strategy, order, class, link.
_WORDS = (0, 1, 6, 7)

_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;
color:#1a1a1a;background:#fff}
h1{font-size:1.3rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
th,td{padding:.3rem .7rem;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}
th:nth-child(-n+2),td:nth-child(-n+2){text-align:left}
tr.default{font-weight:600}
svg{max-width:100%;height:auto}
"""


def _levels(comparison: Comparison) -> list[str]:
    """Return the levels that nodes are counted by, outermost first."""
    return list(comparison.entries[0].plan.facts["touches"])


def _cells(comparison: Comparison, entry: Entry) -> list[str]:
    """Return one entry as the cells of a row."""
    worst, binds, link = entry.found.bottleneck, entry.found.binds, "-"
    if binds == "link":
        binds, link = worst.kind, worst.name.rpartition(" ")[0] or worst.name
    touches = [str(entry.plan.facts["touches"][level]) for level in _levels(comparison)]
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


def _heads(comparison: Comparison) -> list[str]:
    """Return what stands above the columns."""
    return [
        "strategy", "order", "time", "to default", "as fast", "of the limit", "binds", "link",
        "hop-bytes",
        *_levels(comparison),
    ]  # fmt: skip


def as_text(found: Comparison) -> str:
    """Return a comparison for a person: a sentence, the table, what was assumed."""
    table = [_heads(found), *(_cells(found, entry) for entry in found.entries)]
    loads = found.best.found.loads
    lines = [found.sentence, "", align_columns(table, left=_WORDS)]
    lines.append(f"wiring: {loads.wiring}; routing: {loads.routing}")
    lines += [f"note: {note}" for note in found.notes]
    return "\n".join(lines) + "\n"


def as_csv(found: Comparison) -> str:
    """Return a comparison as CSV, figures in full: seconds, bytes, GB/s.

    A cell that a spreadsheet would take for a formula is led by an apostrophe.
    """
    rows = [_figures(entry.document()) for entry in found.entries]
    return csv_text(list(rows[0]), rows)


def csv_text(heads: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV in which no cell is a formula to a spreadsheet."""
    out = io.StringIO()
    table = csv.DictWriter(out, heads, lineterminator="\n")
    table.writeheader()
    table.writerows({head: _harmless(value) for head, value in row.items()} for row in rows)
    return out.getvalue()


def _figures(entry: dict[str, Any]) -> dict[str, Any]:
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


def as_html(found: Comparison) -> str:
    """Return a comparison as one HTML file, which fetches nothing: sentence, table and picture.

    Raises
    ------
    UsageError
        matplotlib is not there.
    """
    from rankmap.compare.plots import draw

    rows = [("default" if entry.default else "", _cells(found, entry)) for entry in found.entries]
    loads = found.best.found.loads
    notes = [f"wiring: {loads.wiring}; routing: {loads.routing}", *found.notes]
    title = f"nidmap compare: {found.asked['pattern']}"
    return html_page(title, found.sentence, [(_heads(found), rows)], draw(found, "svg"), notes)


def html_page(
    title: str,
    sentence: str,
    tables: Sequence[tuple[Sequence[str], Sequence[tuple[str, Sequence[str]]]]],
    svg: bytes,
    notes: Sequence[str],
) -> str:
    """Return an HTML page that fetches nothing: a sentence, tables, a picture, what it rests on.

    Parameters
    ----------
    title, sentence : str
    tables : sequence of (heads, rows)
        A row is a class of CSS, '' for none, and its cells.
    svg : bytes
    notes : sequence of str
    """
    text = svg.decode()
    picture = text[text.index("<svg") :]
    notes_html = "\n".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"""<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
<h1>{escape(sentence)}</h1>
{"".join(_html_table(*table) for table in tables)}<p>{picture}</p>
<h2>What this rests on</h2>
<ul>
{notes_html}
</ul>
</html>
"""


def _html_table(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    body = "\n".join(
        f"<tr{f' class={style}' if style else ''}>{_row('td', cells)}</tr>" for style, cells in rows
    )
    return f"""<div class="wide"><table>
<thead><tr>{_row("th", heads)}</tr></thead>
<tbody>
{body}
</tbody></table></div>
"""


def _row(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)
