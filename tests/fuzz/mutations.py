# SPDX-License-Identifier: Apache-2.0
"""Mutations of a text: some of its bytes, numbers, lines or words are others."""

import re

#: What readers are likely to take for something else than it is.
_ODD = [
    b"", b"\0", b"\n", b"\r", b" ", b"\t", b",", b"-", b"--", b"[", b"]", b"[]", b"{", b"}", b"(",
    b"#", b"@", b"*", b":", b"=", b"/", b"..", b"'", b'"', b"\\", b"\x1b[31m", b"\xff", b"\xc3\x28",
    b"\xef\xbb\xbf", b"\xe2\x80\xae", "٣".encode(), "²".encode(), "é".encode(), b"\xed\xa0\x80",
    b"null", b"true", b"[[[[", b'{"a":' * 40, b"nan", b"inf", b"-inf", b"1e400", b"%s", b"0x",
]  # fmt: skip
_NUMBERS = [
    b"0", b"-1", b"1", b"00", b"007", b"0.5", b"-0", b"65535", b"65536", b"1048576", b"1048577",
    b"2147483647", b"2147483648", b"4294967296", b"9223372036854775807", b"9223372036854775808",
    b"18446744073709551616", b"1" + b"0" * 30, b"0" * 20, b"9" * 5000, b"1e9", b"1e-320",
]  # fmt: skip

_NUMBER = re.compile(rb"\d+")
_WORD = re.compile(rb"[^\s,;:=\[\]{}()\"]+")


def mutated(random, seeds):
    """Return one of the seeds after one to four mutations.

    Parameters
    ----------
    random : random.Random
    seeds : list of bytes
    """
    found = random.choice(seeds)
    for _ in range(random.choice((1, 1, 2, 4))):
        found = random.choice(_WAYS)(random, found, seeds)
    return found[:100_000]


def _piece(random, text):
    """Return the ends of a piece of a text, mostly a short one."""
    low = random.randint(0, len(text))
    return low, min(len(text), low + random.choice((1, 2, 8, 60, 600)))


def _insert(random, text, _):
    low = random.randint(0, len(text))
    return text[:low] + random.choice(_ODD) + text[low:]


def _replace(random, text, _):
    low, high = _piece(random, text)
    return text[:low] + random.choice(_ODD) + text[high:]


def _flip(random, text, _):
    found = bytearray(text or b"x")
    found[random.randrange(len(found))] ^= 1 << random.randrange(8)
    return bytes(found)


def _renumber(random, text, _):
    return _in_place_of(random, _NUMBER, text, random.choice(_NUMBERS))


def _reword(random, text, seeds):
    words = _WORD.findall(random.choice(seeds)) or _ODD
    return _in_place_of(random, _WORD, text, random.choice(words))


def _in_place_of(random, kind, text, new):
    places = [match.span() for match in kind.finditer(text[:20_000])]
    low, high = random.choice(places) if places else (0, 0)
    return text[:low] + new + text[high:]


def _repeat(random, text, _):
    low, high = _piece(random, text)
    return text[:low] + text[low:high] * random.choice((2, 3, 50)) + text[high:]


def _cut(random, text, _):
    return text[: random.randint(0, len(text))]


def _splice(random, text, seeds):
    other = random.choice(seeds)
    return text[: random.randint(0, len(text))] + other[random.randint(0, len(other)) :]


def _swap_lines(random, text, _):
    lines = text.split(b"\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


_WAYS = (
    _insert, _replace, _flip, _renumber, _renumber, _reword, _repeat, _cut, _splice, _swap_lines,
)  # fmt: skip
