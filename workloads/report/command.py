"""The command ``nidmap bench report``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import machine_option, say, to_json, write_output
from placement.errors import UsageError, printable
from placement.extras import missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.machine import Machine
    from workloads.report.sections import Section

__all__ = ["report"]

_FORMS = (".html", ".csv", ".json", ".txt")


@click.command("report")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@machine_option
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    help="Write .html (with plots), .csv, .json or .txt; may repeat. Default: text to stdout.",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.option("--title", default="nidmap bench report", help="Title of the page.")
@click.option(
    "--break",
    "breaks",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="RANKS",
    help="Fit T = C p^-gamma in two pieces, split above so many ranks; may repeat.",
)
@click.option(
    "--level",
    type=click.FloatRange(0.5, 0.999),
    default=0.95,
    show_default=True,
    help="Coverage of each interval.",
)
def report(
    files: tuple[str, ...],
    specs: tuple[str, ...],
    outputs: tuple[str, ...],
    as_json: bool,
    title: str,
    breaks: tuple[int, ...],
    level: float,
) -> None:
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
    from workloads.report.building import build

    said, sections = build(files, _machine(specs), level, breaks)
    if any(path.endswith(".html") for path in outputs):
        _draw(sections)
    for path in outputs:
        write_output(_form(path.rpartition(".")[2], title, said, sections), path)
    if not outputs:
        write_output(_form("json" if as_json else "txt", title, said, sections), None)


def _machine(specs: tuple[str, ...]) -> Machine | None:
    """Return the machine, None where none is asked for."""
    import os

    from placement.commands.common import machine_from

    return machine_from(specs) if specs or os.environ.get("NIDMAP_MACHINE") else None


def _form(form: str, title: str, said: Sequence[str], sections: Sequence[Section]) -> str:
    from workloads.report.page import csv_text, html_text, plain_text

    if form == "html":
        return html_text(title, said, sections)
    if form == "csv":
        return csv_text(sections)
    if form == "json":
        return to_json(_document(said, sections))
    return plain_text(said, sections)


def _document(said: Sequence[str], sections: Sequence[Section]) -> dict[str, Any]:
    rows = {section.name: section.rows for section in sections}
    return {"schema": "nidmap.bench.report/1", "findings": list(said), **rows}


def _draw(sections: Sequence[Section]) -> None:
    """Draw the figures, where matplotlib is there."""
    try:
        from workloads.report.drawing import draw
    except ModuleNotFoundError as error:
        say(f"nidmap: {missing(error.name or '', 'a plot')}")
        return
    draw(sections)
