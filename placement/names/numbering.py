"""What the numbering rules of all Crays share: places to NIDs and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import printable
from placement.names.cname import BadNameError, Cname

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Numbering", "columns_of", "marked"]


def columns_of(table: ArrayLike, width: int) -> list[NDArray[np.int64]]:
    """Return the columns of an (n, width) table of whole numbers."""
    array = np.asarray(table, dtype=np.int64).reshape(-1, width)
    return list(array.T)


def marked(good: NDArray[np.bool_], *columns: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the columns as int32 (n, k), rows that are not good as -1."""
    table = np.stack(columns, axis=1)
    return np.where(good[:, None], table, -1).astype(np.int32)


class Numbering(ABC):
    """A rule that gives every place of a machine its NID and its coordinates.

    The array methods mark what is impossible with -1; ``nid_of`` and
    ``cname_of`` take one name or number and raise `BadNameError`.
    """

    __slots__ = ()

    @abstractmethod
    def nid(self, parts: ArrayLike) -> NDArray[np.int64]:
        """Return the NIDs (n,) of places int (n, 5); -1 for a place outside the machine."""

    @abstractmethod
    def parts(self, nid: ArrayLike) -> NDArray[np.int32]:
        """Return the places (n, 5) of NIDs (n,); a row of -1 for a NID outside the machine."""

    @abstractmethod
    def coords(self, parts: ArrayLike) -> NDArray[np.int32]:
        """Return the network coordinates (n, 4) of places (n, 5); -1 outside the machine."""

    @abstractmethod
    def parts_of_coords(self, coords: ArrayLike) -> NDArray[np.int32]:
        """Return the places (n, 5) of network coordinates (n, 4); -1 outside the machine."""

    @abstractmethod
    def outside(self, name: Cname) -> str:
        """Say why a node cname is outside this machine; '' where it is inside."""

    @property
    @abstractmethod
    def nids(self) -> str:
        """The range of NIDs in words."""

    def nid_of(self, name: Cname | str) -> int:
        """Return the NID of one node.

        Parameters
        ----------
        name : Cname or str

        Returns
        -------
        int

        Raises
        ------
        BadNameError
            Where it is not the cname of a node, or outside this machine.
        """
        cname = Cname.parse(name) if isinstance(name, str) else name
        if not cname.is_node:
            raise BadNameError(
                str(cname), 0, "not the cname of a node", "a node's ends in n0 to n3"
            )
        nid = int(self.nid([cname.parts])[0])
        if nid < 0:
            raise BadNameError(str(cname), 0, self.outside(cname) or "outside this machine")
        return nid

    def cname_of(self, nid: int) -> Cname:
        """Return the cname of one NID.

        Raises
        ------
        BadNameError
            Where this machine has no such NID.
        """
        small = -(2**62) < nid < 2**62
        parts = self.parts([nid])[0].tolist() if small else [-1]
        if parts[0] < 0:
            raise BadNameError(f"NID {printable(str(nid))}", 0, f"out of range: {self.nids}")
        return Cname(*parts)
