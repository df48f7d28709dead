# SPDX-License-Identifier: Apache-2.0
"""``sinfo`` (plain, ``-N``, ``-N -l``, ``-o '%N %t'``): states, features, cores, memory, weights.

Read are plain ``sinfo``, ``-l``, ``-N``, ``-N -l`` (whose first line is a
date) and any ``-o`` format, all with the header that says what the columns are; between the
columns are blanks, or one of ``|``, ``,``, ``;`` and ``/`` throughout. ``CLUSTER: NAME`` may be
above, for one cluster.
Checked on the outputs of a real slurmctld 22.05.

sinfo repeats a node once per partition: it becomes one node, in the worst of
the states printed, or ``inactive`` where the ``AVAIL`` column shows that none
of its partitions is up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import (
    MOST_NODES,
    count_lines,
    dump_format,
    refuse_empty,
    split_lines,
    strange_line,
)
from nidmap.placement.readers.node_states import StatedNode, slurm_state, states_dump
from nidmap.placement.readers.slurm_switches import expand
from nidmap.placement.records import Dump, Finding, LineCounts

#: The one format in which nidmap itself asks, as ``sinfo -e -o QUERY`` or ``sinfo -N -o QUERY``.
#: Without ``-e`` or ``-N`` sinfo puts nodes of different size and weight into one row (``16+``).
QUERY = "%N|%P|%a|%T|%c|%m|%X|%Y|%w|%G|%f"

#: Headers that sinfo prints, and our names for the columns. Others are ignored.
COLUMNS = {
    "NODELIST": "nodes", "HOSTNAMES": "nodes", "PARTITION": "partition", "AVAIL": "avail",
    "STATE": "state", "CPUS": "cpus", "MEMORY": "memory", "S:C:T": "sct", "SOCKETS": "sockets",
    "CORES": "cores", "WEIGHT": "weight", "GRES": "gres", "AVAIL_FEATURES": "features",
    "FEATURES": "features", "REASON": "reason",
    "RESERVATION": "reservation",
}  # fmt: skip
_CLUSTER = re.compile(r"CLUSTER: *(\S+)\s*")
#: Separators between columns other than blanks.
_BETWEEN = "|;,/"
#: A comma outside of brackets.
_COMMA = re.compile(r",(?![^\[\]]*\])")
_DATE = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} [0-9]{4}\s*")
_NUMBER = re.compile(r"([0-9]{1,15})(?:\.[0-9]+)?([KMGTP]?)\+?")
_GPU = re.compile(r"(?:^|,)gpu(?::[^:(,]+)??(?::([0-9]{1,6}))?(?:\([^)]*\))?(?=,|$)")
_MERGING = ("cpus", "memory", "sct", "sockets", "cores", "weight")
_UNKNOWN = ("", "(null)", "N/A", "n/a", "none")
#: Figures and the columns that hold them.
_NUMBERS = {"memory_mb": "memory", "weight": "weight", "sockets": "sockets", "cores": "cores"}
_HINT = f'print it with sinfo -N -o "{QUERY}"'


def sniff(head: str) -> bool:
    r"""Tell whether the first lines look like the output of sinfo."""
    lines = (
        line
        for line in head.split("\n")
        if line.strip() and not (_DATE.fullmatch(line) or _CLUSTER.fullmatch(line))
    )
    return bool(_header_columns(next(lines, "")))


@dump_format("sinfo", "states", sniff, scheduler="slurm")
def read(text: str, source: str) -> Dump:
    r"""Read the output of sinfo.

    One row per node in the order of the output: name, state, planned and what the format shows of
    sockets, cores, memory_mb, gpus, features and weight. ``parameters["partitions"]`` has each
    node's partitions, comma-separated, and ``parameters["default_partition"]`` the one that a
    star marks.
    """
    lines = split_lines(text, source)
    table = _SinfoOutput(lines, source)
    counts = count_lines(lines, table.headers)
    counts = LineCounts(counts.rows + counts.comments, 0, counts.headers, counts.blank)
    refuse_empty(counts, source, "node; does Slurm hide it (PrivateData), or is a partition wrong?")
    dump = states_dump(source, counts, table.nodes(), empty="no partition has a node")
    if dump.nodes is None:
        return dump
    return replace(dump, parameters=table.parameters(), findings=tuple(table.remarks()))


class _SinfoOutput:
    """The layout of one output, and its rows.

    `names`: the columns, '' for those that are left out. `bar`: what is between them, '' for
    blanks. `start`, `headers`: lines above the first row, and how many of them are headers.
    """

    def __init__(self, lines: Sequence[str], source: str) -> None:
        self.source = source
        self.names, self.bar, self.start, self.headers = _read_layout(lines, source)
        self.rows: list[tuple[int, dict[str, str]]] = []
        self.partitions: dict[str, dict[str, None]] = {}
        header = lines[self.start - 1] if self.start else ""
        first, columns = header[:1], _header_columns(header)
        shared: dict[str, str] = {}  # most cells repeat: keep one of each
        for number, line in enumerate(lines[self.start :], self.start + 1):
            if not line.strip():
                continue
            if _DATE.fullmatch(line) or (line[0] == first and _header_columns(line)):
                if _header_columns(line) not in ((), columns):
                    raise _strange_line(source, number, line)
                self.headers += 1  # printed again, by --iterate or for another partition
                continue
            if _CLUSTER.fullmatch(line):
                hint = "print them one by one, as sinfo -M NAME"
                raise ParseError(source, number, "sinfo output of several clusters", hint)
            cells = self._split(line, number)
            row = dict(zip(self.names, map(shared.setdefault, cells, cells), strict=True))
            if row["nodes"] not in _UNKNOWN:  # else a partition without nodes
                self.rows.append((number, row))

    def _split(self, line: str, number: int) -> list[str]:
        last, open_end = len(self.names) - 1, self.names[-1] == "reason"
        if self.bar:
            cells = _cut_line(line, self.bar, last if open_end else 0)
        else:
            cells = line.strip().split(None, last)
            if not open_end and cells and len(cells[-1].split()) != 1:
                raise _strange_line(self.source, number, line)
        if len(cells) == last and "reservation" in self.names:  # of sinfo -l, mostly empty
            cells.insert(self.names.index("reservation"), "")
        if len(cells) == last and (open_end or "n/a" in cells):
            cells.append("")
        if len(cells) != last + 1:
            what = f"a row of {last + 1} columns as the others"
            hint = "leave %E out: a reason may hold anything" if "reason" in self.names else ""
            raise strange_line("sinfo", self.source, number, line, what, hint)
        return cells

    def merged(self) -> list[str]:
        """Return the columns in which sinfo has merged differing nodes."""
        return [n for n in _MERGING if any(row.get(n, "").endswith("+") for _, row in self.rows)]

    def nodes(self) -> Iterator[StatedNode]:
        """Yield each node of each row, without weights where sinfo merged differing ones."""
        left_out = {"weight"} & set(self.merged())
        total = 0
        for line, row in self.rows:
            state, planned = slurm_state(row["state"], self.source, line)
            figures = _node_figures({k: row[k] for k in row.keys() - left_out}, self.source, line)
            hosts = expand(row["nodes"], self.source, line, "NODELIST")
            total += len(hosts) - 1
            if total > MOST_NODES:
                raise ParseError(self.source, line, f"more than {MOST_NODES:,} nodes")
            for name in hosts:
                self.partitions.setdefault(name, {})[row.get("partition", "")] = None
                up = row.get("avail", "up") == "up"
                yield StatedNode(name, state, planned, line, figures, up)

    def parameters(self) -> dict[str, object]:
        """Return each node's partitions, and the default one."""
        if "partition" not in self.names:
            return {}
        starless = (dict.fromkeys(p.rstrip("*") for p in of) for of in self.partitions.values())
        parameters: dict[str, object] = {"partitions": np.array([",".join(of) for of in starless])}
        starred = {row["partition"] for _, row in self.rows if row["partition"].endswith("*")}
        if len(starred) == 1:
            parameters["default_partition"] = starred.pop()[:-1]
        return parameters

    def remarks(self) -> Iterator[Finding]:
        """Yield a remark on what sinfo has merged."""
        merged = self.merged()
        if merged:
            text = f"sinfo has merged nodes of different {', '.join(merged)}: the minimum is used"
            text += ", weights are left out" if "weight" in merged else ""
            hint = _HINT.replace("-N", "-e")
            yield Finding(self.start, "merged-nodes", text, hint, fault=False)


