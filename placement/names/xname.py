"""HPE xnames (``x1000c0s3b1n0``): where a component of a Cray EX sits.

No NID and no dragonfly group follows from an xname: the NID is read from the
System Layout Service or from Slurm, the group from a site's own table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from placement.errors import printable
from placement.names.cname import BadNameError

__all__ = ["Xname"]

_FORM = re.compile(
    r"x(?P<cabinet>\d{1,5})"
    r"(?:c(?P<chassis>\d{1,3})"
    r"(?:s(?P<slot>\d{1,3})(?:b(?P<board>\d{1,3})(?:n(?P<node>\d{1,3})(?:h(?P<nic>\d{1,3}))?)?)?"
    r"|r(?P<switch>\d{1,3})(?P<below>b\d{1,3}|a\d{1,3}(?:l\d{1,3})?|j\d{1,3}(?:p\d{1,3})?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_ZEROS = re.compile(r"(?<=[a-z])0+(?=\d)", re.ASCII)
_MOST = {"cabinet": 9999, "chassis": 7, "nic": 3}


@dataclass(frozen=True, slots=True)
class Xname:
    """A component of a Cray EX; parts that the name leaves out are None.

    Attributes
    ----------
    cabinet : int
        0 to 9999.
    chassis : int or None
        0 to 7.
    slot, board, node : int or None
        Of a node: its blade, the board on it and the node on that.
    nic : int or None
        Network card of the node, 0 to 3.
    switch : int or None
        Of a switch: its slot.
    below : str
        Part of a switch: ``b0`` its controller, ``a0l12`` a link of its
        ASIC, ``j3p1`` a port of a jack; '' for the whole.

    Examples
    --------
    >>> Xname.parse("X1000c0S03b1n0")
    Xname(cabinet=1000, chassis=0, slot=3, board=1, node=0, nic=None, switch=None, below='')
    >>> str(Xname.parse("x3000c0r015j1p0"))
    'x3000c0r15j1p0'
    """

    cabinet: int
    chassis: int | None = None
    slot: int | None = None
    board: int | None = None
    node: int | None = None
    nic: int | None = None
    switch: int | None = None
    below: str = ""

    @classmethod
    def parse(cls, text: str) -> Xname:
        """Read an xname, upper or lower case, with or without leading zeros.

        Raises
        ------
        BadNameError
            Where it is not an xname, or names a cabinet, chassis or network
            card that there cannot be.

        Examples
        --------
        >>> Xname.parse("x1000c9s0b0n0")
        Traceback (most recent call last):
        ...
        placement.names.cname.BadNameError: x1000c9s0b0n0: chassis 9 is impossible; there are 0 to 7
        """
        match, shown = _FORM.fullmatch(text), printable(text)
        if match is None:
            hint = "a node's looks like x1000c0s3b1n0"
            raise BadNameError(shown or "''", 0, "not an xname", hint)
        found = match.groupdict()
        below = _ZEROS.sub("", (found.pop("below") or "").lower())
        values = {k: v and int(v) for k, v in found.items()}
        for part, most in _MOST.items():
            if (values[part] or 0) > most:
                what = f"{part} {values[part]} is impossible"
                raise BadNameError(shown, 0, what, f"there are 0 to {most}")
        return cls(below=below, **values)  # type: ignore[arg-type]  # a match has a cabinet

    @property
    def is_node(self) -> bool:
        """True for the name of one whole node."""
        return self.node is not None and self.nic is None

    def __str__(self) -> str:
        numbers = (self.cabinet, self.chassis, self.slot, self.board)
        letters = zip("xcsbnhr", (*numbers, self.node, self.nic, self.switch), strict=True)
        return "".join(f"{k}{v}" for k, v in letters if v is not None) + self.below
