"""Points in time and durations as accounting writes them."""

from __future__ import annotations

import re
from datetime import datetime, timezone

__all__ = ["parse_duration", "parse_moment"]

#: What stands for a time that there is not, or not yet.
_NONE = {"", "unknown", "none", "n/a", "null", "invalid", "0"}

_NUMBER = re.compile(r"\d{1,11}(?:\.\d{1,9})?", re.ASCII)
_DURATION = re.compile(r"(?:(\d{1,5})-)?(?:(\d{1,5}):)?(\d{1,5}):(\d{1,2})(?:\.\d+)?", re.ASCII)


def parse_moment(text: str) -> float | None:
    """Return a point in time in Unix seconds; None where the text says that there is none.

    A date without a zone is taken for UTC, so that it is only good beside others
    of the same zone.

    Raises
    ------
    ValueError
        Where it is no time.

    Examples
    --------
    >>> parse_moment("1970-01-02T00:00:10"), parse_moment("1970-01-02 02:00:10+02:00")
    (86410.0, 86410.0)
    >>> parse_moment("86410"), parse_moment("Unknown")
    (86410.0, None)
    """
    words = text.strip()
    if words.lower() in _NONE:
        return None
    if _NUMBER.fullmatch(words):
        return float(words)
    read = datetime.fromisoformat(_plain_zone(words))
    return (read if read.tzinfo else read.replace(tzinfo=timezone.utc)).timestamp()


def _plain_zone(text: str) -> str:
    """Return a date with its zone as Python 3.10 reads it too.

    Examples
    --------
    >>> _plain_zone("2024-05-01T12:00:00Z"), _plain_zone("2024-05-01T12:00:00+0200")
    ('2024-05-01T12:00:00+00:00', '2024-05-01T12:00:00+02:00')
    """
    if text[-1] in "zZ":
        return f"{text[:-1]}+00:00"
    return re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text) if len(text) > 19 else text


def parse_duration(text: str) -> float | None:
    """Return the seconds of ``[DAYS-]HOURS:MINUTES:SECONDS``, or of a number of them.

    Raises
    ------
    ValueError
        Where it is not a duration.

    Examples
    --------
    >>> parse_duration("1-02:00:01"), parse_duration("00:10"), parse_duration("7")
    (93601.0, 10.0, 7.0)
    """
    words = text.strip()
    if words.lower() in _NONE - {"0"}:
        return None
    if _NUMBER.fullmatch(words):
        return float(words)
    match = _DURATION.fullmatch(words)
    if match is None:
        raise ValueError(f"{text!r} is not a duration")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