def _read_layout(lines: Sequence[str], source: str) -> tuple[Sequence[str], str, int, int]:
    """Return column names, separator, number of the header line, and number of headers."""
    headers = 1
    for number, line in enumerate(lines, start=1):
        if _DATE.fullmatch(line) or _CLUSTER.fullmatch(line):
            headers += 1
        elif header := _header_columns(line):
            return _check_columns(header, number, source), _separator(line), number, headers
        elif line.strip():
            raise _strange_line(source, number, line)
    return (), "", len(lines), 0


def _separator(header: str) -> str:
    """Return the separator of a header's columns; '' for blanks."""
    if "|" in header:
        return "|"
    first = header.split()[0]
    return next((mark for mark in _BETWEEN if mark in re.sub(r"\([^)]*\)", "", first)), "")


def _cut_line(line: str, mark: str, most: int = 0) -> list[str]:
    """Return the cells between separators; commas in brackets belong to node lists."""
    cells = _COMMA.split(line, most) if mark == "," else line.split(mark, most or -1)
    return [cell.strip() for cell in cells]


def _strange_line(source: str, number: int, line: str) -> ParseError:
    return strange_line("sinfo", source, number, line, "a line of sinfo", _HINT)


def _check_columns(names: Sequence[str], number: int, source: str) -> Sequence[str]:
    """Return the columns to use; ``-o "%all"`` prints PARTITION and STATE twice."""
    for column, letter in (("nodes", "%N"), ("state", "%T")):
        if column not in names:
            raise ParseError(source, number, f"sinfo output without column {letter}", _HINT)
    return [name if name not in names[:i] else "" for i, name in enumerate(names)]


