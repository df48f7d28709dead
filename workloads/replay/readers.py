# SPDX-License-Identifier: Apache-2.0
"""Readers of traces: SWF, the output of sacct, the CSV of ``nidmap jobs``; plain or gzip.

A file is read in blocks of lines, so that memory grows with its jobs alone.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from itertools import chain, islice

import numpy as np

from nidmap.placement.accounting import head_of, read_table
from nidmap.placement.errors import ParseError
from nidmap.placement.support.array_types import Floats
from nidmap.placement.support.quantities import counted
from nidmap.placement.support.reading import read_lines
from nidmap.workloads.replay.trace import Columns, Trace, clean_trace

#: Lines that are read together.
_BLOCK = 100_000

#: Fields of a line of SWF (Feitelson's standard, version 2.2), and those that are read.
_FIELDS = 18
_ID, _SUBMIT, _WAIT, _RUN, _USED, _ASKED, _LIMIT, _USER, _PROGRAM = 0, 1, 2, 3, 4, 7, 8, 11, 13

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)", re.A | re.I)
_HEADER = re.compile(r";\s*(MaxNodes|MaxProcs):\s*(\d+)")
_HINT = "a trace is SWF, the output of sacct -X -P, or the CSV of nidmap jobs"


def read_trace(source: str, per_node: float | None = None) -> Trace:
    """Read a trace."""
    lines = read_lines(source, "TRACE")
    first = next((line for line in lines if line.strip()), "")
    lines = chain([first], lines)
    if first.startswith(";") or re.fullmatch(r"[-+.\d\s]+", first.strip() or "x"):
        return _read_swf(lines, source, per_node)
    if {"patterns", "touches", "node_hours"} & set(first.strip().split(",")):
        return _read_own(lines, source)
    if head_of(first) is not None:
        return _read_accounts(lines, source)
    wrong = f"'{first.strip()[:60]}' is not the start of a trace" if first else "is empty"
    raise ParseError(source, 1 if first else 0, wrong, _HINT)


def _read_swf(lines: Iterator[str], source: str, per_node: float | None) -> Trace:
    header: dict[str, int] = {}
    parts, before = [], 0
    while block := list(islice(lines, _BLOCK)):
        fields = (_HEADER.match(line) for line in block if line.startswith(";"))
        header |= {field[1]: int(field[2]) for field in fields if field}
        parts.append(_swf_columns(_swf_numbers(block, source, before)))
        before += len(block)
    columns, (share, words) = Columns.joined(parts), _per_node(header, per_node)
    return clean_trace(columns._replace(nodes=columns.nodes / share), source, [words])


def _per_node(header: dict[str, int], given: float | None) -> tuple[float, str]:
    """Return the processors per node, and a remark on it."""
    if given is not None:
        return given, f"{given:g} processors per node, as given"
    nodes, processors = header.get("MaxNodes", 0), header.get("MaxProcs", 0)
    if nodes and processors > nodes:
        share = processors / nodes
        return share, f"{share:.4g} processors per node ({processors} on {nodes} nodes), rounded up"
    return 1.0, "each processor counts as a node (--per-node changes it)"


def _swf_numbers(block: list[str], source: str, before: int) -> Floats:
    """Return the numbers of a block of lines, one row per job."""
    rows = [line for line in block if not line.startswith(";") and line.strip()]
    try:
        table = np.loadtxt(rows, ndmin=2, comments=";") if rows else np.empty((0, _FIELDS))
    except ValueError:
        raise _strange_row(block, source, before) from None
    if table.shape[1] < _FIELDS:
        raise _strange_row(block, source, before)
    return table


def _strange_row(block: list[str], source: str, before: int) -> ParseError:
    """Return the error of the first line of a block that is not a job."""
    for number, line in enumerate(block, before + 1):
        words = line.partition(";")[0].split()
        if words and len(words) < _FIELDS:
            what = f"{len(words)} fields, but a job in SWF has {_FIELDS}"
            return ParseError(source, number, what, "is the file complete?")
        strange = [word for word in words if not _NUMBER.fullmatch(word)]
        if strange:
            return ParseError(source, number, f"'{strange[0]}' is not a number", _HINT)
    return ParseError(source, before + 1, "lines of different lengths", _HINT)


def _swf_columns(table: Floats) -> Columns:
    """Return the columns of jobs in SWF; `nodes` are still processors."""
    ids, user, name = (
        np.array(
            [f"{word}{number}" if number >= 0 or not word else "" for number in column.tolist()],
            dtype=str,
        )
        for word, column in zip(
            ("", "user", "program"),
            table[:, (_ID, _USER, _PROGRAM)].astype(np.int64).T,
            strict=True,
        )
    )
    used = np.where(table[:, _USED] > 0, table[:, _USED], table[:, _ASKED])
    # Copies: the block is gone when the next one is read.
    submit, run, limit = (table[:, k].copy() for k in (_SUBMIT, _RUN, _LIMIT))
    start = submit + np.maximum(0, table[:, _WAIT])
    return Columns(ids, submit, start, run, limit, used, user, name)


def _read_accounts(lines: Iterator[str], source: str) -> Trace:
    """Read the output of sacct block by block, each under the header of all."""
    head, parts, before, running = next(lines), [], 0, 0
    while block := list(islice(lines, _BLOCK)):
        try:
            jobs = list(read_table("\n".join([head, *block]), source))
        except ParseError as error:
            raise ParseError(source, error.line + before, error.text, error.hint) from None
        rows = [(j.id, j.submit, j.start, j.end - j.start, j.limit, len(j.nodes), j.user, j.name)
                for j in jobs if math.isfinite(j.end)]  # fmt: skip
        parts.append(Columns.of_rows(rows))
        running += len(jobs) - len(rows)
        before += len(block)
    remarks = [f"{counted(running, 'job')} left out: still running"] if running else []
    return clean_trace(Columns.joined(parts), source, remarks)


def _read_own(lines: Iterator[str], source: str) -> Trace:
    """Read what ``nidmap jobs -o FILE.csv`` writes: no submissions, no limits."""
    rows, reader = [], csv.DictReader(lines)
    try:
        for row in reader:
            start, end, nodes = (float(row[key] or "nan") for key in ("start", "end", "nodes"))
            said = row["user"], row["application"] or row["name"]
            rows.append((row["id"], math.nan, start, end - start, math.nan, nodes, *said))
    except (KeyError, ValueError, csv.Error) as error:
        what = f"is not a row of nidmap jobs: {error}"
        raise ParseError(source, reader.line_num, what, _HINT) from None
    return clean_trace(Columns.of_rows(rows), source)
