"""The output of ``sinfo``, by its header or, without one, by its usual shapes.

Read are plain ``sinfo``, ``-l``, ``-N``, ``-N -l`` (whose first line is a
date), any ``-o`` format that prints a header, and without a header (``-h``)
those same ones, ``-o "%N %t"`` and `QUERY`. Checked on the outputs of a real
slurmctld 22.05.

sinfo repeats a node once a partition: it becomes one node, in the worst of
the states printed, or ``inactive`` where the ``AVAIL`` column shows that none
of its partitions is up.
"""

from __future__ import annotations

import re
from array import array
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError, printable
from placement.readers.plain import count_lines, refuse_empty, split_lines, strange_line
from placement.readers.slurm_states import is_known, node_state, worst
from placement.readers.slurm_switches import MAX_NODES, expand
from placement.records import Dump, Fault, LineCounts, NodeRecords
from placement.regex import compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["QUERY", "gpus_of", "read", "sniff"]

#: The one format in which nidmap itself asks, as ``sinfo -e -o QUERY`` or ``sinfo -N -o QUERY``.
#: Without ``-e`` or ``-N`` sinfo puts nodes of different size and weight into one row (``16+``).
QUERY = "%N|%P|%a|%T|%c|%m|%X|%Y|%w|%G|%f"

#: Headers that sinfo prints, and what we call the column. The rest is left out.
COLUMNS = {
    "NODELIST": "nodes",
    "HOSTNAMES": "nodes",
    "PARTITION": "partition",
    "AVAIL": "avail",
    "STATE": "state",
    "CPUS": "cpus",
    "MEMORY": "memory",
    "S:C:T": "sct",
    "SOCKETS": "sockets",
    "CORES": "cores",
    "WEIGHT": "weight",
    "GRES": "gres",
    "AVAIL_FEATURES": "features",
    "FEATURES": "features",
    "AVAIL_FE": "cut_features",
    "REASON": "reason",
}
_QUERY_COLUMNS = (
    *("nodes", "partition", "avail", "state", "cpus", "memory"),
    *("sockets", "cores", "weight", "gres", "features"),
)
#: What sinfo prints under -h, told apart by the number of words: default, -l, -N, -N -l.
SHAPES = (
    ("nodes", "state"),
    ("nodes", "count", "partition", "state"),
    ("partition", "avail", "", "count", "state", "nodes"),
    ("partition", "avail", "", "", "", "", "", "count", "state", "nodes"),
    (
        *("nodes", "count", "partition", "state", "cpus", "sct"),
        *("memory", "", "weight", "cut_features", "reason"),
    ),
)

_DATE = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} [0-9]{4}\s*")
_NAMES = compiled(r"[A-Za-z0-9_.-]++(?:\n[A-Za-z0-9_.-]++)*+")
_NUMBER = re.compile(r"([0-9]{1,15})(?:\.[0-9]+)?([KMGTP]?)\+?")
_GPU = re.compile(r"(?:^|,)gpu(?::[^:(,]+)??(?::([0-9]{1,6}))?(?:\([^)]*\))?(?=,|$)")
_MERGING = ("cpus", "memory", "sct", "sockets", "cores", "weight")
_UNKNOWN = ("", "(null)", "N/A", "n/a", "none")
_FACTOR = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_CUT_WIDTH = 8  # sinfo -N -l prints "%.8f" under AVAIL_FE


def sniff(head: str) -> bool:
    r"""Say whether the first lines look like the output of sinfo.

    Examples
    --------
    >>> sniff("PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n")
    True
    >>> sniff("nid00001 idle\nnid00002 drng*\n")
    True
    """
    lines = [line for line in head.split("\n", 40)[:40] if line.strip()]
    if lines and _DATE.fullmatch(lines[0]):
        del lines[0]
    if not lines:
        return False
    if _header(lines[0]):
        return True
    whole = lines[:-1] or lines  # the last one may be cut off
    return all(_shape(line) is not None for line in whole)


