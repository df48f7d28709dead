# SPDX-License-Identifier: Apache-2.0
"""The rule behind every verdict of the study: the paper's figures, the model's, a tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Factor by which a figure of the model may be off, either way, where a paper states no spread.
SPREAD = 4 / 3


@dataclass(frozen=True, slots=True)
class Claim:
    """What makes a published claim hold, decided by figures alone.

    Attributes
    ----------
    rule : str
        ``near``, ``inside``, ``over``, ``under``, ``falling`` or ``rising``.
    model : tuple of float
    published : tuple of float
        One figure, as many as the model's, or the two ends of a range; none where the
        model's figures are held against each other.
    spread : float
        Factor that ``near`` and ``inside`` allow on either side.
    """

    rule: str
    model: tuple[float, ...]
    published: tuple[float, ...] = ()
    spread: float = 1.0

    @property
    def holds(self) -> bool:
        """Whether the model's figures satisfy the rule."""
        if self.rule in ("falling", "rising"):
            sign = 1 if self.rule == "rising" else -1
            return all(sign * (b - a) > 0 for a, b in pairwise(self.model))
        if self.rule == "near":
            ends = self.published * (len(self.model) // len(self.published))
            return all(
                published / self.spread <= found <= published * self.spread
                for found, published in zip(self.model, ends, strict=True)
            )
        low = self.published[0] / self.spread if self.rule != "under" else float("-inf")
        high = self.published[-1] * self.spread if self.rule != "over" else float("inf")
        strict = self.rule != "inside"
        return all(low < x < high if strict else low <= x <= high for x in self.model)

    @property
    def words(self) -> str:
        """The rule in words.

        Examples
        --------
        >>> near(1.2, 1.0).words, over(0.1, 0.0).words
        ('within a factor of 1.33', 'above 0')
        """
        if self.rule in ("falling", "rising"):
            return self.rule
        if self.rule == "near":
            return f"within a factor of {self.spread:.3g}"
        if self.rule == "inside":
            wider = f", give or take a factor of {self.spread:.3g}" if self.spread > 1 else ""
            return f"between {self.published[0]:g} and {self.published[1]:g}{wider}"
        return f"{'above' if self.rule == 'over' else 'below'} {self.published[0]:g}"


def _figures(values: float | Iterable[float]) -> tuple[float, ...]:
    return (float(values),) if isinstance(values, (int, float)) else tuple(map(float, values))


def near(
    model: float | Iterable[float], published: float | Iterable[float], spread: float = SPREAD
) -> Claim:
    """Return the claim that each figure is within a factor of the published one.

    Examples
    --------
    >>> near([1.0, 2.0], [1.2, 1.9]).holds, near(1.0, 1.5).holds
    (True, False)
    """
    return Claim("near", _figures(model), _figures(published), spread)


def inside(model: float | Iterable[float], least: float, most: float, spread: float = 1.0) -> Claim:
    """Return the claim that all figures are within a published range.

    Examples
    --------
    >>> inside([1.4, 2.0], 1.4, 2.2).holds, inside(2.5, 1.4, 2.2).holds
    (True, False)
    """
    return Claim("inside", _figures(model), (least, most), spread)


def over(model: float | Iterable[float], least: float) -> Claim:
    """Return the claim that all figures are above one.

    Examples
    --------
    >>> over([0.1, 0.2], 0).holds
    True
    """
    return Claim("over", _figures(model), (least,))


def under(model: float | Iterable[float], most: float) -> Claim:
    """Return the claim that all figures are below one.

    Examples
    --------
    >>> under(0.0039, 0.01).holds
    True
    """
    return Claim("under", _figures(model), (most,))


def falling(model: Iterable[float]) -> Claim:
    """Return the claim that figures decrease monotonically.

    Examples
    --------
    >>> falling([3, 2, 2]).holds
    False
    """
    return Claim("falling", _figures(model))


def rising(model: Iterable[float]) -> Claim:
    """Return the claim that figures increase monotonically.

    Examples
    --------
    >>> rising([1, 2, 3]).holds
    True
    """
    return Claim("rising", _figures(model))
