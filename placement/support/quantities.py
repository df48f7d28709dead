# SPDX-License-Identifier: Apache-2.0
"""Times, sizes, rates and counts in readable form."""

from __future__ import annotations

#: Bytes of a GB.
GB = 1e9

_TIMES = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
_PREFIXES = {1000: ("k", "M", "G", "T", "P"), 1024: ("Ki", "Mi", "Gi", "Ti", "Pi")}


def time_text(time: float) -> str:
    """Format a time in seconds."""
    unit, factor = time_unit(time)
    return f"{_three_digits(time * factor)} {unit}"


def times_text(time: float, other: float) -> str:
    """Format a time in seconds next to another one, both in the same unit."""
    unit, factor = time_unit(max(time, other))
    texts = [_three_digits(seconds * factor) for seconds in (time, other)]
    return " against ".join(f"{text} {unit}" for text in texts)


def size_text(count: float, base: int = 1000) -> str:
    """Format a number of bytes.

    `base`: 1000 for kB, MB …, 1024 for KiB, MiB ….
    """
    unit, factor = size_unit(count, base)
    return f"{_three_digits(count * factor)} {unit}"


def rate_text(bytes_per_second: float) -> str:
    """Format bytes per second, in powers of 1000."""
    return f"{size_text(bytes_per_second)}/s"


def exact_size(count: float) -> str:
    """Format whole bytes without rounding, in the largest unit that divides them."""
    size = int(count)
    for base in (1024, 1000):
        unit, factor = size_unit(size, base)
        scale = round(1 / factor)
        if scale > 1 and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size} B"


def counted(count: int, word: str) -> str:
    """Format a count with its noun, as in every sentence about a plan.

    `word`: one of them: ``node``, or a level of a topology.
    """
    word = unit_name(word)
    return f"{count} {word if count == 1 else plural(word)}"


def plural(word: str) -> str:
    """Return the plural of a noun; axes and numbered levels have none."""
    if word == "chassis" or len(word) == 1 or word[-1].isdigit():
        return word
    return "leaves" if word == "leaf" else word + ("es" if word.endswith("ch") else "s")


def unit_name(word: str) -> str:
    """Return the common name for one of a topology's levels."""
    if word == "leaf":
        return "leaf switch"
    return f"level-{word.removeprefix('level')} switch" if word.startswith("level") else word


def time_unit(most: float) -> tuple[str, float]:
    """Return the unit for times up to `most` seconds, and the factor from seconds."""
    fitting = (entry for entry in _TIMES if not abs(most * entry[1]) < 1)
    return next(fitting, _TIMES[-1]) if most else _TIMES[0]


def size_unit(most: float, base: int = 1000) -> tuple[str, float]:
    """Return the unit for sizes up to `most` bytes, and the factor from bytes."""
    power = sum(abs(most) >= base**k for k in range(1, 1 + len(_PREFIXES[base])))
    return (f"{_PREFIXES[base][power - 1]}B", 1 / base**power) if power else ("B", 1.0)


def _three_digits(value: float) -> str:
    """Format with three significant digits, and all digits before the point."""
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