def read(text: str, source: str) -> Dump:
    r"""Read the output of sinfo.

    Parameters
    ----------
    text : str
    source : str
        File name, for errors.

    Returns
    -------
    Dump
        One row a node in the order of the output: name, state, planned and
        what the format shows of sockets, cores, memory_mb, gpus, features
        and weight. ``parameters["partitions"]`` has each node's partitions,
        comma-separated, and ``parameters["default_partition"]`` the one that
        a star marks.

    Raises
    ------
    ParseError
        Where a line does not fit the header or the first line.

    Examples
    --------
    >>> dump = read("NODELIST NODES PARTITION STATE\nn1 1 a* idle\nn1 1 b idle-\n", "-")
    >>> dump.nodes.name.tolist(), dump.nodes.state.tolist(), dump.nodes.planned.tolist()
    (['n1'], ['idle'], [True])
    >>> dump.parameters["partitions"].tolist()
    ['a,b']
    """
    lines = split_lines(text, source)
    table = _Table(lines, source)
    counts = count_lines(lines, table.headers)
    counts = LineCounts(counts.rows + counts.comments, 0, counts.headers, counts.blank)
    refuse_empty(counts, source, "node; does Slurm hide it (PrivateData), or is a partition wrong?")
    table.fill(lines)
    return table.dump(counts)


