# SPDX-License-Identifier: Apache-2.0
"""Times, sizes, rates and numbers of things as people read them."""

from __future__ import annotations

#: Bytes of a GB.
GB = 1e9

_TIMES = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
_PREFIXES = {1000: ("k", "M", "G", "T", "P"), 1024: ("Ki", "Mi", "Gi", "Ti", "Pi")}


def time_text(time: float) -> str:
    """Return a time in seconds as text.

    Examples
    --------
    >>> time_text(0.01234), time_text(3.2e-6), time_text(7200.0), time_text(0.0)
    ('12.3 ms', '3.2 us', '7200 s', '0 s')
    """
    unit, factor = time_unit(time)
    return f"{_three_digits(time * factor)} {unit}"


def times_text(time: float, other: float) -> str:
    """Return a time in seconds against another one as text, both in one unit.

    Examples
    --------
    >>> times_text(0.00095, 0.0012), times_text(0.0, 0.0)
    ('0.95 ms against 1.2 ms', '0 s against 0 s')
    """
    unit, factor = time_unit(max(time, other))
    texts = [_three_digits(seconds * factor) for seconds in (time, other)]
    return " against ".join(f"{text} {unit}" for text in texts)


def size_text(count: float, base: int = 1000) -> str:
    """Return bytes as text.

    Parameters
    ----------
    count : float
    base : int
        1000 for kB, MB …, 1024 for KiB, MiB …

    Examples
    --------
    >>> size_text(1e6), size_text(1536), size_text(1536, base=1024), size_text(12)
    ('1 MB', '1.54 kB', '1.5 KiB', '12 B')
    """
    unit, factor = size_unit(count, base)
    return f"{_three_digits(count * factor)} {unit}"


def rate_text(bytes_per_second: float) -> str:
    """Return bytes a second as text, in powers of 1000.

    Examples
    --------
    >>> rate_text(2.5e9), rate_text(1470.0), rate_text(0)
    ('2.5 GB/s', '1.47 kB/s', '0 B/s')
    """
    return f"{size_text(bytes_per_second)}/s"


def exact_size(count: float) -> str:
    """Return whole bytes without rounding, in the largest unit that divides them.

    Examples
    --------
    >>> exact_size(8), exact_size(65536), exact_size(1500), exact_size(500_000_000_000)
    ('8 B', '64 KiB', '1500 B', '500 GB')
    """
    size = int(count)
    for base in (1024, 1000):
        unit, factor = size_unit(size, base)
        scale = round(1 / factor)
        if scale > 1 and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size} B"


def counted(count: int, word: str) -> str:
    """Return a number of things in words, as every sentence about a plan says it.

    Parameters
    ----------
    count : int
    word : str
        One of them: ``node``, or a level of a topology.

    Examples
    --------
    >>> counted(1, "group"), counted(3, "chassis"), counted(2, "leaf")
    ('1 group', '3 chassis', '2 leaf switches')
    >>> counted(3, "level1"), counted(2, "switch")
    ('3 level-1 switches', '2 switches')
    """
    word = unit_name(word)
    return f"{count} {word if count == 1 else plural(word)}"


def plural(word: str) -> str:
    """Return the word for several of a thing; axes and numbered levels have none.

    Examples
    --------
    >>> [plural(word) for word in ("node", "switch", "chassis", "leaf", "x", "level1")]
    ['nodes', 'switches', 'chassis', 'leaves', 'x', 'level1']
    """
    if word == "chassis" or len(word) == 1 or word[-1].isdigit():
        return word
    return "leaves" if word == "leaf" else word + ("es" if word.endswith("ch") else "s")


def unit_name(word: str) -> str:
    """Return what people call one of a topology's levels.

    Examples
    --------
    >>> unit_name("level1"), unit_name("leaf"), unit_name("group")
    ('level-1 switch', 'leaf switch', 'group')
    """
    if word == "leaf":
        return "leaf switch"
    return f"level-{word.removeprefix('level')} switch" if word.startswith("level") else word


def time_unit(most: float) -> tuple[str, float]:
    """Return the unit for times up to `most` seconds, and what seconds are multiplied by.

    Examples
    --------
    >>> time_unit(0.25), time_unit(0)
    (('ms', 1000.0), ('s', 1.0))
    """
    fitting = (entry for entry in _TIMES if not abs(most * entry[1]) < 1)
    return next(fitting, _TIMES[-1]) if most else _TIMES[0]


def size_unit(most: float, base: int = 1000) -> tuple[str, float]:
    """Return the unit for sizes up to `most` bytes, and what bytes are multiplied by.

    Examples
    --------
    >>> size_unit(4e9), size_unit(4096, base=1024)
    (('GB', 1e-09), ('KiB', 0.0009765625))
    """
    power = sum(abs(most) >= base**k for k in range(1, 1 + len(_PREFIXES[base])))
    return (f"{_PREFIXES[base][power - 1]}B", 1 / base**power) if power else ("B", 1.0)


def _three_digits(value: float) -> str:
    """Return three digits, and all those before the point."""
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
