"""Past jobs for a person, for a spreadsheet and as a picture."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from placement.support.quantities import counted
from placement.support.tables import align_columns, csv_table
from rankmap.compare.plots import COLOURS, picture
from rankmap.past_jobs.judging import Verdict
from rankmap.past_jobs.summary import WORSE, Summary, hours_text, ratio_text

__all__ = ["as_csv", "as_text", "draw"]

#: Rows of each table for a person.
_MOST = 10
#: Applications that have a colour of their own; the others share grey.
_NAMED = 6

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
    return csv_table([rows[0] if rows else ["id"], *(row.values() for row in rows)])


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


def draw(summary: Summary, form: str) -> bytes:
    """Return the picture of a summary as ``svg`` or ``png``."""
    return picture(form, lambda new: _figure(summary, new), {"text.parse_math": False})


def _figure(summary: Summary, figure: Any) -> Any:
    drawn = figure(figsize=(9, 5.6), layout="constrained")
    drawn.suptitle(textwrap.fill(summary.sentence, 90), fontsize=11, fontweight="bold")
    axes = drawn.add_subplot()
    names = [summary.application(verdict) for verdict in summary.verdicts]
    shown = list(dict.fromkeys(kin.application for kin in summary.kin))[:_NAMED]
    nodes = np.array([verdict.nodes for verdict in summary.verdicts], dtype=float)
    slow = np.array([verdict.slowdown.likely for verdict in summary.verdicts], dtype=float)
    hours = np.array([summary.hours_of(verdict) for verdict in summary.verdicts], dtype=float)
    area = 12 + 150 * np.sqrt(hours / max(hours.max(initial=0.0), 1e-300))
    other = np.array([name not in shown for name in names], dtype=bool)
    for mask, colour, label in (
        (other, "#999999", "others"),
        *(
            (np.array([name == wanted for name in names], dtype=bool), colour, wanted)
            for wanted, colour in zip(shown, COLOURS.values(), strict=False)
        ),
    ):
        if mask.any():
            dots: dict[str, Any] = {"color": colour, "label": label[:30], "alpha": 0.55}
            axes.scatter(nodes[mask], slow[mask], s=area[mask], linewidths=0, **dots)
    axes.axhline(WORSE, color="black", linewidth=0.8, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(0.97, max(1.5, float(slow.max(initial=1.0))) * 1.1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for set_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        set_formatter(lambda value, _: f"{value:.3g} x")
    axes.set_xlabel("nodes of the job (area of a dot: its node-hours)")
    axes.set_ylabel("communication against the best placement then free")
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8, markerscale=0.6)
    return drawn
