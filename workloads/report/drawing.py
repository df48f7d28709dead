"""Which section gets which figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workloads.report import plots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.report.fits import Fitted
    from workloads.report.sections import Section

__all__ = ["draw"]

#: Most figures of one kind: a page of hundreds answers nothing.
_MOST = 12


def draw(sections: Sequence[Section]) -> None:
    """Add the figures to the sections."""
    predicted = {
        f"{row['files']} {row['arm']}": row["predicted_ratio"]
        for section in sections
        if section.name == "predicted"
        for row in section.rows
        if row["predicted_ratio"]
    }
    for section in sections:
        if section.name == "ab":
            _compared(section, predicted)
        elif section.name == "bandwidth":
            section.figures.append(plots.bandwidth(section.rows))
        elif section.name == "gamma":
            section.figures += [plots.gamma(group) for group in _by_series(section.fitted)[:_MOST]]
        section.figures += [plots.scaling(one) for one in section.series[:_MOST]]


def _compared(section: Section, predicted: dict[str, float]) -> None:
    """Add the intervals, and the improvement by message size where there are several sizes."""
    rows = [row for row in section.rows if row["ratio"] is not None]
    credited = [row for row in rows if row["phase"] == "communication"] or rows
    if credited:
        section.figures.append(plots.forest(credited, predicted))
    for name in dict.fromkeys(row["workload"] for row in credited):
        sized = [r for r in credited if r["workload"] == name and r["bytes"] is not None]
        if len({row["bytes"] for row in sized}) > 1:
            section.figures.append(plots.improvement(sized))


def _by_series(fitted: Sequence[Fitted]) -> list[list[Fitted]]:
    groups: dict[tuple[str, str], list[Fitted]] = {}
    for one in fitted:
        groups.setdefault((one.workload, one.name), []).append(one)
    return list(groups.values())
