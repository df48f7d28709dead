"""One picture of samples: for each phase the seconds of every case or arm, as boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from placement.errors import printable
from placement.support.lazy import lazy

plots = lazy("rankmap.compare.plots")

__all__ = ["draw_samples"]

#: Columns of samples that do not tell cases apart.
_BOOKKEEPING = {
    *("launch", "block", "visit", "repetition", "warmup", "phase"),
    *("min", "mean", "max", "figure", "wall"),
}

#: Inches of a panel's width, of a case's row, and of what stands above and below the rows.
_WIDTH, _ROW, _FRAME = 7.0, 0.35, 1.2


def draw_samples(header: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], form: str) -> bytes:
    """Return a picture of samples, warm-ups left out.

    Parameters
    ----------
    header, rows
        As `workloads.results.save` takes them.
    form : str
        ``svg`` or ``png``.

    Returns
    -------
    bytes
    """
    phases = _seconds(rows)
    most = max((len(cases) for cases in phases.values()), default=1)
    size = _WIDTH, max(len(phases), 1) * (_FRAME + _ROW * most)

    def build(new: Any) -> Any:
        figure = new(figsize=size, layout="tight")
        title = f"{header.get('workload', '')} on {header.get('ranks', '?')} ranks"
        figure.suptitle(printable(title, 100))
        for place, (phase, cases) in enumerate(phases.items(), 1):
            axes = figure.add_subplot(len(phases), 1, place)
            axes.boxplot(list(cases.values()), orientation="horizontal")
            axes.set_yticks(range(1, len(cases) + 1), [printable(name, 60) for name in cases])
            axes.invert_yaxis()
            axes.set_xlabel(f"seconds of {printable(phase, 40)}")
            axes.set_xlim(left=0)
        return figure

    drawn: bytes = plots.picture(form, build, {"text.parse_math": False})
    return drawn


def _seconds(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Return by phase and case the slowest rank's seconds of the repetitions that count.

    Examples
    --------
    >>> _seconds([{"arm": "plan", "warmup": 0, "phase": "total", "max": 0.25, "block": 3}])
    {'total': {'plan': [0.25]}}
    """
    phases: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if not row.get("warmup"):
            labels = {k: v for k, v in row.items() if k not in _BOOKKEEPING and v not in (None, "")}
            words = labels.values() if len(labels) < 2 else (f"{k}={v}" for k, v in labels.items())
            name = " ".join(map(str, words))
            phases.setdefault(row["phase"], {}).setdefault(name, []).append(float(row["max"]))
    return phases
