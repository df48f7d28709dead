"""What the numbering rules of all Crays share: places to NIDs and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from placement.support.array_types import Ints, Ints32, Mask

__all__ = ["Numbering", "columns_of", "mark_missing"]

Rule = TypeVar("Rule", bound="Numbering")


def columns_of(table: ArrayLike, width: int) -> list[Ints]:
    """Return the columns of an (n, width) table of whole numbers."""
    return list(np.asarray(table, dtype=np.int64).reshape(-1, width).T)


def mark_missing(good: Mask, *columns: Ints) -> Ints32:
    """Return the columns as int32 (n, k), rows that are not good as -1."""
    return np.where(good[:, None], np.stack(columns, axis=1), -1).astype(np.int32)


class Numbering(ABC):
    """A rule that gives every place of a machine its NID and its coordinates.

    Each has ``nid`` and ``coords`` of places, int (n, 5), and the opposites ``parts`` and
    ``parts_of_coords``. What is impossible is marked with -1.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def limits(self) -> tuple[int, int, int, int, int]:
        """How many columns, rows, cages, slots and nodes there are."""

    @classmethod
    @abstractmethod
    def vote(cls: type[Rule], parts: ArrayLike, nid: ArrayLike) -> tuple[Rule, Mask] | None:
        """Find the numbering with which most nodes agree, and which do.

        Parameters
        ----------
        parts, nid
            As for `fit`.

        Returns
        -------
        (Numbering, bool (n,)) or None
            The numbering and the mask of the nodes that agree with it (those
            left out count as agreeing); None where no node agrees with any.
        """

    @classmethod
    def fit(cls: type[Rule], parts: ArrayLike, nid: ArrayLike) -> Rule | None:
        """Find the numbering of a machine from nodes that state place and NID.

        Parameters
        ----------
        parts : int (n, 5)
            Places; rows with a negative number say nothing and are left out.
        nid : int64 (n,)
            Their NIDs; negative ones are left out.

        Returns
        -------
        Numbering or None
            The numbering with which all nodes agree, the smallest where
            several do. None where there is none (as on a small torus that
            numbers differently) or no node was given.
        """
        vote = cls.vote(parts, nid)
        return None if vote is None or not vote[1].all() else vote[0]

    def inside(self, *parts: Ints) -> Mask:
        """Return which places, given by their five columns, are inside the machine."""
        inside = [(p >= 0) & (p < limit) for p, limit in zip(parts, self.limits, strict=True)]
        return np.asarray(np.logical_and.reduce(inside))
