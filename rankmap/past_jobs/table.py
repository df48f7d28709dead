"""Past jobs for a person, for a spreadsheet and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from placement.commands.tables import align_columns
from placement.support.quantities import counted
from rankmap.compare.table import csv_text, html_page
from rankmap.past_jobs.judging import Verdict
from rankmap.past_jobs.plots import draw
from rankmap.past_jobs.summary import Summary, hours_text, ratio_text

__all__ = ["as_csv", "as_html", "as_text"]

#: Rows of each table for a person.
_MOST = 10

_KIN = ("application", "nodes", "jobs", "worse", "slowdown", "node-hours", "at least", "at most")


def as_text(summary: Summary) -> str:
    """Return the sentence, the applications and the jobs that lost most, and what it rests on."""
    lines = [summary.sentence, ""]
    lines.append(align_columns([_KIN, *_kin_cells(summary)[:_MOST]]))
    heads, rows = _heads(summary), _worst(summary)[:_MOST]
    if rows:
        lines.append(align_columns([heads, *(_cells(summary, v) for v in rows)], left=(0, 1, 2)))
    lines += [f"note: {note}" for note in summary.notes]
    return "\n".join(lines) + "\n"


def as_csv(summary: Summary) -> str:
    """Return a row a job, figures in full: seconds since 1970, node-hours."""
    rows = []
    for verdict in summary.verdicts:
        row = summary.row(verdict)
        touches, slow, saved = (row.pop(k) for k in ("touches", "slowdown", "saved_node_hours"))
        row["patterns"] = " ".join(row["patterns"])
        row |= {f"slowdown_{end}": value for end, value in slow.items()}
        row |= {f"saved_{end}": value for end, value in (saved or {}).items()}
        rows.append(row | touches)
    return csv_text(list(rows[0]) if rows else ["id"], rows)


def as_html(summary: Summary) -> str:
    """Return one HTML file that fetches nothing: sentence, tables and picture.

    Raises
    ------
    UsageError
        matplotlib is not there.
    """
    worst = [
        ("", [str(cell) for cell in _cells(summary, v)]) for v in _worst(summary)[: 10 * _MOST]
    ]
    kin = [("", [str(cell) for cell in row]) for row in _kin_cells(summary)[: 10 * _MOST]]
    tables = [(_KIN, kin), (_heads(summary), worst)]
    title = f"nidmap jobs: {summary.machine}"
    return html_page(title, summary.sentence, tables, draw(summary, "svg"), summary.notes)


def _kin_cells(summary: Summary) -> list[Sequence[object]]:
    """Return the applications as cells; no node-hours where no time can be told."""
    return [
        (
            kin.application, kin.nodes, kin.jobs, kin.worse, f"{kin.slowdown:.2f}",
            *(("-",) * 3 if summary.timeless else map(hours_text, (
                kin.saved.likely, kin.saved.low, kin.saved.high))),
        )
        for kin in summary.kin
    ]  # fmt: skip


def _worst(summary: Summary) -> list[Verdict]:
    """Return the jobs that could have sat better, those first that lost most."""
    slowed = [v for v in summary.verdicts if v.slowdown.likely > 1]
    return sorted(slowed, key=lambda v: (-summary.saved_by(v).likely, -v.slowdown.likely))


def _heads(summary: Summary) -> list[str]:
    levels = list(summary.verdicts[0].touches) if summary.verdicts else []
    ends = dict.fromkeys([*levels[:1], *levels[-1:]])
    more = [counted(2, level).partition(" ")[2] for level in ends]
    return ["job", "name", "user", "nodes", *more, "spread", "free", "slowdown", "node-hours"]


def _cells(summary: Summary, verdict: Verdict) -> list[object]:
    job, levels = summary.record(verdict), list(verdict.touches)
    touched = [verdict.touches[k] for k in dict.fromkeys([*levels[:1], *levels[-1:]])]
    hours = "-" if summary.timeless else hours_text(summary.saved_by(verdict).likely)
    mark = "*" if verdict.searched else ""
    return [
        job.id, job.name[:24], job.user[:16], verdict.nodes, *touched, f"{verdict.spread:.2f}",
        verdict.free, ratio_text(verdict.slowdown) + mark, hours,
    ]  # fmt: skip
