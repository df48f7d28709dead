# SPDX-License-Identifier: Apache-2.0
"""From users' ways of naming nodes to rows of a machine, and back.

A node may be called by its host name, with or without a domain, its cname or xname, its NID
(``45``, ``45-47``) or its index in the machine's table (``#0``, ``#0-63``). A
cname or xname that names more than a node (a cabinet ``c0-0``, a chassis
``c0-0c1``, a blade, a router) means all nodes in it, in the machine's order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from nidmap.placement.errors import NidmapError, ParseError
from nidmap.placement.machine import Machine
from nidmap.placement.names import name_numbers, parse_cname, parse_cnames, parse_xname
from nidmap.placement.nodelist import NodeList
from nidmap.placement.support.array_types import Array, Ints, Mask, Strs
from nidmap.placement.support.arrays import find_sorted
from nidmap.placement.support.hosts import HostNames, same_host
from nidmap.placement.topologies import router_names

_NID_RANGE = re.compile(r"(\d{1,18})-(\d{1,18})", re.ASCII)
_NONE = np.zeros(0, dtype=np.int64)


def nodes_of(machine: Machine, rows: Iterable[int] | Ints) -> NodeList:
    """Return the host names of rows, in the given order."""
    return NodeList(machine.names[np.asarray(rows, dtype=np.int64)].tolist())


def rows_of(
    machine: Machine, nodes: str | Iterable[str], source: str = "", repeats: bool = False
) -> Ints:
    """Return the rows of the nodes that a list names, in its order.

    A host name may have more of its domain than the machine's, or less, where that is
    unambiguous.

    `nodes`: text in any form that `NodeList.parse` reads, or the names themselves. `repeats`:
    allow a node more than once, as in a host file. Returns (k,).
    """
    if isinstance(nodes, str):
        names = NodeList.parse(nodes, source, most=len(machine))
    else:
        names = NodeList(nodes)
    if not names:
        raise ParseError(source or "node list", 0, "names no nodes", "the list is empty")
    try:
        rows = _rows_of_words(machine, names)
    except _UnknownName as unknown:
        word, problem, hint = unknown.args
        raise ParseError(source or "node list", _line_of_word(nodes, word), problem, hint) from None
    if not repeats:
        _refuse_repeats(machine, rows, nodes, source)
    return rows


def find_rows(have: Array, want: Array) -> Ints:
    """Return the first position of each value of `want` in `have`; -1 if missing."""
    order = np.argsort(have, kind="stable")
    at = find_sorted(have[order], want)
    return np.where(at < 0, -1, order[at]) if len(have) else at


def find_hosts(have: Strs, want: Strs, source: str) -> Ints:
    """Return the positions of host names, ignoring case and differences in domain."""
    rows = find_rows(have, want)
    left = np.flatnonzero(rows < 0)
    if not len(have) or not len(left):
        return rows
    domains = any((np.char.find(some, ".") >= 0).any() for some in (have, want[left]))
    if not domains and not np.isin(np.char.lower(want[left]), np.char.lower(have)).any():
        return rows
    hosts, known = HostNames(have.tolist()), dict[int, str]()
    for k in left.tolist():
        word, there = str(want[k]), hosts.find(str(want[k]))
        if len(there) == 1:
            rows[k] = there[0]
            other = known.setdefault(there[0], word)
            if not same_host(word, other):
                what = f"'{other}' and '{word}' would both mean {have[there[0]]}"
                raise ParseError(source, 0, what, "name each node as the machine does")
    return rows


def first_repeat(values: Array) -> tuple[int, int] | None:
    """Return the positions of the first value that occurs twice; None if there is none."""
    seen: dict[object, int] = {}
    for place, value in enumerate(values.tolist()):
        if (first := seen.setdefault(value, place)) != place:
            return first, place
    return None


def shared_rows(machine: Machine, names: Strs, source: str) -> Ints:
    """Return the rows of host names from elsewhere; -1 where the machine has no such node."""
    rows = find_hosts(machine.names, names, source)
    if len(rows) and (rows < 0).all():
        hint = f"it names nodes like {names[0]}, the machine like {machine.names[0]}"
        raise ParseError(source, 0, f"shares no node name with {machine.name}", hint)
    return rows


class _UnknownName(Exception):  # noqa: N818  # never leaves this module: ParseError does
    """A word that names no node, what is wrong with it, and a hint."""


def _rows_of_words(machine: Machine, names: NodeList) -> Ints:
    """Return the rows of all words."""
    by_name = _index_column(machine, "names", str)
    rows = np.array([by_name.get(name, -1) for name in names], dtype=np.int64)
    left = np.flatnonzero(rows < 0)
    if len(left):
        by_cname = _index_column(machine, "cname", str.lower)
        rows[left] = [by_cname.get(names[k].lower(), -1) for k in left.tolist()]
        left = left[rows[left] < 0]
    if len(left):
        rows[left] = _by_number(machine, [names[k] for k in left.tolist()])
        left = left[rows[left] < 0]
    several: dict[str, Ints] = {}
    known: dict[int, str] = {}  # words with more or less of a domain than the machine's name
    parts, done = [], 0
    for k in left.tolist():
        word = names[k]
        if word not in several:
            several[word] = _rows_of_word(machine, word, known)
        parts += [rows[done:k], several[word]]
        done = k + 1
    return np.concatenate([*parts, rows[done:]]) if parts else rows


def _index_column(machine: Machine, label: str, key: Callable[[str], str]) -> dict[str, int]:
    """Return rows by the text in a column, cached with the machine."""
    column = getattr(machine, label)
    cached: tuple[Any, dict[str, int]] | None = machine._cache.get(f"lookup.{label}")
    if cached is not None and cached[0] is column:
        return cached[1]
    texts = column.tolist()
    rows = dict(zip(map(key, reversed(texts)), range(len(texts) - 1, -1, -1), strict=True))
    rows.pop("", None)
    machine._cache[f"lookup.{label}"] = (column, rows)
    return rows


def _by_number(machine: Machine, words: list[str]) -> Ints:
    """Return the rows of bare NIDs and indices; -1 for all other words."""
    prefixes, numbers, widths = name_numbers(np.array(words, dtype=np.str_))
    prefixes = np.char.rstrip(prefixes, "0")  # 20 digits may be a number too, zero-padded
    nid = np.where((prefixes == "") & (widths > 0), find_rows(machine.nid, numbers), -1)
    return np.where((prefixes == "#") & (numbers < len(machine)), numbers, nid)


def _rows_of_word(machine: Machine, word: str, known: dict[int, str]) -> Ints:
    """Return the rows of a NID range, cabinet, chassis, blade or router, or a host.

    `known` are the words that were taken for a host before, by its row.
    """
    for rows_in in (_rows_of_range, _rows_of_place, _rows_of_router):
        rows = rows_in(machine, word)
        if len(rows):
            return rows
    row = _row_of_host(machine, word)
    other = known.setdefault(row, word)
    if not same_host(word, other):
        problem = f"'{other}' and '{word}' would both mean {machine.names[row]}"
        raise _UnknownName(word, problem, "name each node as the machine does")
    return np.array([row], dtype=np.int64)


def _row_of_host(machine: Machine, word: str) -> int:
    """Return the row of a host whose name has a longer or shorter domain than the word."""
    rows = _host_names(machine).find(word)
    if not rows:
        raise _UnknownName(word, *_unknown_word(machine, word))
    if len(rows) > 1:
        twins = " or ".join(machine.names[rows[:2]].tolist())
        raise _UnknownName(word, f"'{word}' may be {twins}", "name it with its domain")
    return rows[0]


def _host_names(machine: Machine) -> HostNames:
    """Return the machine's host names, cached with it."""
    cached: tuple[Any, HostNames] | None = machine._cache.get("lookup.hosts")
    if cached is None or cached[0] is not machine.names:
        cached = machine._cache["lookup.hosts"] = (machine.names, HostNames(machine.names.tolist()))
    return cached[1]


