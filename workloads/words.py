"""Words that users give to several programs, read and refused in one way."""

from __future__ import annotations

from collections.abc import Iterable

from placement.errors import UsageError, printable

__all__ = ["check_word", "read_extents"]


def check_word(what: str, word: object, known: Iterable[str]) -> None:
    """Refuse a word that is none of the known ones.

    Raises
    ------
    UsageError

    Examples
    --------
    >>> check_word("norm", "none", ("forward", "ortho"))
    Traceback (most recent call last):
    ...
    placement.errors.UsageError: no norm 'none'; there are forward, ortho
    """
    if word not in (names := tuple(known)):
        raise UsageError(f"no {what} {printable(str(word))!r}", f"there are {', '.join(names)}")


def read_extents(text: str, what: str, example: str) -> tuple[int, ...]:
    """Return the numbers in ``128x128x64``.

    Parameters
    ----------
    text : str
    what : str
        What the text is, as the error names it.
    example : str
        The error's hint.

    Raises
    ------
    UsageError

    Examples
    --------
    >>> read_extents("8x1x6", "size", "e.g. 8x8x8")
    (8, 1, 6)
    """
    words = text.lower().split("x")
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        raise UsageError(f"{printable(text)!r} is not a {what}", example)
    return tuple(int(word) for word in words)
