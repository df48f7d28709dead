# SPDX-License-Identifier: Apache-2.0
"""Nodes for people: those that a pasted text names, what is known of them, lists to take away.

What is around a list where it was copied from is blanked, so that every
word keeps its place, and every bad word is named where it stands.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.placement.accounting import jobs_in
from nidmap.placement.commands.nodes import nodes_document
from nidmap.placement.emit import Emission, HeaderJob, emit
from nidmap.placement.errors import NidmapError, ParseError, UsageError, printable
from nidmap.placement.lookup import nodes_of, rows_of
from nidmap.placement.nodelist import NodeList
from nidmap.placement.support.arrays import each_once
from nidmap.placement.topologies import router_names
from nidmap.web import replies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nidmap.placement.machine import Machine
    from nidmap.placement.support.array_types import Ints
    from nidmap.web.requests import Emit
    from nidmap.web.snapshot import Snapshot

#: Maximum number of nodes that one answer describes.
MOST = 1000

#: Bad words that are named; more are counted.
MOST_ERRORS = 20

#: Words that are looked up one by one when this many are bad already.
_MOST_TRIED = 500

#: Characters of a text up to which what is around its names is looked for.
_LONGEST_WRAPPED = 200_000

_WORD = re.compile(r"(?:[^\s,\[\]]|\[[^\[\]]*\]|[\[\]])+")

_DIRECTIVE = re.compile(r"^\s*#\s?SBATCH\b.*$", re.MULTILINE)
_NODELIST = re.compile(r"(?:^|\s)(?:-w[ =]?|--nodelist[ =])([^\s'\"]+|'[^']*'|\"[^\"]*\")")
_VNODE = re.compile(r"\(([A-Za-z][\w.-]*)((?::[\w.]+=[\w.]+)*)\)\+?")
_QUOTED_LIST = re.compile(r"(\s*)[\[(](\s*['\"].*['\"]\s*(?:,\s*)?)[\])](\s*)", re.DOTALL)

#: What programs write around names: quotes of shells and of JSON, semicolons.
_MARKS = str.maketrans({'"': " ", "'": " ", "`": " ", ";": ","})

#: Words that may name several nodes: ranges, indices, places.
_PLACE = re.compile(r"\d+-\d+|#|[cCxX]\d+[-cC]")


def resolve(machine: Machine, text: str) -> replies.Resolved:
    """Return the rows that a pasted text names, and the words that name nothing.

    `text`: anything that `nidmap.placement.nodelist.NodeList.parse` reads; also with what is
    around a list in a batch script, in quotes, in JSON, in PBS's vnodes, and what ``squeue
    --json`` prints. With ``jobs`` where the text lists several.
    """
    reading = _read_wrapped(machine, text)
    reading.jobs = _queued_jobs(machine, text)
    return reading


def _read_wrapped(machine: Machine, text: str) -> replies.Resolved:
    """Return the rows of a text, or of the list inside its wrapping if that names more."""
    reading = _read_rows(machine, text)
    if reading.ok or len(text) > _LONGEST_WRAPPED:
        return reading
    for other in _unwrap_words(text):
        bare = _read_rows(machine, other) if other.strip() else reading
        if bare.ok or bare.count > reading.count:
            reading = bare
    return reading


def _queued_jobs(machine: Machine, text: str) -> list[replies.NamedJob]:
    """Return the jobs of a squeue listing, as text or JSON, if it has several."""
    known = None
    if text.lstrip().startswith("{"):
        with contextlib.suppress(NidmapError):
            known = jobs_in(text)
    lists = [(job.id, job.nodes.fold()) for job in known or ()] or list(_table_jobs(text))
    jobs = []
    for name, nodes in lists if len(lists) > 1 else ():
        with contextlib.suppress(NidmapError):
            jobs.append(replies.NamedJob(name, rows_of(machine, nodes).tolist()))
    return jobs


def _table_jobs(text: str) -> Iterator[tuple[str, str]]:
    r"""Yield id and nodes of each row of a squeue table."""
    head, *rows = text.strip().split("\n")
    names = head.split()
    if names[:1] != ["JOBID"] or not names[-1].startswith("NODELIST"):
        return
    for row in rows:
        cells = row.split()
        if len(cells) >= len(names) and not cells[-1].endswith(")"):
            yield cells[0], cells[-1]


def _unwrap_words(text: str) -> Iterator[str]:
    """Yield a text without possible wrapping around names, each of the same length.

    The last one is not text of the same length: the nodes of all jobs in what
    ``squeue --json`` printed.
    """
    for bare in (_DIRECTIVE.sub(_blank_directive, text), _VNODE.sub(_blank_vnode, text),
                 _blank_quotes(text)):  # fmt: skip
        if bare != text:
            yield bare
    if text.lstrip().startswith("{"):
        with contextlib.suppress(NidmapError):
            yield ",".join(job.nodes.fold() for job in jobs_in(text) or ())


def _blank_directive(match: re.Match[str]) -> str:
    """Keep only the nodes of a ``#SBATCH`` line."""
    line = match.group()
    kept = [" "] * len(line)
    for listed in _NODELIST.finditer(line):
        kept[listed.start(1) : listed.end(1)] = listed.group(1)
    return _blank_quotes("".join(kept))


def _blank_vnode(match: re.Match[str]) -> str:
    """Keep the name in ``(nid00136:ncpus=64)+``."""
    return f" {match.group(1)}".ljust(len(match.group()))


def _blank_quotes(text: str) -> str:
    """Blank quotes, and the brackets of a list of quoted words."""
    listed = _QUOTED_LIST.fullmatch(text)
    return (" ".join(listed.groups()) if listed else text).translate(_MARKS)


