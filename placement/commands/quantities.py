"""Quantities with units, as options take them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

__all__ = ["Bytes", "Param", "resource", "segment"]

if TYPE_CHECKING:
    Param = click.ParamType[Any]
else:  # not yet generic in older versions of click
    Param = click.ParamType

_SIZE = re.compile(r"(-?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?)\s?(?:([kKMGT])(i?)B?|B)?", re.ASCII)


class Bytes(Param):
    """A number of bytes: ``8``, ``64kB`` (10^3), ``64KiB`` (2^10), ``1.5MiB`` (2^20).

    Parameters
    ----------
    whole : bool
        True refuses what is not a whole number of bytes, and returns int.

    Examples
    --------
    >>> Bytes().convert("1.5KiB", None, None), Bytes(whole=True).convert("64kB", None, None)
    (1536.0, 64000)
    """

    name = "bytes"

    def __init__(self, whole: bool = False) -> None:
        self.whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the bytes as float, or int."""
        match = _SIZE.fullmatch(str(value))
        if match is None:
            return self.fail(f"{value!r} is not a size; 8, 64kB, 4MiB", param, ctx)
        power = " kMGT".index((match[2] or " ").replace("K", "k"))
        found = float(match[1]) * (1024 if match[3] else 1000) ** power
        if self.whole and not found.is_integer():
            return self.fail(f"{value!r} is not a whole number of bytes", param, ctx)
        return int(found) if self.whole else found


def resource(text: str) -> str:
    """Return the name of a PBS resource as it stands.

    Examples
    --------
    >>> resource("tier0")
    'tier0'
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", text, re.ASCII):
        raise click.BadParameter(f"{text!r} is not a name of a PBS resource")
    return text


def segment(text: str) -> int:
    """Return the nodes of a segment; ``auto`` is 0.

    Examples
    --------
    >>> segment("12"), segment("auto")
    (12, 0)
    """
    if text == "auto":
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise click.BadParameter(f"{text!r} is neither a number of nodes nor auto")
    return int(text)
