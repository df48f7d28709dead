"""Weak and strong scaling: cases of the same work in all, or on each rank."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workloads.report.gather import Case

__all__ = ["Series", "series", "work"]

#: Labels whose value is work on each rank, and in all, by program.
_EACH = {"sort": ("items",), "isx": ("keys",), "stencil": ("bytes",)}
_ALL = {"fft": ("n",)}


@dataclass(frozen=True, slots=True)
class Series:
    """Cases that differ only in the number of ranks.

    Attributes
    ----------
    workload : str
    kind : str
        ``strong`` (the same work in all) or ``weak`` (the same on each rank).
    name : str
        What they have in common.
    cases : list of Case
        By ranks, at least two different numbers of them.
    """

    workload: str
    kind: str
    name: str
    cases: list[Case]

    def points(self, phase: str) -> list[tuple[int, dict[str, float]]]:
        """Return (ranks, summary) of a phase, by ranks."""
        return [(case.ranks, case.phases[phase]) for case in self.cases if phase in case.phases]

    def phases(self) -> list[str]:
        """Return the phases of the cases, in their order."""
        return list(dict.fromkeys(name for case in self.cases for name in case.phases))


def work(case: Case) -> tuple[float | None, float | None, tuple[str, ...]]:
    """Return the work of a case in all and on each rank, and the labels that say it.

    Examples
    --------
    >>> from workloads.report.gather import Case
    >>> work(Case("f", "sort", 4, 1, 4, {"items": 1000}, {}))
    (4000.0, 1000.0, ('items',))
    >>> work(Case("f", "fft", 4, 1, 4, {"n": "128x128x64"}, {}))
    (1048576.0, 262144.0, ('n',))
    """
    known, each_known = _ALL.get(case.workload, ()), _EACH.get(case.workload, ())
    if case.labels.get("mode") == "strong":  # ISx counts its keys over all ranks then
        known, each_known = each_known, ()
    for name in known:
        total = _product(case.labels.get(name))
        if total is not None:
            return total, total / case.ranks, (name,)
    for name in each_known:
        each = _product(case.labels.get(name))
        if each is not None:
            return each * case.ranks, each, (name,)
    return None, None, ()


def _product(value: Any) -> float | None:
    """Return a number, or the product of ``128x128x64``; None for what is neither."""
    try:
        return float(math.prod(float(part) for part in str(value).split("x")))
    except ValueError:
        return None


def series(cases: Iterable[Case]) -> list[Series]:
    """Return the weak and strong series among the cases.

    A case whose work is not known belongs to a series with those that have
    the same labels, called ``same options``.
    """
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for case in cases:
        total, each, said = work(case)
        rest = {k: v for k, v in case.labels.items() if k not in (*said, "off_node", "inner")}
        # A process grid follows from the ranks: it tells cases of a series apart by nothing else.
        common = " ".join(f"{k}={v}" for k, v in rest.items() if k not in ("dims", "grid", "procs"))
        kinds = [("strong", total), ("weak", each)] if total is not None else []
        for kind, amount in kinds or [("same options", None)]:
            name = common if amount is None else f"{_amount(kind, amount, case, said)} {common}"
            groups.setdefault((case.workload, kind, name.strip()), []).append(case)
    return [
        Series(workload, kind, name, _by_ranks(found))
        for (workload, kind, name), found in groups.items()
        if len({case.ranks for case in found}) > 1
    ]


def _amount(kind: str, amount: float, case: Case, said: tuple[str, ...]) -> str:
    """Return the work that a series has in common, in its label's own words where they fit."""
    text = str(case.labels[said[0]])
    shown = text if "x" in text and kind == "strong" else f"{amount:.0f}"
    return f"{said[0]} {shown} {'in all' if kind == 'strong' else 'a rank'}"


def _by_ranks(cases: Sequence[Case]) -> list[Case]:
    """Return the cases by ranks; of several runs of the same, the one with the best median."""
    best: dict[int, Case] = {}
    for case in cases:
        other = best.get(case.ranks)
        if other is None or _median(case) < _median(other):
            best[case.ranks] = case
    return [best[ranks] for ranks in sorted(best)]


def _median(case: Case) -> float:
    return case.phases.get("total", {}).get("median", math.inf)
