"""What the name of an output file says of the format that its user wants."""

from __future__ import annotations

import os
from collections.abc import Mapping

from placement.errors import UsageError

__all__ = ["format_of_name", "suffix_of"]

#: Suffixes of plain text, whatever the command writes by default.
_TEXT = ("", ".txt", ".text", ".out", ".log", ".lst", ".list")

#: The file that Cray MPICH reads; it has a name of its own instead of a suffix.
_RANK_ORDER = "MPICH_RANK_ORDER"


def format_of_name(path: str | None, formats: Mapping[str, str], default: str) -> str:
    """Return the format that a file's name asks for.

    Parameters
    ----------
    path : str or None
        The file; None or ``-`` is standard output.
    formats : mapping of str to str
        Format by suffix (``.json``), and by the name ``MPICH_RANK_ORDER``.
    default : str
        The format where the name has no suffix, a number for one, or one of plain text.

    Raises
    ------
    UsageError
        The name asks for what is not written here: nothing else is written
        in its place.

    Examples
    --------
    >>> format_of_name("a.JSON", {".json": "json"}, "text")
    'json'
    >>> format_of_name("result", {".json": "json"}, "text")
    'text'
    >>> format_of_name("a.pdf", {".json": "json"}, "text")
    Traceback (most recent call last):
        ...
    placement.errors.UsageError: a.pdf: no .pdf is written here; there is .json
    """
    suffix = suffix_of(path or "")
    if suffix in formats:
        return formats[suffix]
    if suffix in _TEXT or suffix[1:].isdigit():
        return default
    raise UsageError(f"{path}: no {suffix} is written here", f"there is {', '.join(formats)}")


def suffix_of(path: str) -> str:
    """Return a path's suffix in lower case, or ``MPICH_RANK_ORDER`` for a file called so.

    Examples
    --------
    >>> suffix_of("run.7/a.JSON"), suffix_of("MPICH_RANK_ORDER.7"), suffix_of("run.7/nodes")
    ('.json', 'MPICH_RANK_ORDER', '')
    """
    name = os.path.basename(path)
    return _RANK_ORDER if name.startswith(_RANK_ORDER) else os.path.splitext(name)[1].lower()
