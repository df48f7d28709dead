"""From what a user calls nodes to rows of a machine, and back.

A node may be called by its host name, its cname or xname, its NID
(``45``, ``45-47``) or its index in the machine's table (``#0``, ``#0-63``). A
cname or xname that names more than a node (a cabinet ``c0-0``, a chassis
``c0-0c1``, a blade, a router) means all nodes in it, in the machine's order.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import NidmapError, ParseError, printable
from placement.nodelist import NodeList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from placement.machine import Machine

__all__ = ["nodes_of", "rows_of"]

_NID_RANGE = re.compile(r"(\d{1,18})-(\d{1,18})", re.ASCII)
_NONE = np.zeros(0, dtype=np.int64)


def nodes_of(machine: Machine, rows: Iterable[int] | NDArray[np.int64]) -> NodeList:
    """Return the host names of rows, in the order given.

    Parameters
    ----------
    machine : Machine
    rows : int (k,)

    Returns
    -------
    NodeList
    """
    return NodeList(machine.names[np.asarray(rows, dtype=np.int64)].tolist())


def rows_of(
    machine: Machine,
    nodes: str | Iterable[str],
    source: str = "",
    repeats: bool = False,
) -> NDArray[np.int64]:
    """Return the rows of the nodes that a list names, in its order.

    A name with a domain behind it, as PBS writes them, is the name.

    Parameters
    ----------
    machine : Machine
    nodes : str or NodeList or iterable of str
        Text in any form that `NodeList.parse` reads, or the names themselves.
    source : str
        Name of the file that the text comes from, for errors.
    repeats : bool
        Allow a node more than once, as in a host file.

    Returns
    -------
    int64 (k,)

    Raises
    ------
    ParseError
        Where the list is empty, or names a node that the machine does not
        have, or one twice although `repeats` is False, or a word makes more
        names than the machine has nodes. It says the word, its line, and
        names like it.

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("dragonfly:groups=2,chassis=2,blades=4,nodes=4")
    >>> rows_of(m, "nid[00045,00012] 7 #3-4").tolist()
    [45, 12, 7, 3, 4]
    """
    if isinstance(nodes, str):
        names = NodeList.parse(nodes, source, most=len(machine))
    else:
        names = NodeList(nodes)
    if not names:
        raise ParseError(source or "node list", 0, "names no node", "the list is empty")
    finder = _Finder(machine)
    parts = finder.rows(names)
    if finder.unknown is not None:
        word, problem, hint = finder.unknown
        raise ParseError(source or "node list", _line(nodes, word), problem, hint)
    if not repeats:
        _refuse_repeats(machine, parts, nodes, source)
    return parts


class _Finder:
    """The tables of one machine by name, cname, NID and index."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        #: The first word that could not be found, the problem and a hint.
        self.unknown: tuple[str, str, str] | None = None

    def rows(self, names: NodeList) -> NDArray[np.int64]:
        """Return the rows of all words; sets `unknown` where one has none."""
        by_name = self._index("names", self.machine.names, str)
        rows = np.array([by_name.get(name, -1) for name in names], dtype=np.int64)
        left = np.flatnonzero(rows < 0)
        if len(left):
            rows[left] = self._by_cname([names[k] for k in left.tolist()])
            left = left[rows[left] < 0]
        if len(left):
            rows[left] = self._by_number([names[k] for k in left.tolist()])
            left = left[rows[left] < 0]
        return self._inserted(names, rows, left) if len(left) else rows

    def _index(
        self, label: str, column: NDArray[np.str_], key: Callable[[str], str]
    ) -> dict[str, int]:
        """Return the rows by a column's text, kept with the machine."""
        cached: tuple[Any, dict[str, int]] | None = self.machine._cache.get(f"lookup.{label}")
        if cached is not None and cached[0] is column:
            return cached[1]
        texts = column.tolist()
        rows = dict(zip(map(key, reversed(texts)), range(len(texts) - 1, -1, -1), strict=True))
        rows.pop("", None)
        self.machine._cache[f"lookup.{label}"] = (column, rows)
        return rows

    def _by_cname(self, words: list[str]) -> list[int]:
        by_cname = self._index("cname", self.machine.cname, str.lower)
        if not by_cname:
            return [-1] * len(words)
        return [by_cname.get(word.lower(), -1) for word in words]

    def _by_number(self, words: list[str]) -> NDArray[np.int64]:
        """Return the rows of bare NIDs and of indices; -1 for what is neither."""
        from placement.names.numbered import name_numbers

        prefixes, numbers, widths = name_numbers(np.array(words, dtype=np.str_))
        prefixes = np.char.rstrip(prefixes, "0")  # 20 digits are a number too, if enough are 0
        nid = np.where((prefixes == "") & (widths > 0), self._row_of_nid(numbers), -1)
        is_index = (prefixes == "#") & (numbers < len(self.machine))
        return np.where(is_index, numbers, nid)

    def _row_of_nid(self, nids: NDArray[np.int64]) -> NDArray[np.int64]:
        known = self.machine.nid
        if not len(known):
            return np.full(len(nids), -1, dtype=np.int64)
        order = np.argsort(known, kind="stable")
        at = order[np.minimum(np.searchsorted(known, nids, sorter=order), len(known) - 1)]
        return np.where(known[at] == nids, at, -1)

    def _inserted(
        self, names: NodeList, rows: NDArray[np.int64], left: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Put what ranges and prefixes mean in their words' places."""
        found: list[NDArray[np.int64]] = []
        done = 0
        meant: dict[str, NDArray[np.int64]] = {}
        for k in left.tolist():
            word = names[k]
            if word not in meant:
                meant[word] = self._several(word)
            if self.unknown is not None:
                return _NONE
            found += [rows[done:k], meant[word]]
            done = k + 1
        return np.concatenate([*found, rows[done:]])

    def _several(self, word: str) -> NDArray[np.int64]:
        """Return the rows of a NID range, cabinet, chassis, blade or router."""
        for find in (self._range, self._place, self._router, self._without_domain):
            rows = find(word)
            if self.unknown is not None or len(rows):
                return rows
        self._say(word, *_unknown(self.machine, word))
        return _NONE

    def _say(self, word: str, problem: str, hint: str) -> None:
        self.unknown = (word, problem, hint)

    def _range(self, word: str) -> NDArray[np.int64]:
        match = _NID_RANGE.fullmatch(word)
        if match is None:
            return _NONE
        low, high = int(match.group(1)), int(match.group(2))
        if low > high:
            self._say(word, f"'{word}' runs backwards", "write the NIDs one by one")
            return _NONE
        known = self.machine.nid
        inside = int(np.count_nonzero((known >= low) & (known <= high)))
        if inside < high - low + 1:
            first = _first_missing(known, low)
            self._say(word, *_no_nid(self.machine, first, f" of '{word}'"))
            return _NONE
        return self._row_of_nid(np.arange(low, high + 1))

    def _place(self, word: str) -> NDArray[np.int64]:
        """Return the rows of the nodes in a place that a cname or xname names."""
        try:
            mask = _in_xname(self.machine, word) if word[0] in "xX" else self._in_cname(word)
        except NidmapError:
            return _NONE
        return np.flatnonzero(mask).astype(np.int64)

    def _in_cname(self, word: str) -> NDArray[np.bool_]:
        from placement.names import Cname, parse_cnames

        place = Cname.parse(word)
        parts = parse_cnames(self.machine.cname)
        mask = parts[:, 0] >= 0
        for column, value in enumerate(place.parts):
            if value >= 0:
                mask &= parts[:, column] == value
        if place.gemini is not None:
            mask &= parts[:, 4] // 2 == place.gemini
        return mask

    def _without_domain(self, word: str) -> NDArray[np.int64]:
        """Return the row of ``nid00012.cray.example``, where names have no domain."""
        name, _, domain = word.partition(".")
        row = self._index("names", self.machine.names, str).get(name, -1) if domain else -1
        return np.array([row], dtype=np.int64) if row >= 0 else _NONE

    def _router(self, word: str) -> NDArray[np.int64]:
        from placement.topologies import router_names

        routers = np.flatnonzero(router_names(self.machine) == word)
        return np.flatnonzero(np.isin(self.machine.router, routers).any(axis=1)).astype(np.int64)


def _in_xname(machine: Machine, word: str) -> NDArray[np.bool_]:
    """Return the mask of the nodes whose xname begins with all of `word`."""
    from placement.names import Xname
    from placement.names.columns import codes_of

    place = Xname.parse(word)
    start = str(place)
    if place.nic is not None:
        start = start[: start.rindex("h")]
    behind = codes_of(machine.cname)
    if behind.shape[1] <= len(start):
        return np.asarray(machine.cname == start)
    cut = behind[:, len(start)]
    ended = (cut > ord("9")) | (cut == 0)
    return np.asarray(np.char.startswith(machine.cname, start) & ended)


def _first_missing(known: NDArray[np.int64], low: int) -> int:
    """Return the first NID from `low` on that is not known."""
    inside = np.unique(known[known >= low])
    gap = np.flatnonzero(inside != low + np.arange(len(inside)))
    return low + (int(gap[0]) if len(gap) else len(inside))


def _no_nid(machine: Machine, nid: int, where: str = "") -> tuple[str, str]:
    """Return what to say of a NID that the machine does not have."""
    problem = f"{machine.name or 'the machine'} has no NID {nid}{where}"
    if not len(machine):
        return problem, "it has no nodes"
    low, high = int(machine.nid.min()), int(machine.nid.max())
    if low <= nid <= high:
        below, above = machine.nid[machine.nid < nid].max(), machine.nid[machine.nid > nid].min()
        return problem, f"the nearest are {below} and {above}"
    return problem, f"its NIDs run from {low} to {high}"


def _unknown(machine: Machine, word: str) -> tuple[str, str]:
    """Return what to say of a word that names no node, and names like it."""
    from placement.names.numbered import name_numbers

    shown = f"'{printable(word)}'"
    if word.isdecimal():
        return _no_nid(machine, int(word))
    if word[0] == "#":
        return f"{shown} is not in the table", f"its rows are #0 to #{len(machine) - 1}"
    problem = f"{machine.name or 'the machine'} has no node {shown}"
    if not len(machine):
        return problem, "it has no nodes"
    prefixes, numbers, widths = name_numbers(machine.names)
    (prefix,), (number,), (width,) = name_numbers(np.array([word]))
    alike = np.flatnonzero((np.char.lower(prefixes) == prefix.lower()) & (widths > 0))
    if not width or not len(alike):
        return problem, _reason(word) or f"its names look like {machine.names[0]}"
    twin = alike[numbers[alike] == number]
    if len(twin):
        return problem, f"did you mean {machine.names[twin[0]]}?"
    return problem, _nearest_names(machine, alike, numbers, number)


def _nearest_names(
    machine: Machine, alike: NDArray[np.intp], numbers: NDArray[np.int64], number: int
) -> str:
    """Say which names of the same kind stand on either side of a number; there may be holes."""
    below, above = alike[numbers[alike] < number], alike[numbers[alike] > number]
    last = machine.names[below[np.argmax(numbers[below])]] if len(below) else ""
    first = machine.names[above[np.argmin(numbers[above])]] if len(above) else ""
    if last and first:
        return f"the nearest are {last} and {first}"
    return f"the last such name is {last}" if last else f"the first such name is {first}"


def _reason(word: str) -> str:
    """Say why a word that looks like a cname is none; '' for other words."""
    from placement.names import Cname

    if not re.match(r"c\d+-\d", word, re.IGNORECASE):
        return ""
    try:
        Cname.parse(word)
    except ParseError as error:
        return f"{error.text}; {error.hint}" if error.hint else error.text
    return ""


def _line(nodes: str | Iterable[str], word: str) -> int:
    """Return the line of a text that a word stands on, 0 where there is no telling."""
    if not isinstance(nodes, str) or "\n" not in nodes:
        return 0
    lines = nodes.split("\n")
    for number, line in enumerate(lines, start=1):
        if word in line.replace(",", " ").split():
            return number
    for number, line in enumerate(lines, start=1):
        try:
            if "[" in line and word in NodeList.parse(line):
                return number
        except NidmapError:
            continue
    return 0


def _refuse_repeats(
    machine: Machine, rows: NDArray[np.int64], nodes: str | Iterable[str], source: str
) -> None:
    """Raise for the first node that is listed a second time."""
    order = np.argsort(rows, kind="stable")
    again = order[1:][rows[order[1:]] == rows[order[:-1]]]
    if not len(again):
        return
    name = str(machine.names[rows[again.min()]])
    line = _line(nodes, name)
    raise ParseError(
        source or "node list", line, f"'{name}' is listed twice", "each node may be named once here"
    )