def _read_rows(machine: Machine, text: str) -> replies.Resolved:
    """Return the rows that a text names as it is, and what in it names nothing."""
    none = np.empty(0, dtype=np.int64)
    try:
        return _rows_document(machine, rows_of(machine, text, repeats=True), [], 0)
    except ParseError as error:
        if "this row does not fit" in error.text:
            return _rows_document(machine, none, [_find_problem(text, "", error)], 0)
    words = list(_split_words(machine, text))
    if not words:
        nothing = replies.NameProblem(
            "", 0, 0, "names no nodes", "paste names, NIDs or a job's nodes"
        )
        return _rows_document(machine, none, [nothing], 0)
    bad = _bad_words(machine, words)
    named = [_find_problem(text, word, why) for word, why in bad.items() if why is not None]
    good = [word for word in words if word not in bad]
    rows = rows_of(machine, ",".join(good), repeats=True) if good else none
    return _rows_document(machine, rows, named, len(bad) - len(named))


def _split_words(machine: Machine, text: str) -> Iterator[str]:
    """Yield the names in a text, and the words of unreadable lines."""
    try:
        yield from NodeList.parse(text, most=len(machine))
    except ParseError:
        for line in text.split("\n"):
            try:
                yield from NodeList.parse(line, most=len(machine))
            except ParseError:
                yield from (match.group() for match in _WORD.finditer(line))


def _bad_words(machine: Machine, words: list[str]) -> dict[str, ParseError | None]:
    """Return the words that name nothing, and why; None for those beyond a limit."""
    known = _known_words(machine)
    bad: dict[str, ParseError | None] = {}
    for tried, word in enumerate(w for w in dict.fromkeys(words) if w not in known):
        if len(bad) >= MOST_ERRORS and (tried > _MOST_TRIED or not _PLACE.match(word)):
            bad[word] = None
            continue
        try:
            rows_of(machine, word, repeats=True)
        except ParseError as error:
            bad[word] = error if len(bad) < MOST_ERRORS else None
    return bad


def _find_problem(text: str, word: str, error: ParseError) -> replies.NameProblem:
    """Return the fault of a word in a text, or of the text at a line."""
    line, column = _word_place(text, word, error.line)
    return replies.NameProblem(printable(word), line, column, error.text, error.hint)


def _rows_document(
    machine: Machine, rows: Ints, errors: list[replies.NameProblem], more: int
) -> replies.Resolved:
    once = each_once(rows)
    return replies.Resolved(
        ok=not errors,
        count=len(once),
        rows=once.tolist(),
        repeated=len(rows) - len(once),
        nodelist=nodes_of(machine, once).fold() if len(once) else "",
        errors=errors,
        more_errors=more,
    )


def _known_words(machine: Machine) -> set[str]:
    """Return the words that certainly name one node: host names, cnames and NIDs."""
    words = set(machine.names.tolist())
    words.update(cname for cname in machine.cname.tolist() if cname)
    words.update(map(str, machine.nid[machine.nid >= 0].tolist()))
    return words


def _word_place(text: str, word: str, line: int = 0) -> tuple[int, int]:
    """Return the line and column, from 1, at which a word stands alone."""
    if not word:
        return line, 0
    match = re.search(rf"(?<![^\s,]){re.escape(word)}(?![^\s,*:])", text)
    if match is None:
        return line, 0
    begin = text.rfind("\n", 0, match.start()) + 1
    return text.count("\n", 0, begin) + 1, match.start() - begin + 1


# --- what is known of nodes, and lists to take away ------------------------------------


def describe_nodes(machine: Machine, now: Snapshot, text: str) -> replies.Nodes:
    """Return all that is known about some nodes."""
    _refuse_many(NodeList.length_of(text))
    rows = rows_of(machine, text, repeats=True)
    _refuse_many(len(rows))
    holders: dict[int, list[str]] = {}
    for job in now.jobs:
        for row in job.rows.tolist():
            holders.setdefault(row, []).append(job.id)
    return replies.Nodes([_describe_node(machine, now, holders, row) for row in rows.tolist()])


def _refuse_many(count: int) -> None:
    if count > MOST:
        raise UsageError(f"{count} nodes; at most {MOST} are described", "use /api/v1/machine")


def _describe_node(
    machine: Machine, now: Snapshot, holders: dict[int, list[str]], row: int
) -> replies.Node:
    words = {"name": machine.names, "cname": machine.cname, "role": machine.role,
             "state": now.state, "features": machine.features}  # fmt: skip
    numbers = ("nid", "sockets", "cores", "memory_mb", "nics", "gpus")
    routers = machine.router[row]
    known: dict[str, Any] = {name: str(column[row]) for name, column in words.items()}
    known |= {name: int(getattr(machine, name)[row]) for name in numbers}
    return replies.Node(
        row=row,
        coords=dict(zip(machine.topology.levels, machine.coords[row].tolist(), strict=True)),
        planned=bool(now.planned[row]),
        jobs=holders.get(row, []),
        routers=router_names(machine)[routers[routers >= 0]].tolist(),
        **known,
    )


def emit_nodes(machine: Machine, wanted: Emit) -> replies.Emitted:
    """Return nodes as text in a format of ``nidmap plan --format``."""
    rows = rows_of(machine, wanted.nodes)
    names = nodes_of(machine, rows)
    emission = Emission(
        nodes=names,
        nids=tuple(machine.nid[rows].tolist()),
        cnames=tuple(machine.cname[rows].tolist()),
        job=HeaderJob(len(names), ppn=wanted.ppn, nodelist=names),
        batch=machine.batch,
        remarks=(f"nidmap: {len(names)} nodes marked on {machine.name}",),
        document=nodes_document(machine, rows) if wanted.format == "json" else {},
    )
    return replies.Emitted(wanted.format, len(names), emit(emission, wanted.format))
