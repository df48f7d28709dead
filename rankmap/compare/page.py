"""A comparison as one HTML file: nothing in it is fetched from anywhere."""

from __future__ import annotations

from html import escape

from rankmap.compare import Comparison
from rankmap.compare.plots import draw
from rankmap.compare.table import cells, heads

__all__ = ["page"]

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


def page(found: Comparison) -> str:
    """Return the page: the sentence, the table, the picture, what was assumed.

    Raises
    ------
    UsageError
        matplotlib is not there.
    """
    svg = draw(found, "svg").decode()
    picture = svg[svg.index("<svg") :]
    rows = "\n".join(
        f"<tr{' class=default' if entry.default else ''}>{_row('td', cells(found, entry))}</tr>"
        for entry in found.entries
    )
    loads = found.best.found.loads
    said = [f"wiring: {loads.wiring}; routing: {loads.routing}", *found.notes]
    notes = "\n".join(f"<li>{escape(note)}</li>" for note in said)
    return f"""<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>nidmap compare: {escape(found.asked["pattern"])}</title>
<style>{_STYLE}</style>
<h1>{escape(found.sentence)}</h1>
<div class="wide"><table>
<thead><tr>{_row("th", heads(found))}</tr></thead>
<tbody>
{rows}
</tbody></table></div>
<p>{picture}</p>
<h2>What this rests on</h2>
<ul>
{notes}
</ul>
</html>
"""


def _row(tag: str, texts: list[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)