def _rows_of_range(machine: Machine, word: str) -> Ints:
    match = _NID_RANGE.fullmatch(word)
    if match is None:
        return _NONE
    low, high = int(match.group(1)), int(match.group(2))
    if low > high:
        raise _UnknownName(word, f"'{word}' runs backwards", "write the NIDs one by one")
    known = machine.nid
    if np.count_nonzero((known >= low) & (known <= high)) < high - low + 1:
        inside = np.unique(known[known >= low])
        gap = np.flatnonzero(inside != low + np.arange(len(inside)))
        first = low + (int(gap[0]) if len(gap) else len(inside))
        raise _UnknownName(word, *_no_nid(machine, first, f" of '{word}'"))
    return find_rows(known, np.arange(low, high + 1))


def _rows_of_place(machine: Machine, word: str) -> Ints:
    """Return the rows of the nodes at a cname or xname."""
    try:
        mask = _in_xname(machine, word) if word[0] in "xX" else _in_cname(machine, word)
    except NidmapError:
        return _NONE
    return np.flatnonzero(mask).astype(np.int64)


def _in_cname(machine: Machine, word: str) -> Mask:
    named = np.array(parse_cname(word))
    parts = parse_cnames(machine.cname)
    places = np.column_stack([parts, parts[:, 4] // 2])  # with the Gemini of each node
    return np.asarray((parts[:, 0] >= 0) & ((places == named) | (named < 0)).all(axis=1))


def _in_xname(machine: Machine, word: str) -> Mask:
    """Return the mask of nodes whose xname starts with the components of `word`."""
    start = parse_xname(word).name.partition("h")[0]  # a network card's node
    behind = len(start)
    names = machine.cname.tolist()
    return np.array([x.startswith(start) and not x[behind : behind + 1].isdigit() for x in names])


def _rows_of_router(machine: Machine, word: str) -> Ints:
    routers = np.flatnonzero(router_names(machine) == word)
    return np.flatnonzero(np.isin(machine.router, routers).any(axis=1)).astype(np.int64)


def _no_nid(machine: Machine, nid: int, where: str = "") -> tuple[str, str]:
    """Explain that the machine does not have a NID."""
    problem = f"{machine.name or 'the machine'} has no NID {nid}{where}"
    return problem, _say_nearest(machine.nid, machine.nid, nid)


def _say_nearest(labels: Array, numbers: Ints, number: int) -> str:
    """Name the nearest existing numbers below and above a missing one."""
    if not len(numbers):
        return "it has no nodes"
    order = np.argsort(numbers, kind="stable")
    at = int(np.searchsorted(numbers[order], number))
    if 0 < at < len(order):
        return f"the nearest are {labels[order[at - 1]]} and {labels[order[at]]}"
    return f"its nodes run from {labels[order[0]]} to {labels[order[-1]]}"


def _unknown_word(machine: Machine, word: str) -> tuple[str, str]:
    """Explain that a word names no node, suggesting similar names."""
    shown = f"'{word}'"
    if word.isdecimal():
        return _no_nid(machine, int(word))
    if word[0] == "#":
        return f"{shown} is not in the table", f"its rows are #0 to #{len(machine) - 1}"
    problem = f"{machine.name or 'the machine'} has no node {shown}"
    if not len(machine):
        return problem, "it has no nodes"
    if neighbours := _say_neighbours(machine, word):
        return f"{shown} is an empty slot of {machine.name or 'the machine'}", neighbours
    prefixes, numbers, widths = name_numbers(machine.names)
    (prefix,), (number,), (width,) = name_numbers(np.array([word]))
    alike = np.flatnonzero((np.char.lower(prefixes) == prefix.lower()) & (widths > 0))
    if not width or not len(alike):
        return problem, _why_no_cname(word) or f"its names look like {machine.names[0]}"
    twin = alike[numbers[alike] == number]
    if len(twin):
        return problem, f"did you mean {machine.names[twin[0]]}?"
    return problem, _say_nearest(machine.names[alike], numbers[alike], number)


def _say_neighbours(machine: Machine, word: str) -> str:
    """Name the nodes next to an empty slot in a cabinet; '' for other words."""
    match = re.fullmatch(r"((c\d+-\d+)c\ds\d+)n\d", word, re.ASCII)
    if match is None or _why_no_cname(word):
        return ""
    blade, cabinet = match.groups()
    names = machine.cname[_in_cname(machine, blade)].tolist()
    if names:
        return f"its blade has {', '.join(names)}"
    return f"there is no node on {blade}" if _in_cname(machine, cabinet).any() else ""


def _why_no_cname(word: str) -> str:
    """Explain why a word that looks like a cname is not one; '' for other words."""
    if not re.match(r"c\d+-\d", word, re.IGNORECASE):
        return ""
    try:
        parse_cname(word)
    except ParseError as error:
        return f"{error.text}; {error.hint}" if error.hint else error.text
    return ""


def _line_of_word(nodes: str | Iterable[str], word: str) -> int:
    """Return the line of a text on which a word is; 0 if unknown."""
    if not isinstance(nodes, str) or "\n" not in nodes:
        return 0
    for number, line in enumerate(nodes.split("\n"), start=1):
        try:
            if word in line.replace(",", " ").split() or word in NodeList.parse(line):
                return number
        except NidmapError:
            continue
    return 0


def _refuse_repeats(machine: Machine, rows: Ints, nodes: str | Iterable[str], source: str) -> None:
    """Raise for the first node listed a second time."""
    repeat = first_repeat(rows)
    if repeat is None:
        return
    name = str(machine.names[rows[repeat[1]]])
    line = _line_of_word(nodes, name)
    raise ParseError(
        source or "node list", line, f"'{name}' is listed twice", "each node may be named once here"
    )
