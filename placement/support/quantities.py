# SPDX-License-Identifier: Apache-2.0
"""Times, sizes, rates and numbers of things as people read them."""

from __future__ import annotations

#: Bytes of a GB.
GB = 1e9

_TIMES = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
_PREFIXES = {1000: ("k", "M", "G", "T", "P"), 1024: ("Ki", "Mi", "Gi", "Ti", "Pi")}


def time_text(time: float) -> str:
    """Return a time in seconds as text."""
    unit, factor = time_unit(time)
    return f"{_three_digits(time * factor)} {unit}"


def times_text(time: float, other: float) -> str:
    """Return a time in seconds against another one as text, both in one unit."""
    unit, factor = time_unit(max(time, other))
    texts = [_three_digits(seconds * factor) for seconds in (time, other)]
    return " against ".join(f"{text} {unit}" for text in texts)


def size_text(count: float, base: int = 1000) -> str:
    """Return bytes as text.

    `base`: 1000 for kB, MB …, 1024 for KiB, MiB ….
    """
    unit, factor = size_unit(count, base)
    return f"{_three_digits(count * factor)} {unit}"


def rate_text(bytes_per_second: float) -> str:
    """Return bytes per second as text, in powers of 1000."""
    return f"{size_text(bytes_per_second)}/s"


def exact_size(count: float) -> str:
    """Return whole bytes without rounding, in the largest unit that divides them."""
    size = int(count)
    for base in (1024, 1000):
        unit, factor = size_unit(size, base)
        scale = round(1 / factor)
        if scale > 1 and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size} B"


def counted(count: int, word: str) -> str:
    """Return a number of things in words, as every sentence about a plan says it.

    `word`: one of them: ``node``, or a level of a topology.
    """
    word = unit_name(word)
    return f"{count} {word if count == 1 else plural(word)}"


def plural(word: str) -> str:
    """Return the word for several of a thing; axes and numbered levels have none."""
    if word == "chassis" or len(word) == 1 or word[-1].isdigit():
        return word
    return "leaves" if word == "leaf" else word + ("es" if word.endswith("ch") else "s")


def unit_name(word: str) -> str:
    """Return what people call one of a topology's levels."""
    if word == "leaf":
        return "leaf switch"
    return f"level-{word.removeprefix('level')} switch" if word.startswith("level") else word


def time_unit(most: float) -> tuple[str, float]:
    """Return the unit for times up to `most` seconds, and what seconds are multiplied by."""
    fitting = (entry for entry in _TIMES if not abs(most * entry[1]) < 1)
    return next(fitting, _TIMES[-1]) if most else _TIMES[0]


def size_unit(most: float, base: int = 1000) -> tuple[str, float]:
    """Return the unit for sizes up to `most` bytes, and what bytes are multiplied by."""
    power = sum(abs(most) >= base**k for k in range(1, 1 + len(_PREFIXES[base])))
    return (f"{_PREFIXES[base][power - 1]}B", 1 / base**power) if power else ("B", 1.0)


def _three_digits(value: float) -> str:
    """Return three digits, and all those before the point."""
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
