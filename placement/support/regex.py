"""Regular expressions: possessive quantifiers where Python has them right; lines of matches."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator

__all__ = ["compile_pattern", "with_lines"]


def compile_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    r"""Compile a pattern whose possessive quantifiers only save time.

    Python 3.10 lacks ``*+``, ``++`` and ``?+``, and before 3.11.5 they match too much
    where what they repeat goes back (gh-106052): there the greedy ones stand for them.
    So the pattern has to match the same, in linear time, with either: no
    quantified part may be followed by what could also belong to it.

    Examples
    --------
    >>> compile_pattern(r"[a-z]++\d*+").fullmatch("nid00012").group()
    'nid00012'
    """
    if sys.version_info < (3, 11, 5):
        pattern = re.sub(r"(?<=[*+?}])\+", "", pattern)
    return re.compile(pattern, flags)


def with_lines(
    matches: Iterable[re.Match[str]], text: str, first: int = 1
) -> Iterator[tuple[re.Match[str], int]]:
    r"""Yield each match in a text with the line that it begins on, the text's first being `first`.

    Examples
    --------
    >>> [(match[0], line) for match, line in with_lines(re.finditer("b", "a\nb\nab"), "a\nb\nab")]
    [('b', 2), ('b', 3)]
    """
    done = 0
    for match in matches:
        first += text.count("\n", done, match.start())
        done = match.start()
        yield match, first
