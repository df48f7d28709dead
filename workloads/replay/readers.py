# SPDX-License-Identifier: Apache-2.0
"""Traces as they are found: SWF, what sacct prints, the CSV of ``nidmap jobs``; plain or gzip.

A file is read in pieces of some megabytes, so that its size takes no memory beyond the columns.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import math
import re
import sys
import zlib
from collections.abc import Iterator
from itertools import chain, islice
from typing import IO, Any

import numpy as np

from nidmap.placement.accounting import head_of, read_table
from nidmap.placement.errors import ParseError, os_reason
from nidmap.placement.support.array_types import Floats
from nidmap.workloads.replay.trace import Columns, Trace, clean_trace

#: Lines that are read at a time.
_BLOCK = 100_000

#: Fields of a line of SWF, and those of it that are read (feitelson's standard, version 2.2).
_FIELDS = 18
_ID, _SUBMIT, _WAIT, _RUN, _USED, _ASKED, _LIMIT, _USER, _PROGRAM = 0, 1, 2, 3, 4, 7, 8, 11, 13

_HEADER = re.compile(r";\s*(MaxNodes|MaxProcs):\s*(\d+)")
_HINT = "a trace is SWF, what sacct -X -P prints, or the CSV of nidmap jobs"


def read_trace(source: str, per_node: float | None = None) -> Trace:
    """Read a trace."""
    with _opened(source) as stream:
        first = next((line for line in stream if line.strip()), "")
        lines = chain([first], stream)
        if first.startswith(";") or re.fullmatch(r"[-+.\d\s]+", first.strip() or "x"):
            return _read_swf(lines, source, per_node)
        if {"patterns", "touches", "node_hours"} & set(first.strip().split(",")):
            return _read_own(lines, source)
        if head_of(first.rstrip("\n")) is not None:
            return _read_accounts(lines, source)
    raise ParseError(source, 1, f"'{first.strip()[:60]}' begins no trace", _HINT)


@contextlib.contextmanager
def _opened(source: str) -> Iterator[IO[str]]:
    """Open a trace, unpacked where it is gzip; what goes wrong while it is read is one line."""
    try:
        with contextlib.ExitStack() as stack:
            file = sys.stdin.buffer if source == "-" else open(source, "rb")  # noqa: SIM115
            raw: Any = stack.enter_context(file)
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            plain = stack.enter_context(gzip.open(raw)) if packed else raw
            yield io.TextIOWrapper(plain, encoding="utf-8", errors="replace")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ParseError(source, 0, f"is a damaged gzip: {error}") from None
    except (OSError, ValueError) as error:
        raise ParseError(source, 0, f"cannot be read: {os_reason(error)}") from None


def _read_swf(lines: Iterator[str], source: str, per_node: float | None) -> Trace:
    header: dict[str, int] = {}
    blocks, number = [], 0
    while block := list(islice(lines, _BLOCK)):
        for line in block:
            if line.startswith(";") and (match := _HEADER.match(line)):
                header[match[1]] = int(match[2])
        table = _swf_numbers(block, source, number)
        number += len(block)
        if len(table):
            blocks.append(_swf_columns(table))
    share, words = _per_node(header, per_node)
    columns = Columns.joined(blocks)
    return clean_trace(columns._replace(nodes=columns.nodes / share), source, [words])


def _per_node(header: dict[str, int], given: float | None) -> tuple[float, str]:
    """Return processors of a node, and a remark on that."""
    if given is not None:
        return given, f"{given:g} processors a node, as given"
    nodes, processors = header.get("MaxNodes", 0), header.get("MaxProcs", 0)
    if nodes and processors > nodes:
        share = processors / nodes
        return share, f"{share:.4g} processors a node ({processors} on {nodes} nodes), rounded up"
    return 1.0, "each processor of the trace is taken for a node (--per-node says another number)"


def _swf_numbers(block: list[str], source: str, before: int) -> Floats:
    """Return the numbers of a block's jobs, a row a job."""
    rows = [line for line in block if not line.startswith(";") and line.strip()]
    try:
        table = np.loadtxt(rows, ndmin=2, comments=";") if rows else np.empty((0, _FIELDS))
    except ValueError:
        raise _strange_row(block, source, before) from None
    if table.shape[1] < _FIELDS:
        raise _strange_row(block, source, before)
    return table


def _strange_row(block: list[str], source: str, before: int) -> ParseError:
    """Return the error of the first line of a block that is no job."""
    for number, line in enumerate(block, before + 1):
        words = line.partition(";")[0].split()
        if not words:
            continue
        if len(words) < _FIELDS:
            what = f"{len(words)} fields, a job in SWF has {_FIELDS}"
            return ParseError(source, number, what, "is the file complete?")
        for word in words:
            try:
                float(word)
            except ValueError:
                return ParseError(source, number, f"'{word}' is no number", _HINT)
    return ParseError(source, before + 1, "lines of different lengths", _HINT)


def _swf_columns(table: Floats) -> Columns:
    """Return the columns of jobs in SWF; `nodes` are processors here."""
    whole = [table[:, k].astype(np.int64).astype(str) for k in (_ID, _USER, _PROGRAM)]
    user = np.where(table[:, _USER] >= 0, np.char.add("user", whole[1]), "")
    name = np.where(table[:, _PROGRAM] >= 0, np.char.add("program", whole[2]), "")
    used = np.where(table[:, _USED] > 0, table[:, _USED], table[:, _ASKED])
    submit = table[:, _SUBMIT]
    start = submit + np.maximum(0, table[:, _WAIT])
    return Columns(whole[0], submit, start, table[:, _RUN], table[:, _LIMIT], used, user, name)


def _read_accounts(lines: Iterator[str], source: str) -> Trace:
    """Read what sacct or squeue printed, or CSV with a header, in pieces under that header."""
    head = next(lines)
    blocks, before = [], 0
    while block := list(islice(lines, _BLOCK)):
        try:
            jobs = list(read_table("".join([head, *block]), source))
        except ParseError as error:
            raise ParseError(source, error.line + before, error.text, error.hint) from None
        before += len(block)
        rows = [(j.id, j.submit, j.start, j.end - j.start, j.limit, len(j.nodes), j.user, j.name)
                for j in jobs if math.isfinite(j.end)]  # fmt: skip
        blocks.append(Columns.of_rows(rows))
    return clean_trace(Columns.joined(blocks), source, ["jobs that still run are left out"])


def _read_own(lines: Iterator[str], source: str) -> Trace:
    """Read the CSV that ``nidmap jobs -o FILE.csv`` writes: no submissions, no limits."""
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
