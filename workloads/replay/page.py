# SPDX-License-Identifier: Apache-2.0
"""The report on a study as one self-contained page of HTML, to show in a meeting."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from nidmap.placement.support.array_types import Floats
from nidmap.placement.support.quantities import plural, unit_name
from nidmap.rankmap.compare.plots import COLOURS, picture_bytes
from nidmap.workloads.replay.engine import Outcome
from nidmap.workloads.replay.report import Report
from nidmap.workloads.replay.slider import slider_html
from nidmap.workloads.replay.study import Case, kept_outcome

_STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
.first { font-size: 1.2rem; font-weight: 600 } table { border-collapse: collapse; width: 100% }
th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid #ccc }
th:first-child, td:first-child { text-align: left } svg { max-width: 100%; height: auto }
.notes { color: #555; font-size: .9rem }
#slider p:first-child { display: flex; gap: 1rem; align-items: center } #slider input { flex: 1 }
#slider output { min-width: 9rem } #slider button { font: inherit; min-width: 5rem }
figure { margin: .75rem 0 } figure svg { width: 100%; display: block }
"""

#: Shortest wait that is drawn, minutes: a logarithmic axis has no 0.
_LEAST_WAIT = 0.1

#: Shortest time that is drawn, days (a minute): a figure needs a width.
_LEAST_DAYS = 60 / 86400


def html_page(report: Report, folder: str) -> str:
    """Return the page of a study with replays kept in a folder."""
    study = report.study
    case = _middle_case(report)
    kept = {p: kept_outcome(folder, case._replace(policy=p)) for p in report.policies}
    title = f"{len(study.traces[0]):,} jobs on {study.machine.name}"
    drawn = f"communication share {100 * case.share:g} %, seed {case.seed}"
    verdicts = [report.verdict(policy) for policy in report.policies[1:]]
    losers = [report.loser_text(policy) for policy in report.policies[1:]]
    level = plural(unit_name(study.machine.topology.levels[0]))
    pictures = [
        ("Who finishes later, who earlier", lambda new: _draw_sizes(report, new)),
        (f"Waits ({drawn})", lambda new: _draw_waits(report, case, kept, new)),
        (f"Busy nodes of the {level} over time ({drawn})", lambda new: _draw_units(kept, new)),
        ("Free nodes: 0 close together, 1 far apart", lambda new: _draw_broken(kept, new)),
    ]  # fmt: skip
    body = [f"<h1>{escape(title)}</h1>", f'<p class="first">{escape(report.sentence())}</p>']
    body += [_html_table(report), _html_list(verdicts), "<h2>Who loses</h2>", _html_list(losers)]
    for heading, build in pictures:
        svg = picture_bytes("svg", build, {"text.parse_math": False}).decode()
        body += [f"<h2>{escape(heading)}</h2>", svg[svg.index("<svg") :]]
    played = slider_html(study, study.trace(case), kept)
    body += [f"<h2>Who sat where ({escape(drawn)})</h2>", played]
    body += ['<div class="notes">', _html_list(list(report.notes)), "</div>"]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en">{head}\n' + "\n".join(body) + "\n</html>\n"