def _node_figures(row: Mapping[str, str], source: str, line: int) -> dict[str, int | str]:
    """Return a row's hardware of its nodes."""

    def number(column: str, text: str) -> int:
        match = _NUMBER.fullmatch("0" if text in _UNKNOWN else text)
        if not match:
            what = f"{column}: {row[column]!r} is not a number"
            raise ParseError(source, line, what)
        return min(int(match[1]) << 10 * " KMGTP".index(match[2] or " "), 2**31 - 1)

    printed = {key: (name, row[name]) for key, name in _NUMBERS.items() if name in row}
    if "sct" in row:
        parts = (row["sct"] if row["sct"] not in _UNKNOWN else "0:0:0").split(":")
        sockets, cores = parts[:2] if len(parts) == 3 else ("?", "?")
        printed |= {"sockets": ("sct", sockets), "cores": ("sct", cores)}
    figures: dict[str, int | str] = {key: number(*cell) for key, cell in printed.items()}
    a_socket, sockets_of = figures.pop("cores", None), figures.get("sockets")
    if isinstance(a_socket, int) and isinstance(sockets_of, int):
        figures["cores"] = min(sockets_of * a_socket, 2**31 - 1)
    if "gres" in row:
        figures["gpus"] = gpus_of(row["gres"])
    if "features" in row:
        figures["features"] = "" if row["features"] in _UNKNOWN else row["features"]
    return figures


def _header_columns(line: str) -> tuple[str, ...]:
    """Return a header's columns ('' for ignored ones); () if it is not a header."""
    mark = _separator(line) if line.strip() else ""
    words = _cut_line(line, mark) if mark else line.split()
    others = {"JOBID", "NNODES"} & set(words)  # squeue's, Flux's
    named = {"NODELIST", "HOSTNAMES"} & set(words) and not others
    if not named or len(words) == 1 or any(w != w.upper() for w in words if w not in COLUMNS):
        return ()  # one word: names without states, a plain list
    return tuple(COLUMNS.get(w, "") for w in words)


def gpus_of(text: str) -> int:
    """Return the number of GPUs in a list of generic resources."""
    return sum(int(count or 1) for count in _GPU.findall(text))
