# SPDX-License-Identifier: Apache-2.0
"""The study as a page of Markdown, with pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.study.published import LEFT_OUT, PAPERS
from benchmarks.study.setting import assumptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.study.result import Check, Part

HEAD = """\
# The papers' experiments in the model

<!-- made by `python -m benchmarks.study -o benchmarks/reports/study.md`: change
     benchmarks/study, not this page -->

This page is written by `python -m benchmarks.study -o benchmarks/reports/study.md`; a test
makes a part of it again and compares. It puts the experiments of five papers through the model
of [predictions](../../docs/trust/time.md), and says where the two agree and where not.
Node lists, grids and neighbours of the runs are mostly unpublished, so signs
and ratios are what can be compared; where something random stands for what is
not known, the spread is given.

Nothing is fitted to a table. Where the model disagrees, the reason given is a
term switched off or a constant varied, with what comes of it. Every verdict
follows from figures by the rule that stands beside it; where a paper states no
spread, a factor of 4/3 either way agrees. What the papers print is quoted as it
is printed; what is worked out of it is marked so.
"""


def page(parts: Sequence[Part], images: Sequence[str] = ()) -> str:
    """Return the whole page.

    Parameters
    ----------
    parts : sequence of Part
    images : sequence of str
        Papers that have a picture ``images/study-<paper>.svg``.
    """
    blocks = [HEAD, _summary(parts), _left_out(parts), _shared_parameters()]
    for name in dict.fromkeys(part.paper for part in parts):
        picture = f"![{PAPERS[name].title}](images/study-{name}.svg)" if name in images else ""
        blocks.append(f"## {PAPERS[name].title}\n\n{PAPERS[name].source}.")
        blocks += [picture] if picture else []
        blocks += [section(part) for part in parts if part.paper == name]
    return "\n\n".join(block.strip() for block in blocks if block) + "\n"


def _summary(parts: Sequence[Part]) -> str:
    """Return how many claims agree, and those that do not."""
    lines = ["## In short", "", "| paper | statements | agree | disagree |", "|---|---|---|---|"]
    for name in dict.fromkeys(part.paper for part in parts):
        checks = [check for part in parts if part.paper == name for check in part.checks]
        good = sum(check.agrees for check in checks)
        lines.append(f"| {PAPERS[name].title} | {len(checks)} | {good} | {len(checks) - good} |")
    wrong = [check for part in parts for check in part.checks if not check.agrees]
    near = sum(check.term_agrees for check in wrong)
    count = (
        f"Where they part, {near} of {len(wrong)} with one named term that brings the model there:"
    )
    lines += ["", count, ""] if wrong else []
    lines += [
        f"- **{one.what}**: published {one.published}, model {one.model}"
        + (f" ({one.varied})." if one.varied else ".")
        for one in wrong
    ]
    return "\n".join(lines)


def _left_out(parts: Sequence[Part]) -> str:
    """Return what the papers publish but the study does not try, with the reason."""
    known = {part.paper for part in parts}
    lines = ["## Left out", ""]
    lines += [f"- **{what}**: {why}." for paper, what, why in LEFT_OUT if paper in known]
    return "\n".join(lines) if len(lines) > 2 else ""


def _shared_parameters() -> str:
    """Return the parameters that all parts share, with their sources."""
    lines = [
        "## What is assumed",
        "",
        "The same for all papers, beside the figures of the site configurations"
        " (`nidmap site show NAME`, each marked measured, published or assumed):",
        "",
        "| what | value | source |",
        "|---|---|---|",
    ]
    lines += [f"| {what} | {value} | {source} |" for what, value, source in assumptions()]
    return "\n".join(lines)


def section(part: Part) -> str:
    """Return one part: what was done, its tables, its statements."""
    blocks = [f"### {part.title}", *part.text]
    blocks += [table.markdown() for table in part.tables]
    if part.checks:
        blocks.append(checks_table(part.checks))
    return "\n\n".join(blocks)


def checks_table(checks: Sequence[Check]) -> str:
    """Return claims as a table."""
    rows = ["| statement | paper | model | rule | verdict | varied |", "|---|---|---|---|---|---|"]
    rows += [f"| {' | '.join(_cells(check))} |" for check in checks]
    return "\n".join(rows)


def _cells(check: Check) -> Iterator[str]:
    yield from (check.what, check.published, check.model)
    yield from (check.claim.words, check.verdict, check.varied)
