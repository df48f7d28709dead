"""T = C p^(-gamma) through the times of a strong series, in one piece or in two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workloads.fft.scaling import Fit
    from workloads.report.scaling import Series

__all__ = ["Fitted", "Piece", "fits"]

#: Phases that are fitted, where a series has them.
_PHASES = ("total", "communication")

#: Fewest numbers of ranks of a piece.
_FEWEST = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """One fit.

    Attributes
    ----------
    where : str
        Of which level of the network; '' for all points.
    gamma, low, high : float
        The exponent and its interval.
    constant : float
        C, in seconds.
    first, last : int
        Ranks of its ends.
    points : int
    """

    where: str
    gamma: float
    low: float
    high: float
    constant: float
    first: int
    last: int
    points: int

    def words(self) -> str:
        """Return the fit as a legend has it.

        Examples
        --------
        >>> Piece("within chassis", 0.84, 0.81, 0.87, 2.0, 1, 60, 5).words()
        'gamma 0.84 (0.81 to 0.87), 1 to 60 ranks, within chassis'
        """
        span = f"({self.low:.2f} to {self.high:.2f})"
        text = f"gamma {self.gamma:.2f} {span}, {self.first} to {self.last} ranks"
        return f"{text}, {self.where}" if self.where else text


@dataclass(frozen=True, slots=True)
class Fitted:
    """The fits of one phase of a series.

    Attributes
    ----------
    workload, name, phase : str
    ranks : list of int
    seconds : list of float
        Medians.
    pieces : list of Piece
        The whole first, then the parts below and above a break.
    """

    workload: str
    name: str
    phase: str
    ranks: list[int]
    seconds: list[float]
    pieces: list[Piece]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row a piece."""
        return [
            {
                "workload": self.workload,
                "series": self.name,
                "phase": self.phase,
                "where": piece.where,
                "from_ranks": piece.first,
                "to_ranks": piece.last,
                "points": piece.points,
                "gamma": piece.gamma,
                "gamma_low": piece.low,
                "gamma_high": piece.high,
                "c_s": piece.constant,
            }
            for piece in self.pieces
        ]


def fits(series: Series, level: float, breaks: Mapping[str, int] | None = None) -> list[Fitted]:
    """Return the fits of a strong series: each phase in one piece, and in two at each break.

    Parameters
    ----------
    series : Series
    level : float
        Coverage of the intervals.
    breaks : mapping of str to int or None
        Ranks up to which each level of the network reaches, by its name. One
        with fewer than 3 points on a side is left out.
    """
    found = []
    for phase in _PHASES:
        points = [(n, e["median"]) for n, e in series.points(phase) if e["median"] > 0]
        if len(points) < _FEWEST:
            continue
        ranks, seconds = [n for n, _ in points], [s for _, s in points]
        pieces = _pieces(ranks, seconds, level, breaks or {})
        found.append(Fitted(series.workload, series.name, phase, ranks, seconds, pieces))
    return found


def _pieces(
    ranks: list[int], seconds: list[float], level: float, breaks: Mapping[str, int]
) -> list[Piece]:
    from workloads.fft.scaling import fit_gamma

    pieces = [_piece(fit_gamma(ranks, seconds, confidence=level).whole, "")]
    for name, at in breaks.items():
        below = sum(n <= at for n in ranks)
        if min(below, len(ranks) - below) < _FEWEST:
            continue
        split = fit_gamma(ranks, seconds, break_at=at, level=name, confidence=level)
        sides = ((split.inside, f"within {name}"), (split.beyond, f"beyond {name}"))
        pieces += [_piece(fit, where) for fit, where in sides if fit is not None]
    return pieces


def _piece(fit: Fit, where: str) -> Piece:
    ends = int(fit.first), int(fit.last)
    return Piece(where, fit.gamma, fit.low, fit.high, fit.constant, *ends, fit.points)
