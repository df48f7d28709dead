"""One Cray cname, from a whole cabinet (``c0-0``) to one accelerator (``c0-0c1s2n3a0``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from placement.errors import ParseError, printable
from placement.names.columns import LIMITS

__all__ = ["BadNameError", "Cname"]

_FORM = re.compile(
    r"c(?P<col>\d{1,4})-(?P<row>\d{1,4})"
    r"(?:c(?P<cage>\d{1,4})"
    r"(?:s(?P<slot>\d{1,4})"
    r"(?:n(?P<node>\d{1,4})(?:a(?P<accelerator>\d))?"
    r"|(?:a(?P<aries>\d)|g(?P<gemini>\d))(?:l(?P<tile>[0-7]{2}))?)?)?)?",
    re.ASCII | re.IGNORECASE,
)


class BadNameError(ParseError, ValueError):
    """A name that cannot be one, or a NID or place outside the machine.

    It is a `ParseError`, so the command line leaves with exit code 3, and a
    ValueError for those who use the names as a library.
    """


@dataclass(frozen=True, slots=True)
class Cname:
    """A place in a Cray's machine room; parts that the name leaves out are None.

    Attributes
    ----------
    col, row : int
        Cabinet: its position in the row, and the row.
    cage : int or None
        Chassis in the cabinet, 0 to 2.
    slot : int or None
        Blade in the cage, 0 to 15 (0 to 7 on an XE or XK).
    node : int or None
        Node on the blade, 0 to 3.
    accelerator : int or None
        Accelerator of the node (``a0`` behind a node).
    aries : int or None
        Aries router of the blade (``a0`` behind a slot).
    gemini : int or None
        Gemini router of the blade, 0 or 1 (nodes 0 and 1, nodes 2 and 3).
    tile : int or None
        Router tile; the name has it in octal (``l57`` is 47).

    Examples
    --------
    >>> Cname.parse("C11-2C0S15N3").parts
    (11, 2, 0, 15, 3)
    >>> Cname.parse("c0-0c1").parts
    (0, 0, 1, -1, -1)
    """

    col: int
    row: int
    cage: int | None = None
    slot: int | None = None
    node: int | None = None
    accelerator: int | None = None
    aries: int | None = None
    gemini: int | None = None
    tile: int | None = None

    @classmethod
    def parse(cls, text: str) -> Cname:
        """Read a cname, upper or lower case.

        Parameters
        ----------
        text : str

        Returns
        -------
        Cname

        Raises
        ------
        BadNameError
            Where it is not a cname (leading zeros are not), or names a cage,
            slot, node or router that no Cray has.

        Examples
        --------
        >>> Cname.parse("c0-0c3s0n0")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        placement.names.cname.BadNameError: c0-0c3s0n0: cage 3 is impossible; a cabinet has ...
        """
        match, shown = _FORM.fullmatch(text), printable(text)
        if match is None:
            hint = "one looks like c11-2c0s15n3 or c0-0c1"
            raise BadNameError(shown or "''", 0, "not a cname", hint)
        found = match.groupdict()
        padded = [v for k, v in found.items() if v and len(v) > 1 and v[0] == "0" and k != "tile"]
        if padded:
            raise BadNameError(shown, 0, f"'{padded[0]}' has a leading zero, cnames have none")
        values = {k: v and int(v, 8 if k == "tile" else 10) for k, v in found.items()}
        wholes = {"cage": "a cabinet", "slot": "a cage", "node": "a blade", "gemini": "a blade"}
        for part, limit in {**LIMITS, "gemini": 2}.items():
            if (values[part] or 0) >= limit:
                there = f"{part if part == 'gemini' else f'{part}s'} 0 to {limit - 1}"
                what = f"{part} {values[part]} is impossible"
                raise BadNameError(shown, 0, what, f"{wholes[part]} has {there}")
        if values["aries"]:
            what = f"router a{values['aries']} is impossible"
            raise BadNameError(shown, 0, what, "a blade has one Aries, a0")
        if (values["tile"] or 0) > 0o57:
            what = f"tile l{values['tile']:02o} is impossible"
            raise BadNameError(shown, 0, what, "a router has tiles l00 to l57")
        return cls(**values)  # type: ignore[arg-type]  # col and row are never None in a match

    @property
    def parts(self) -> tuple[int, int, int, int, int]:
        """The columns col, row, cage, slot, node, -1 where the name leaves one out."""
        cage, slot, node = (-1 if p is None else p for p in (self.cage, self.slot, self.node))
        return self.col, self.row, cage, slot, node
