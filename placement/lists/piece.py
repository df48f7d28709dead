"""A stretch of host list text, and what a name is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = ["MAX_LENGTH", "NAME", "TextPiece"]

#: Characters of the longest name: more is not a host name anywhere.
MAX_LENGTH = 255
#: A host name, or ``#`` and a number for an index of the machine's table.
NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.\-]*|#\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A stretch of host list text and where it stood.

    Attributes
    ----------
    text : str
    line : int
        Line of the source on which it begins, from 1.
    expected : int
        Nodes that the source says there are; 0 where it does not say.
    state : str
        State of the job that has them, as printed; '' where the source says none.
    """

    text: str
    line: int = 1
    expected: int = 0
    state: str = field(default="", repr=False, compare=False)