class _Table:
    """The cells of one output, a list a column, before nodes are merged."""

    def __init__(self, lines: Sequence[str], source: str) -> None:
        self.source = source
        self.headers = 0
        self.bar = False
        self.start = 0
        self.names = self._columns(lines)
        self.cells: dict[str, list[str]] = {n: [] for n in self.names if n}
        self.line = array("q")
        self.faults: list[Fault] = []

    def _columns(self, lines: Sequence[str]) -> tuple[str, ...]:
        """Return the columns' names, by the header or the shape of the first row."""
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            self.start = number
            if number == 1 and _DATE.fullmatch(line):
                self.headers += 1
                continue
            names = _header(line)
            if names:
                self.headers += 1
                self.bar = "|" in line
                return self._checked(names, number)
            self.start = number - 1
            shape = _shape(line)
            self.bar = shape is _QUERY_COLUMNS
            if shape is None:
                raise self._strange(number, line)
            return shape
        return ()

    def _checked(self, names: tuple[str, ...], number: int) -> tuple[str, ...]:
        for column, letter in (("nodes", "%N"), ("state", "%T")):
            if column not in names:
                hint = f'print it with sinfo -N -o "{QUERY}"'
                raise ParseError(self.source, number, f"sinfo without the column {letter}", hint)
        seen: set[str] = set()  # -o "%all" prints PARTITION and STATE twice: the first counts
        return tuple("" if n in seen else (seen.add(n) or n) for n in names)  # type: ignore[func-returns-value]  # add() returns None

    def _strange(self, number: int, line: str) -> ParseError:
        hint = f'print it with sinfo -N -o "{QUERY}"'
        return strange_line("sinfo", self.source, number, line, "a line of sinfo", hint)

    def fill(self, lines: Sequence[str]) -> None:
        """Take the cells of all rows, folded lists expanded."""
        one: dict[str, str] = {}  # most cells repeat: keep one of each
        columns = [self.cells[name] if name else None for name in self.names]
        for number in range(self.start, len(lines)):
            line = lines[number]
            if not line.strip():
                continue
            for column, cell in zip(columns, self._split(line, number + 1), strict=True):
                if column is not None:
                    column.append(one.setdefault(cell, cell))
            self.line.append(number + 1)
        if self.names:
            self._drop_empty()
            self._expand()

    def _split(self, line: str, number: int) -> list[str]:
        last = len(self.names) - 1
        if self.bar:
            cells = [
                c.strip() for c in line.split("|", last if self.names[last] == "reason" else -1)
            ]
        else:
            cells = line.strip().split(None, last)
            if self.names[last] != "reason" and cells and len(cells[-1].split()) != 1:
                raise self._strange(number, line)
        if len(cells) == last and (self.names[last] == "reason" or "n/a" in cells):
            cells.append("")
        if len(cells) != last + 1:
            what = f"a row of {last + 1} columns as the others"
            hint = "leave %E out: a reason may hold anything" if "reason" in self.names else ""
            raise strange_line("sinfo", self.source, number, line, what, hint)
        return cells

    def _drop_empty(self) -> None:
        """Leave out the rows of partitions without nodes."""
        keep = [n not in _UNKNOWN for n in self.cells["nodes"]]
        if not all(keep):
            for name, cells in self.cells.items():
                self.cells[name] = list(compress(cells, keep))
            self.line = array("q", compress(self.line, keep))

    def _expand(self) -> None:
        """Give each node a row of its own."""
        listed = self.cells["nodes"]
        if _NAMES.fullmatch("\n".join(listed)):
            return
        names: list[tuple[str, ...]] = []
        total = 0
        for line, text in zip(self.line, listed, strict=True):
            names.append(expand(text, self.source, line, "NODELIST"))
            total += len(names[-1])
            if total > MAX_NODES:
                raise ParseError(self.source, line, f"more than {MAX_NODES:,} nodes")
        times = [len(n) for n in names]
        for name, cells in self.cells.items():
            self.cells[name] = [c for c, k in zip(cells, times, strict=True) for _ in range(k)]
        self.cells["nodes"] = [n for some in names for n in some]
        self.line = array("q", (n for n, k in zip(self.line, times, strict=True) for _ in range(k)))

    def dump(self, counts: LineCounts) -> Dump:
        """Return one row a node."""
        listed = self.cells["nodes"]
        if not listed:
            return Dump("sinfo", self.source, counts, faults=(_no_nodes(),))
        row_of = {name: i for i, name in enumerate(dict.fromkeys(listed))}
        node = np.array([row_of[name] for name in listed])
        first = np.zeros(len(row_of), dtype=np.int64)
        first[node[::-1]] = np.arange(len(node))[::-1]
        state, planned = self._states(node, len(row_of))
        nodes = NodeRecords(
            line=np.array(self.line, dtype=np.int32)[first],
            name=np.array(list(row_of)),
            state=state,
            planned=planned,
            features=self._features(first),
            gpus=self._gpus(first),
            memory_mb=self._column("memory", _number, first),
            weight=self._weight(first),
            sockets=self._sockets(first),
            cores=self._cores(first),
        )
        parameters = self._partitions(listed, row_of)
        return Dump(
            "sinfo",
            self.source,
            counts,
            nodes=nodes,
            parameters=parameters,
            faults=tuple(self.faults),
        )

    def _states(
        self, node: NDArray[np.int64], count: int
    ) -> tuple[NDArray[np.str_], NDArray[np.bool_]]:
        """Return each node's worst state and whether any of its rows is planned."""
        printed = {word: i for i, word in enumerate(dict.fromkeys(self.cells["state"]))}
        words = [self._known(word) for word in printed]
        code = np.array([printed[word] for word in self.cells["state"]])
        order = np.argsort(np.array([worst(s) for s, _ in words])[code], kind="stable")
        worst_of = np.zeros(count, dtype=np.int64)
        worst_of[node[order]] = order  # the last one that is written stays
        planned = np.zeros(count, dtype=np.bool_)
        planned[node[np.array([p for _, p in words])[code]]] = True
        states = np.array([s for s, _ in words])[code[worst_of]]
        if "avail" in self.cells:
            up = np.zeros(count, dtype=np.bool_)
            up[node[np.array([a == "up" for a in self.cells["avail"]])]] = True
            states = np.where(~up & np.isin(states, ("idle", "planned")), "inactive", states)
        return states, planned

    def _known(self, word: str) -> tuple[str, bool]:
        """Return a state's word and whether it is planned, refusing what is no state."""
        found = node_state(word)
        if found is None:
            line = self.line[self.cells["state"].index(word)]
            raise ParseError(self.source, line, f"{printable(word)!r} is not the state of a node")
        return found

    def _column(
        self, name: str, convert: Callable[[str], int], first: NDArray[np.int64]
    ) -> NDArray[np.int64] | None:
        """Return one column of numbers, None where the output has none."""
        if name not in self.cells:
            return None
        cells = self.cells[name]
        known = {}
        for cell in set(cells):
            try:
                known[cell] = convert(cell)
            except ValueError:
                line = self.line[cells.index(cell)]
                text = f"{name}: {printable(cell)!r} is not a number"
                raise ParseError(self.source, line, text) from None
        return np.array([known[cells[i]] for i in first], dtype=np.int64)

    def _weight(self, first: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the weights, None where sinfo has merged nodes of different ones."""
        merged = [n for n in _MERGING if any(c.endswith("+") for c in self.cells.get(n, ()))]
        if merged:
            text = f"sinfo has merged nodes of different {', '.join(merged)}: the least is taken"
            text += ", weights are left out" if "weight" in merged else ""
            hint = f'print it with sinfo -e -o "{QUERY}"'
            self.faults.append(Fault(self.start, "merged-nodes", text, hint, fatal=False))
        return None if "weight" in merged else self._column("weight", _number, first)

    def _sockets(self, first: NDArray[np.int64]) -> NDArray[np.int32] | None:
        found = self._column("sct", lambda c: _part(c, 0), first)
        if found is None:
            found = self._column("sockets", _number, first)
        return None if found is None else found.astype(np.int32)

    def _cores(self, first: NDArray[np.int64]) -> NDArray[np.int32] | None:
        """Return the cores of a node: sockets times cores a socket."""
        sockets = self._sockets(first)
        a_socket = self._column("sct", lambda c: _part(c, 1), first)
        if a_socket is None:
            a_socket = self._column("cores", _number, first)
        return (
            None if sockets is None or a_socket is None else (sockets * a_socket).astype(np.int32)
        )

    def _gpus(self, first: NDArray[np.int64]) -> NDArray[np.int32] | None:
        found = self._column("gres", gpus_of, first)
        return None if found is None else found.astype(np.int32)

    def _features(self, first: NDArray[np.int64]) -> NDArray[np.str_] | None:
        """Return the features, those that ``sinfo -N -l`` may have cut left out."""
        cut = "cut_features" in self.cells and "features" not in self.cells
        name = "cut_features" if cut else "features"
        if name not in self.cells:
            return None
        cells = ["" if c in _UNKNOWN else c for c in self.cells[name]]
        if cut and any(len(c) >= _CUT_WIDTH for c in cells):
            cells = [c.rpartition(",")[0] if len(c) >= _CUT_WIDTH else c for c in cells]
            text = (
                f"sinfo cuts features at {_CUT_WIDTH} characters here; what may be cut is left out"
            )
            hint = f'print it with sinfo -N -o "{QUERY}"'
            self.faults.append(Fault(self.start, "cut-features", text, hint, fatal=False))
        return np.array([cells[i] for i in first])

    def _partitions(self, listed: Sequence[str], row_of: dict[str, int]) -> dict[str, object]:
        """Return each node's partitions, and which one is the default."""
        if "partition" not in self.cells:
            return {}
        of: list[dict[str, None]] = [{} for _ in row_of]
        for name, partition in zip(listed, self.cells["partition"], strict=True):
            of[row_of[name]][partition.rstrip("*")] = None
        starred = [p[:-1] for p in set(self.cells["partition"]) if p.endswith("*")]
        parameters: dict[str, object] = {"partitions": np.array([",".join(p) for p in of])}
        if len(starred) == 1:
            parameters["default_partition"] = starred[0]
        return parameters


def _no_nodes() -> Fault:
    return Fault(0, "no-nodes", "no partition has a node", "is this the right cluster?")


def _header(line: str) -> tuple[str, ...]:
    """Return the columns that a header names ('' for those left out), () for no header."""
    words = [w.strip() for w in line.split("|")] if "|" in line else line.split()
    if not {"NODELIST", "HOSTNAMES"} & set(words) or "JOBID" in words:
        return ()
    if len(words) == 1:
        return ()  # names without states: a plain list
    if any(w != w.upper() for w in words if w not in COLUMNS):
        return ()
    return tuple(COLUMNS.get(w, "") for w in words)


def _shape(line: str) -> tuple[str, ...] | None:
    """Return the columns of a row without a header, by its number of words."""
    cells = line.split("|")
    if len(cells) == len(_QUERY_COLUMNS) and _is_state(cells[3].strip()):
        return _QUERY_COLUMNS
    words = line.split()
    for shape in SHAPES:
        greedy = shape[-1] == "reason"
        short = len(words) == len(shape) - 1 and "n/a" in words
        fits = len(words) == len(shape) or short or (greedy and len(words) >= len(shape) - 1)
        if fits and all(
            _TELLING[n](w) for n, w in zip(shape, words, strict=False) if n in _TELLING
        ):
            return shape
    return None


def _is_state(word: str) -> bool:
    """Say whether a word is a state that we know; without a header it must be one."""
    read = node_state(word)
    return word == "n/a" or (read is not None and is_known(read[0]))


#: The columns by which a row without a header is known.
_TELLING: dict[str, Callable[[str], bool]] = {
    "state": _is_state,
    "avail": lambda word: word in ("up", "down", "drain", "inact"),
    "count": lambda word: word.isascii() and word.isdigit(),
}


def _number(text: str) -> int:
    """Return a number as sinfo prints it: ``64``, ``64+``, ``1K``; 0 for none."""
    if text in _UNKNOWN:
        return 0
    match = _NUMBER.fullmatch(text)
    if not match:
        raise ValueError(text)
    return min(int(match.group(1)) * _FACTOR[match.group(2)], 2**31 - 1)


def _part(text: str, at: int) -> int:
    """Return the sockets (0) or the cores a socket (1) of ``2:16:1``."""
    if text in _UNKNOWN:
        return 0
    parts = text.split(":")
    if len(parts) != 3:
        raise ValueError(text)
    return _number(parts[at])


def gpus_of(text: str) -> int:
    """Return the GPUs in a list of generic resources.

    Examples
    --------
    >>> gpus_of("gpu:a100:4(S:0-1),nic:2"), gpus_of("gpu:2,gpu:h100:1"), gpus_of("(null)")
    (4, 3, 0)
    """
    return sum(int(count or 1) for count in _GPU.findall(text))
