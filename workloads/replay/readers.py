# SPDX-License-Identifier: Apache-2.0
"""Readers of traces: SWF, the output of sacct, the CSV of ``nidmap jobs``; plain or gzip."""

from __future__ import annotations

import csv
import io
import math
import re

import numpy as np

from nidmap.placement.accounting import head_of, read_table
from nidmap.placement.errors import ParseError
from nidmap.placement.readers import split_lines
from nidmap.placement.support.array_types import Floats
from nidmap.placement.support.quantities import counted
from nidmap.placement.support.reading import UNPACKED, read_bytes
from nidmap.workloads.replay.trace import Columns, Trace, clean_trace

#: Fields of a line of SWF (Feitelson's standard, version 2.2), and those that are read.
_FIELDS = 18
_ID, _SUBMIT, _WAIT, _RUN, _USED, _ASKED, _LIMIT, _USER, _PROGRAM = 0, 1, 2, 3, 4, 7, 8, 11, 13

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)", re.A | re.I)
_HEADER = re.compile(r";\s*(MaxNodes|MaxProcs):\s*(\d+)")
_HINT = "a trace is SWF, the output of sacct -X -P, or the CSV of nidmap jobs"


def read_trace(source: str, per_node: float | None = None) -> Trace:
    """Read a trace."""
    text = read_bytes(source, "TRACE", UNPACKED).decode("utf-8", "replace")
    lines = split_lines(text, source, UNPACKED)
    first = next((line for line in lines if line.strip()), "")
    if first.startswith(";") or re.fullmatch(r"[-+.\d\s]+", first.strip() or "x"):
        return _read_swf(lines, source, per_node)
    if {"patterns", "touches", "node_hours"} & set(first.strip().split(",")):
        return _read_own(text, source)
    if head_of(first) is not None:
        return _read_accounts(text, source)
    wrong = f"'{first.strip()[:60]}' is not the start of a trace" if first else "is empty"
    raise ParseError(source, 1 if first else 0, wrong, _HINT)


def _read_swf(lines: list[str], source: str, per_node: float | None) -> Trace:
    found = (_HEADER.match(line) for line in lines if line.startswith(";"))
    header = {match[1]: int(match[2]) for match in found if match}
    share, words = _per_node(header, per_node)
    columns = _swf_columns(_swf_numbers(lines, source))
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


def _swf_numbers(lines: list[str], source: str) -> Floats:
    """Return the numbers of all jobs, one row per job."""
    rows = [line for line in lines if not line.startswith(";") and line.strip()]
    try:
        table = np.loadtxt(rows, ndmin=2, comments=";") if rows else np.empty((0, _FIELDS))
    except ValueError:
        raise _strange_row(lines, source) from None
    if table.shape[1] < _FIELDS:
        raise _strange_row(lines, source)
    return table


def _strange_row(lines: list[str], source: str) -> ParseError:
    """Return the error of the first line that is not a job."""
    for number, line in enumerate(lines, 1):
        words = line.partition(";")[0].split()
        if words and len(words) < _FIELDS:
            what = f"{len(words)} fields, but a job in SWF has {_FIELDS}"
            return ParseError(source, number, what, "is the file complete?")
        strange = [word for word in words if not _NUMBER.fullmatch(word)]
        if strange:
            return ParseError(source, number, f"'{strange[0]}' is not a number", _HINT)
    return ParseError(source, 0, "lines of different lengths", _HINT)


def _swf_columns(table: Floats) -> Columns:
    """Return the columns of jobs in SWF; `nodes` are still processors."""
    whole = [table[:, k].astype(np.int64).astype(str) for k in (_ID, _USER, _PROGRAM)]
    user = np.where(table[:, _USER] >= 0, np.char.add("user", whole[1]), "")
    name = np.where(table[:, _PROGRAM] >= 0, np.char.add("program", whole[2]), "")
    used = np.where(table[:, _USED] > 0, table[:, _USED], table[:, _ASKED])
    submit = table[:, _SUBMIT]
    start = submit + np.maximum(0, table[:, _WAIT])
    return Columns(whole[0], submit, start, table[:, _RUN], table[:, _LIMIT], used, user, name)


def _read_accounts(text: str, source: str) -> Trace:
    """Read the output of sacct."""
    rows, running = [], 0
    for job in read_table(text, source):
        if math.isfinite(job.end):
            run, nodes = job.end - job.start, len(job.nodes)
            rows.append((job.id, job.submit, job.start, run, job.limit, nodes, job.user, job.name))
        else:
            running += 1
    remarks = [f"{counted(running, 'job')} left out: still running"] if running else []
    return clean_trace(Columns.of_rows(rows), source, remarks)


def _read_own(text: str, source: str) -> Trace:
    """Read what ``nidmap jobs -o FILE.csv`` writes: no submissions, no limits."""
    rows, reader = [], csv.DictReader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            start, end, nodes = (float(row[key] or "nan") for key in ("start", "end", "nodes"))
            said = row["user"], row["application"] or row["name"]
            rows.append((row["id"], math.nan, start, end - start, math.nan, nodes, *said))
    except (KeyError, ValueError, csv.Error) as error:
        what = f"is not a row of nidmap jobs: {error}"
        raise ParseError(source, reader.line_num, what, _HINT) from None
    return clean_trace(Columns.of_rows(rows), source)
