"""What left nidmap, and what a user who names it is told: for one release."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path


def _read_table() -> Iterator[tuple[str, str]]:
    """Yield what left and what to use instead: the lines of ``old_spellings.txt``."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        old, equals, instead = line.partition(" = ")
        if equals and line[0] != "#":
            parts = enumerate(re.split(r"[{}]", old))
            choices = (part.split(",") if k % 2 else [part] for k, part in parts)
            yield from (("".join(words), instead) for words in product(*choices))


#: A command, or what of it has left, as it was typed -> what to use instead.
GONE = dict(_read_table())


def replacement_line(argv: Sequence[str]) -> str:
    """Return the line for a command line that names something which left, '' for any other.

    Parameters
    ----------
    argv : sequence of str
        The words behind ``nidmap``; those behind ``--`` are the user's own program's.

    Examples
    --------
    >>> replacement_line(["machine", "export", "-m", "tara", "--format=sls"]).partition(";")[0]
    'machine export --format sls was removed: dumps are read, not written'
    >>> replacement_line(["machine", "export", "-m", "tara", "--format", "csv"])
    ''
    """
    typed = list(argv[: argv.index("--")] if "--" in argv else argv)
    words = [
        part for word in typed for part in (word.split("=", 1) if word[:2] == "--" else [word])
    ]
    for old, instead in GONE.items():
        command, dash, option = old.partition(" -")
        path, rest = command.split(), f"-{option}".split() if dash else []
        behind = words[len(path) :]
        starts = range(len(behind) - len(rest) + 1)
        if words[: len(path)] == path and any(behind[i : i + len(rest)] == rest for i in starts):
            return f"{old} was removed: {instead}"
    return ""
