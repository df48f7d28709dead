# SPDX-License-Identifier: Apache-2.0
"""What the layouts of all fabrics share: their result, checks of figures, node names.

Names come from a template such as ``nid{nid:05}`` or ``x{cabinet}c{chassis}s{slot}b0n0``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nidmap.placement.machine import Topology
from nidmap.placement.records import NodeRecords
from nidmap.placement.sites.schema import Config, Figure
from nidmap.placement.support.array_types import Ints, Strs

T = TypeVar("T")

#: A machine of more nodes than this is a typing error.
MOST = 1_000_000

#: Keys of a partition that describe Slingshot groups.
ON_SLINGSHOT = (
    *("groups", "group_nodes", "last_group_nodes", "group_switches", "chassis_nodes"),
    *("chassis_switches", "first_nid", "cabinets", "slots", "boards", "node_name"),
)


class WrongFigure(Exception):  # noqa: N818  # not an error of the program: loading turns it into one
    """A figure of a site file is inconsistent or impossible.

    `key`: the figure's dotted key (``cabinets.absent``, ``partition.GPU.cores``). `text`: what is
    wrong and what was expected, in one line.
    """

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"{key}: {text}")
        self.key, self.text = key, text


class SiteLayout(NamedTuple):
    """The nodes and topology laid out from a configuration."""

    topology: Topology
    nodes: NodeRecords
    # (n, k), switches in the group that each node's NICs sit on, -1 for none; None where every node
    # has one
    attachments: Ints | None = None


def refuse_different(key: str, figure: Figure[Any] | None, found: object, what: str) -> None:
    """Raise if a stated figure differs from the value implied by the others."""
    if figure is not None and figure.value != found:
        raise WrongFigure(key, f"{figure.value} said, but {what} is {found}")


def forbid_figure(config: Config, fabric: str, keys: tuple[str, ...]) -> None:
    """Raise if a partition has a figure that is meaningless on this fabric."""
    for part in config.partition:
        for key in keys:
            if getattr(part, key) is not None:
                raise WrongFigure(f"partition.{part.name}.{key}", f"means nothing on {fabric}")


def refuse_too_many(key: str, nodes: int) -> None:
    """Raise if a machine would exceed the size limit."""
    if nodes > MOST:
        raise WrongFigure(key, f"{nodes} nodes; more than {MOST} are assumed to be a mistake")


def expand_ranges(key: str, runs: Iterable[str], below: int) -> list[int]:
    """Expand numbers and ranges such as ``7`` and ``0-3``, all less than `below`."""
    numbers: list[int] = []
    for run in runs:
        match = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7}))?", run, re.ASCII)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not low <= high < below:
            text = f"'{run[:40]}' is neither a number nor a range such as 0-3, below {below}"
            raise WrongFigure(key, text)
        numbers.extend(range(low, high + 1))
    return numbers


def required(key: str, figure: Figure[T] | None, what: str) -> T:
    """Return a figure's value; raise if it is not stated."""
    if figure is None:
        raise WrongFigure(key, f"missing: {what}")
    return figure.value


def whole_figure(figure: Figure[int] | None) -> int:
    """Return a figure's number; 0 if it is not stated."""
    return figure.value if figure else 0


def inventory(config: Config, of: Ints) -> dict[str, Any]:
    """Return each node's hardware, by the number of its partition.

    `of` (n,): index into ``config.partition``; -1 where none is known. Returns (n,): columns of
    `NodeRecords`: line, sockets, cores, memory_mb, nics, gpus, features.
    """
    parts = config.partition
    table: dict[str, Any] = {
        key: np.array([*(whole_figure(getattr(p, key)) for p in parts), 0], np.int32)[of]
        for key in ("sockets", "cores", "nics", "gpus")
    }
    memory = [round(p.memory_gb.value * 1024) if p.memory_gb else 0 for p in parts]
    table["memory_mb"] = np.array([*memory, 0], np.int64)[of]
    table["features"] = np.array([*(p.features for p in parts), ""])[of]
    table["line"] = np.zeros(len(of), np.int32)
    return table


#: Fields of a template: the NID or the number within the partition, and an xname's parts.
FIELDS = ("nid", "number", "cabinet", "chassis", "slot", "board")

_FIELD = re.compile(r"\{([^{}]*)\}")
_FORM = re.compile(r"([a-z]+)(?::0?([1-9]\d?))?", re.ASCII)


def node_names(key: str, template: str, numbers: Mapping[str, Ints]) -> Strs:
    """Return one name per node.

    `key`: the template's key, for the error. `template`: text with ``{field}`` or ``{field:05}``
    (at least 5 digits) in it. `numbers` (n,): the fields there are. Returns (n,).
    """
    fields = [_field_digits(key, text, numbers) for text in _FIELD.findall(template)]
    if not fields:
        raise WrongFigure(key, f"'{template}' has no {{nid}} or other number in it")
    widths = (width for _, width in fields)
    form = _FIELD.sub(lambda _: f"%0{next(widths)}d", template.replace("%", "%%"))
    rows = zip(*(values.tolist() for values, _ in fields), strict=True)
    return np.array([form % row for row in rows], dtype=np.str_)


def _field_digits(key: str, text: str, numbers: Mapping[str, Ints]) -> tuple[Ints, int]:
    """Return the numbers of one field and the requested width."""
    form = _FORM.fullmatch(text)
    if form is None or form[1] not in FIELDS:
        there = ", ".join(FIELDS)
        raise WrongFigure(key, f"'{{{text}}}' is not a field; choose from {there}")
    if form[1] not in numbers:
        raise WrongFigure(key, f"'{{{text}}}' is used but the nodes have no {form[1]} number")
    return numbers[form[1]], int(form[2] or 1)


_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_WORD = r"(?:[\w-]+|\"[^\"]*\"|'[^']*')"
_PAIR = re.compile(rf"\s*({_WORD}(?:\s*\.\s*{_WORD})*)\s*=\s*(?:[\"']([^\"']*))?")

Path = tuple[str, ...]


def line_of(text: str, key: str) -> int:
    """Return the line, from 1, of `key`, of its table or of a part of it; 0 for none.

    `text`: a TOML file. `key`: dotted; a table of a list by its ``name`` (``partition.GPU.nics``)
    or its number from 0 (``partition.0.nics``).
    """
    lines, names = _key_lines(text)
    path = tuple(key.split("."))
    path = names.get(path[:2], path[:2]) + path[2:]
    while path and path not in lines:
        below = [line for inner, line in lines.items() if inner[: len(path)] == path]
        if below:
            return min(below)
        path = path[:-1]
    return lines.get(path, 0)


def _key_lines(text: str) -> tuple[dict[Path, int], dict[Path, Path]]:
    """Return the line of every key, and the number of each table of a list by its name."""
    lines: dict[Path, int] = {}
    names: dict[Path, Path] = {}
    count: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _split_words(header[2])
            if header[1] == "[[":
                count[table] = count.get(table, -1) + 1
                table = (*table, str(count[table]))
            lines.setdefault(table, number)
        elif pair := _PAIR.match(line):
            lines.setdefault(table + _split_words(pair[1]), number)
            if pair[1] == "name" and pair[2] and table[:-1] in count:
                names.setdefault((*table[:-1], pair[2]), table)
    return lines, names


def _split_words(text: str) -> Path:
    return tuple(word.strip("\"'") for word in re.findall(_WORD, text))
