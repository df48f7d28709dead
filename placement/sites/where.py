"""The line of a TOML text that a dotted key stands on, found by reading its headers."""

from __future__ import annotations

import re

__all__ = ["line_of"]

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_WORD = r"(?:[\w-]+|\"[^\"]*\"|'[^']*')"
_PAIR = re.compile(rf"\s*({_WORD}(?:\s*\.\s*{_WORD})*)\s*=\s*(?:[\"']([^\"']*))?")

Path = tuple[str, ...]


def line_of(text: str, key: str) -> int:
    """Return the line, from 1, of `key`, of what is in it or of what it is in; 0 for none.

    Parameters
    ----------
    text : str
        A TOML file.
    key : str
        Dotted; a table of a list by its ``name`` (``partition.GPU.nics``) or
        its number from 0 (``partition.0.nics``).

    Examples
    --------
    >>> text = "name = 'x'\\n[[partition]]\\nname = 'GPU'\\nnics = 4\\n[nodes.compute]\\nvalue = 1"
    >>> line_of(text, "partition.GPU.nics"), line_of(text, "partition.0.nics")
    (4, 4)
    >>> line_of(text, "nodes.compute.mark"), line_of(text, "bandwidth.blue")
    (5, 0)
    """
    lines, names = _keys(text)
    steps = tuple(key.split("."))
    steps = names.get(steps[:2], steps[:2]) + steps[2:]
    while steps and steps not in lines:
        below = [line for path, line in lines.items() if path[: len(steps)] == steps]
        if below:
            return min(below)
        steps = steps[:-1]
    return lines.get(steps, 0)


def _keys(text: str) -> tuple[dict[Path, int], dict[Path, Path]]:
    """Return the line of every key, and the number of each table of a list by its name."""
    lines: dict[Path, int] = {}
    names: dict[Path, Path] = {}
    count: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _words(header[2])
            if header[1] == "[[":
                count[table] = count.get(table, -1) + 1
                table = (*table, str(count[table]))
            lines.setdefault(table, number)
        elif pair := _PAIR.match(line):
            lines.setdefault(table + _words(pair[1]), number)
            if pair[1] == "name" and pair[2] and table[:-1] in count:
                names.setdefault((*table[:-1], pair[2]), table)
    return lines, names


def _words(text: str) -> Path:
    return tuple(word.strip("\"'") for word in re.findall(_WORD, text))