def _middle_case(report: Report) -> Case:
    """Return the case of the first policy with the middle share and the first seed."""
    cases = [case for case in report.summaries if case.policy == report.first]
    shares = sorted({case.share for case in cases})
    share = shares[len(shares) // 2]
    return next(case for case in cases if case.share == share)


def _html_table(report: Report) -> str:
    heads, *rows = report.rows()
    cells = "".join(f"<th>{escape(head)}</th>" for head in heads)
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return f"<table><tr>{cells}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _html_list(texts: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def _colours(names: Any) -> Iterator[tuple[str, str]]:
    """Yield policies with their colours."""
    palette = ["#000000", *COLOURS.values(), "#56b4e9", "#999999"]
    yield from zip(names, palette * len(names), strict=False)


def _plane(figure: Any, height: float) -> tuple[Any, Any]:
    drawn = figure(figsize=(9, height), layout="constrained")
    axes = drawn.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return drawn, axes


def _draw_sizes(report: Report, figure: Any) -> Any:
    """Draw how much the turnaround of each job size changes under each policy, with its range."""
    drawn, axes = _plane(figure, 3.6)
    labels = sorted(report.groups("size"), key=lambda label: int(label.split("-")[0].split()[0]))
    others = list(_colours(report.policies))[1:]
    for k, (policy, colour) in enumerate(others):
        axes.plot([], [], "o", color=colour, label=policy)  # in the legend even without a figure
        for at, label in enumerate(labels):
            path = "groups", "size", label, "turnaround_mean"
            if (change := report.change(policy, *path, relative=True)) is not None:
                low, likely, high = (100 * value for value in change)
                where = at + (k - (len(others) - 1) / 2) * 0.8 / len(others)
                ends: Any = [[likely - low], [high - likely]]
                axes.errorbar(where, likely, ends, fmt="o", color=colour, capsize=3)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(labels)), labels, rotation=20)
    axes.set_yscale("symlog", linthresh=10)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:+.0f} %")
    axes.set_ylabel(f"turnaround, against {report.first}")
    if others:
        axes.legend(frameon=False, ncols=len(others))
    return drawn


def _draw_waits(report: Report, case: Case, kept: dict[str, Outcome], figure: Any) -> Any:
    """Draw the distribution of waits."""
    drawn, axes = _plane(figure, 3.6)
    submit = report.study.trace(case).submit
    for policy, colour in _colours(tuple(kept)):
        minutes: Floats = np.sort(np.maximum(kept[policy].start - submit, 0) / 60)
        shown = np.unique(np.linspace(0, len(minutes) - 1, 2000).astype(int))
        axes.step(np.maximum(minutes[shown], _LEAST_WAIT), 100 * (shown + 1) / len(minutes),
                  where="post", color=colour, label=policy)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlabel("wait in minutes")
    axes.set_ylabel("% of jobs that wait no longer")
    axes.legend(frameon=False)
    return drawn


def _draw_units(kept: dict[str, Outcome], figure: Any) -> Any:
    """Draw the busy nodes of each outermost unit over time, policy by policy."""
    drawn = figure(figsize=(9, 1.3 * len(kept) + 0.6), layout="constrained")
    planes = drawn.subplots(len(kept), 1, sharex=True, squeeze=False)[:, 0]
    lasts = [max(o.moment.max(initial=0) / 86400, _LEAST_DAYS) for o in kept.values()]
    for axes, last, (policy, outcome) in zip(planes, lasts, kept.items(), strict=True):
        most = max(int(outcome.busy.max(initial=1)), 1)
        extent = 0.0, last, -0.5, outcome.busy.shape[1] - 0.5
        shown = axes.imshow(outcome.busy.T, aspect="auto", origin="lower", vmin=0, vmax=most,
                            extent=extent, cmap="cividis", interpolation="nearest")  # fmt: skip
        axes.set_ylabel(policy)
    planes[-1].set_xlim(0, max(lasts))
    planes[-1].set_xlabel("days")
    drawn.colorbar(shown, ax=list(planes), label="busy nodes")
    return drawn


def _draw_broken(kept: dict[str, Outcome], figure: Any) -> Any:
    drawn, axes = _plane(figure, 2.8)
    for policy, colour in _colours(tuple(kept)):
        outcome = kept[policy]
        width = max(1, len(outcome.broken) // 100)
        parts = len(outcome.broken) // width * width
        means = outcome.broken[:parts].reshape(-1, width).mean(axis=1)
        axes.plot(outcome.moment[:parts:width] / 86400, means, color=colour, label=policy)
    axes.set_ylim(0, 1)
    axes.set_xlabel("days")
    axes.legend(frameon=False, ncols=len(kept))
    return drawn
