"""The command ``nidmap bench report``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from placement.commands.common import machine_option, say, to_json, write_output
from placement.errors import UsageError, printable
from placement.support.extras import missing
from workloads.options import level_option, named_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.report.sections import Section

__all__ = ["report"]

_FORMS = (".html", ".csv", ".json", ".txt")


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
    from workloads.report.page import html_text, plain_text, spreadsheet

    if form == "html":
        return html_text(title, findings, sections)
    if form == "csv":
        return spreadsheet(sections)
    if form == "json":
        rows = {section.name: section.rows for section in sections}
        schema = "nidmap.bench.report/1"
        return to_json({"schema": schema, "findings": list(findings), **rows})
    return plain_text(findings, sections)


def _draw(sections: Sequence[Section]) -> None:
    """Draw the figures, where matplotlib is there."""
    try:
        from workloads.report.plots import draw_sections
    except ModuleNotFoundError as error:
        say(f"nidmap: {missing(error.name or '', 'a plot')}")
    else:
        draw_sections(sections)
