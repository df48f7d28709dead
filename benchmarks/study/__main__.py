# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.study``: run the papers' experiments and write the page."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.study import PARTS, run
from benchmarks.study.page import page
from benchmarks.study.plots import draw
from benchmarks.study.setting import assumptions
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.study.result import Part

SCHEMA = "nidmap.study/1"


@click.command()
@click.option("--paper", type=click.Choice(list(PARTS)), help="One paper; default: all.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=lambda: min(2, os.cpu_count() or 1),
    show_default="2",
    help="Number of parallel processes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Markdown; FILE.md gets pictures too, as images/study-NAME.svg beside it.",
)
def study(paper: str | None, jobs: int, as_json: bool, output: str | None) -> None:
    """Run the papers' own experiments in the model, and compare with what they publish.

    Job placement, rank order and scaling of an FFT on Shaheen II, DASH's
    mapping on Hazel Hen, ISx's limit on Edison, MP-sort on Blue Waters'
    torus, and all-to-alls on tara's fat tree. All of it takes a minute or two.

    \b
    python -m benchmarks.study --paper tara
    python -m benchmarks.study --paper dash --json
    python -m benchmarks.study -o benchmarks/reports/study.md
    """
    parts = run(paper or "", jobs, _show_progress)
    if as_json:
        write_output(to_json(_document(parts)), output)
        return
    drawn = _write_pictures(parts, Path(output)) if output and output.endswith(".md") else []
    write_output(page(parts, drawn), output)


def _show_progress(title: str) -> None:
    """Show on a terminal which part is done."""
    if sys.stderr.isatty():
        say(f"study: {title}")


def _document(parts: Sequence[Part]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "assumed": [
            {"what": what, "value": value, "source": source}
            for what, value, source in assumptions()
        ],
        "parts": [part.document() for part in parts],
    }


def _write_pictures(parts: Sequence[Part], page: Path) -> list[str]:
    """Write a picture for each paper next to the page, and return which have one."""
    folder = page.parent / "images"
    drawn = draw(parts)
    if drawn:
        folder.mkdir(parents=True, exist_ok=True)
    for name, picture in drawn.items():
        write_output(picture, str(folder / f"study-{name}.svg"))
    return list(drawn)


if __name__ == "__main__":
    study()
