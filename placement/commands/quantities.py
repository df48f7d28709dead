"""Quantities with units, as options take them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

__all__ = ["Bytes", "Param", "Resource", "Segment"]

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
        True refuses what is no whole number of bytes, and returns int.

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
            return self.fail(f"{value!r} is no size; 8, 64kB, 4MiB", param, ctx)
        power = " kMGT".index((match[2] or " ").replace("K", "k"))
        found = float(match[1]) * (1024 if match[3] else 1000) ** power
        if self.whole and not found.is_integer():
            return self.fail(f"{value!r} is no whole number of bytes", param, ctx)
        return int(found) if self.whole else found


class Resource(Param):
    """Name of a PBS resource.

    Examples
    --------
    >>> Resource().convert("tier0", None, None)
    'tier0'
    """

    name = "resource"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name as it stands."""
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", str(value), re.ASCII):
            return self.fail(f"{value!r} is no name of a PBS resource", param, ctx)
        return value


class Segment(Param):
    """Nodes of a segment, or ``auto``, which is 0.

    Examples
    --------
    >>> Segment().convert("12", None, None), Segment().convert("auto", None, None)
    (12, 0)
    """

    name = "segment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the nodes as int."""
        text = str(value)
        if text == "auto":
            return 0
        if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
            return self.fail(f"{value!r} is neither a number of nodes nor auto", param, ctx)
        return int(text)
