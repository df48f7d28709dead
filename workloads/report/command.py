"""``nidmap bench report``, and its forms: text, CSV, JSON, HTML.

The HTML file has no script, fetches nothing, and everything in it is escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import machine_option, say, to_json, write_output
from placement.commands.tables import align_columns
from placement.errors import UsageError, printable
from placement.support.extras import missing
from placement.support.quantities import exact_size, rate_text, time_text
from workloads.options import level_option, named_machine
from workloads.results import csv_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.report.sections import Section

__all__ = ["html_text", "report", "spreadsheet"]

_FORMS = (".html", ".csv", ".json", ".txt")

#: Letters from which on a cell's text may take several lines.
_LONG = 24

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1b1f; background: #fff;
       max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
.said { font-size: 1.05rem; } .said li { margin: .3rem 0; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #888; text-align: right; vertical-align: bottom; }
td.t, th.t { text-align: left; }
td { white-space: nowrap; } td.w { text-align: left; white-space: normal; min-width: 18rem; }
figure { margin: 1rem 0; } svg { max-width: 100%; height: auto; }
details summary { cursor: pointer; color: #444; }
p.note { color: #555; }
"""


@click.command("report")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@machine_option
@click.option("-o", "--output", "outputs", multiple=True, metavar="FILE",
              help="Write .html (with plots), .csv, .json or .txt; may repeat. "
                   "Default: text to stdout.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.option("--title", default="nidmap bench report", help="Title of the page.")
@click.option("--break", "breaks", type=click.IntRange(min=1), multiple=True, metavar="RANKS",
              help="Fit T = C p^-gamma in two pieces, split above so many ranks; may repeat.",
              )  # fmt: skip
@level_option
def report(
    files: tuple[str, ...], specs: tuple[str, ...], outputs: tuple[str, ...], as_json: bool,
    title: str, breaks: tuple[int, ...], level: float,
) -> None:  # fmt: skip
    """Make tables and plots of the samples of several runs.

    FILE… are what -o of the programs wrote. Runs of the same work become
    scaling series, A/B measurements of the same arms are pooled; with -m,
    predictions stand beside what was measured.

    \b
    nidmap bench report fft-1.csv fft-2.csv -o fft.html -o fft.csv
    nidmap bench report ab-1.csv ab-2.csv ab-3.csv -m shaheen2 -o ab.html
    """
    for path in outputs:
        if path != "-" and not path.endswith(_FORMS):
            raise UsageError(f"-o {printable(path)}: reports are written as {', '.join(_FORMS)}")
    from workloads.report.sections import build

    findings, sections = build(files, named_machine(specs), level, breaks)
    if any(path.endswith(".html") for path in outputs):
        _draw(sections)
    for path in outputs:
        write_output(_render(path.rpartition(".")[2], title, findings, sections), path)
    if not outputs:
        write_output(_render("json" if as_json else "txt", title, findings, sections), None)


def _render(form: str, title: str, findings: Sequence[str], sections: Sequence[Section]) -> str:
    if form == "html":
        return html_text(title, findings, sections)
    if form == "csv":
        return spreadsheet(sections)
    if form == "json":
        rows = {section.name: section.rows for section in sections}
        schema = "nidmap.bench.report/1"
        return to_json({"schema": schema, "findings": list(findings), **rows})
    parts = ["".join(f"{line}\n" for line in findings)]
    parts += [f"{one.title}\n{align_columns(_texts(one))}" for one in sections if one.rows]
    return "\n".join(part for part in parts if part)


def _draw(sections: Sequence[Section]) -> None:
    """Draw the figures, where matplotlib is there."""
    try:
        from workloads.report.plots import draw_sections
    except ModuleNotFoundError as error:
        say(f"nidmap: {missing(error.name or '', 'a plot')}")
    else:
        draw_sections(sections)


# --- the forms -------------------------------------------------------------------------


def html_text(title: str, said: Sequence[str], sections: Sequence[Section]) -> str:
    """Return the page.

    Parameters
    ----------
    title : str
    said : sequence of str
        The findings, in sentences; first thing on the page.
    sections : sequence of Section
    """
    parts = [
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>",
        "<meta http-equiv='Content-Security-Policy' "
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">",
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        "<ul class='said'>" + "".join(f"<li>{escape(line)}</li>" for line in said) + "</ul>",
    ]
    parts += [_section(section) for section in sections if section.rows]
    return "\n".join(parts) + "\n</body></html>\n"


def _section(section: Section) -> str:
    figures = "".join(f"<figure>{figure}</figure>" for figure in section.figures)
    table = f"<div class='wide'>{_table(section)}</div>"
    if len(section.rows) > 12:
        table = f"<details><summary>{len(section.rows)} rows</summary>{table}</details>"
    words = f"<p class='note'>{escape(section.words)}</p>"
    return f"<h2>{escape(section.title)}</h2>{words}{figures}{table}"


def _table(section: Section) -> str:
    def cells(tag: str, texts: Sequence[str]) -> str:
        kinds = [" class=w" if len(t) > _LONG else " class=t" if left else ""
                 for t, left in zip(texts, words, strict=True)]  # fmt: skip
        row = (f"<{tag}{k}>{escape(t)}</{tag}>" for k, t in zip(kinds, texts, strict=True))
        return f"<tr>{''.join(row)}</tr>"

    names = _columns(section)
    words = [any(isinstance(row.get(n), str) for row in section.rows) for n in names]
    head, *body = _texts(section)
    rows = "".join(cells("td", row) for row in body)
    return f"<table><thead>{cells('th', head)}</thead><tbody>{rows}</tbody></table>"


def _columns(section: Section) -> list[str]:
    """Return the columns in which any row says something; the files that it is from come last."""
    names = dict.fromkeys(name for row in section.rows for name in row)
    said = [n for n in names if any(row.get(n) not in (None, "") for row in section.rows)]
    return sorted(said, key=lambda name: name in ("file", "files"))


def _texts(section: Section) -> list[list[str]]:
    """Return the table as a person reads it, its head first."""
    names = _columns(section)
    head = [n.removesuffix("_bytes_per_s").removesuffix("_s").replace("_", " ") for n in names]
    return [head, *([value_text(n, row.get(n)) for n in names] for row in section.rows)]


def value_text(name: str, value: Any) -> str:
    """Return a value as a person reads it, by its column's name.

    Examples
    --------
    >>> value_text("median_s", 0.0012), value_text("process_bytes_per_s", 2.1e9)
    ('1.2 ms', '2.1 GB/s')
    """
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return printable(value, 300)
    if name.endswith("_bytes_per_s"):
        return rate_text(value)
    if name.endswith("_s"):
        return time_text(value)
    if name == "bytes":
        return exact_size(value)
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def spreadsheet(sections: Sequence[Section]) -> str:
    """Return all sections as one CSV table: a column says which, numbers are plain.

    Text that a spreadsheet would take for a formula gets an apostrophe.
    """
    rows = [{"section": one.name, **row} for one in sections for row in one.rows]
    return csv_text([{name: _disarm(value) for name, value in row.items()} for row in rows])


def _disarm(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    clean = printable(value, 4096)
    return f"'{clean}" if clean.startswith(("=", "+", "-", "@", "\t")) else clean
