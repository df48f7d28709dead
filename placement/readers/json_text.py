"""JSON from a file that anybody may have written: bounded, its errors at their line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from placement.errors import ParseError
from placement.records import LineCounts

__all__ = ["MAX_ITEMS", "count_json_lines", "load_json"]

#: Values in one file at most; a machine of 10,000 nodes has some 300,000.
MAX_ITEMS = 1_500_000


def load_json(
    text: str, source: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """Parse JSON, refusing what would take the memory or the stack.

    Parameters
    ----------
    text : str
    source : str
    pairs : callable or None
        What makes an object of its names and values; None makes a dict.

    Raises
    ------
    ParseError
        Where it is not JSON (with the line), or too much of it.

    Examples
    --------
    >>> load_json('{"a": [1,]}', "x.json")
    Traceback (most recent call last):
        ...
    placement.errors.ParseError: x.json:1: not JSON: Expecting value; is it whole?
    """
    if text.count(",") + text.count("{") + text.count("[") > MAX_ITEMS:
        raise ParseError(source, 0, f"more than {MAX_ITEMS:,} values", "no machine has as many")
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise ParseError(source, error.lineno, f"not JSON: {error.msg}", "is it whole?") from None
    except RecursionError:
        raise ParseError(source, 0, "nested too deeply for a dump of a machine") from None
    except ValueError:  # Python refuses to convert thousands of digits
        raise ParseError(source, 0, "a number with thousands of digits") from None


def count_json_lines(text: str) -> LineCounts:
    """Count lines: those that are not blank are rows."""
    lines = text.split("\n")
    lines = lines if lines[-1] else lines[:-1]
    rows = sum(bool(line.strip(" \t\r")) for line in lines)
    return LineCounts(rows=rows, blank=len(lines) - rows)
