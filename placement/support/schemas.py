"""What msgspec says of a value that does not fit its Struct, in the words of whoever wrote it."""

from __future__ import annotations

__all__ = ["schema_fault", "schema_sentence"]

_WORDS = (
    (" | null`", "`"),
    ("`object`", "an object"),
    ("`array`", "a list"),
    ("`str`", "text"),
    ("`int`", "a whole number"),
    ("`float`", "a number"),
    ("`bool`", "true or false"),
    ("matching regex", "of the form"),
)


def schema_fault(error: Exception) -> tuple[str, str]:
    """Return where a value is wrong, as msgspec writes paths, and what is wrong there.

    Parameters
    ----------
    error : msgspec.ValidationError or msgspec.DecodeError

    Examples
    --------
    >>> schema_fault(ValueError("Expected `int | null`, got `str` - at `$.nodes[0].nid`"))
    ('nodes[0].nid', 'expected a whole number, got text')
    """
    words, _, path = str(error).partition(" - at `")
    for before, after in _WORDS:
        words = words.replace(before, after)
    return path.removesuffix("`").removeprefix("$").removeprefix("."), words[:1].lower() + words[1:]


def schema_sentence(error: Exception) -> str:
    """Return both in one sentence.

    Examples
    --------
    >>> schema_sentence(ValueError("Expected `int`, got `str` - at `$.ppn`"))
    'ppn: expected a whole number, got text'
    """
    path, words = schema_fault(error)
    return f"{path}: {words}" if path else words
