# SPDX-License-Identifier: Apache-2.0
"""Recordings on disk: a single npz file, which ``matrix:FILE`` reads too.

Beside the phases is the sum over all of them, as scipy saves a sparse
matrix, so that other programs read the file too.
"""

from __future__ import annotations

import io
import itertools
import json
import math
import os
import zipfile
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nidmap.placement.errors import ParseError, UsageError, printable
from nidmap.placement.placement import MOST_RANKS
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.writing import write_output
from nidmap.placement.traffic import Traffic, join_traffic
from nidmap.rankmap.readers.npz import read_member
from nidmap.rankmap.recording import (
    EVENTS,
    KINDS,
    RecordedCollective,
    RecordedOrder,
    RecordedPhase,
    Recording,
)

SCHEMA = "nidmap.recording/1"

#: Hint for a file that is not a recording.
OTHERS = "nidmap record writes one; matrix:FILE reads other files"

#: Bytes of a file's largest array.
_MOST_BYTES = 1 << 33

#: Of each message's entry: its phase and `Traffic`.
_SENT = ("sent_phase", "sent_source", "sent_target", "sent_bytes", "sent_messages")
#: Of each collective: its phase, root, communicator, and what each member called and gave,
#: `_LISTED` where that is member by member in `_MEMBERS`.
_CALLED = ("called_phase", "called_root", "called_group", "called_calls", "called_bytes")
_MEMBERS = ("member_calls", "member_bytes")
#: Where the members of each communicator begin, and who they are.
_GROUPS = ("called_start", "member_rank")
_LISTED = -1
#: Columns of the ranks' events in order (`RecordedOrder`), if known; the last two are its groups.
_ORDER = ("order_events", "order_numbers", "order_start", "order_groups", "order_members")
#: Which an older recording does not have.
_TAGS = "order_tags"


def save_recording(recording: Recording, path: str) -> None:
    """Write a recording, all or nothing.

    `path`: ``.csv`` for lines of from, to, bytes over all phases; else npz.
    """
    if os.path.splitext(path)[1].lower() == ".csv":
        rows = zip(*(column.tolist() for column in recording.total().columns[:3]), strict=True)
        lines = "".join(f"{a},{b},{size}\n" for a, b, size in rows)
        write_output(f"# ranks={recording.ranks}\nsource,target,bytes\n{lines}", path)
        return
    sent = [phase.sent for phase in recording.phases]
    phases = enumerate(recording.phases)
    called = [(number, c) for number, phase in phases for c in phase.collectives]
    numbers = np.repeat(np.arange(len(sent)), [len(part.source) for part in sent])
    groups: dict[bytes, tuple[int, Ints]] = {}
    alike: list[tuple[int, ...]] = []
    listed = [np.empty((2, 0), dtype=np.int64)]
    for number, c in called:
        group, _ = groups.setdefault(c.members.tobytes(), (len(groups), c.members))
        same = (c.calls == c.calls[:1]).all() and (c.bytes == c.bytes[:1]).all()
        both = (int(c.calls[0]), int(c.bytes[0])) if same else (_LISTED, _LISTED)
        alike.append((number, c.root, group, *both))
        listed += [] if same else [np.stack([c.calls, c.bytes])]
    members = [ranks for _, ranks in groups.values()]
    none = np.empty(0, dtype=np.int64)
    member_columns = np.cumsum([0, *map(len, members)]), np.concatenate([none, *members])
    columns: dict[str, Any] = {
        "recording": np.array(json.dumps(_make_header(recording))),
        **dict(zip(_SENT, (numbers, *join_traffic(sent).columns), strict=True)),
        **dict(zip(_CALLED, np.array(alike, dtype=np.int64).reshape(-1, 5).T, strict=True)),
        **dict(zip(_MEMBERS, np.hstack(listed), strict=True)),
        **dict(zip(_GROUPS, member_columns, strict=True)),
        "shape": np.array([recording.ranks, recording.ranks]),
    }
    if (order := recording.order) is not None:
        ends = np.cumsum([0, *map(len, order.groups)]), np.concatenate([none, *order.groups])
        columns |= dict(zip(_ORDER, (order.events, order.numbers, order.start, *ends), strict=True))
        columns |= {} if order.tags is None else {_TAGS: order.tags}
    try:
        total = recording.total()
    except UsageError:
        pass  # too many pairs: the phases say it shorter
    else:
        columns |= {
            "indices": total.target,
            "indptr": np.searchsorted(total.source, np.arange(recording.ranks + 1)),
            "format": np.array(b"csr"),
            "data": total.bytes,
            "messages": total.messages,
        }
    out = io.BytesIO()
    np.savez_compressed(out, **columns)
    write_output(out.getvalue(), path)


def _make_header(recording: Recording) -> dict[str, Any]:
    plain = {name: getattr(recording, name) for name in recording.__slots__ if name != "order"}
    names = ("kind", "site", "calls", "steps")
    phases = [{name: getattr(phase, name) for name in names} for phase in recording.phases]
    whole = recording.order is not None and recording.order.whole
    return {"schema": SCHEMA, **plain, "phases": phases, "whole": whole}


def load_recording(path: str) -> Recording:
    """Return the recording in a file."""
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            if "recording.npy" not in archive.namelist():
                raise ParseError(path, 0, "not a recording of nidmap record", OTHERS)
            load = partial(read_member, archive, source=path, most=_MOST_BYTES)
            header = json.loads(str(load("recording")))
            if not isinstance(header, dict) or header.get("schema") != SCHEMA:
                fault = f"not a recording of the supported version ({SCHEMA})"
                raise ParseError(path, 0, fault)
            columns = {name: load(name) for name in (*_SENT, *_CALLED[:2], *_MEMBERS, *_GROUPS)}
            listed = np.full(len(columns["called_phase"]), _LISTED)
            columns |= dict(zip(_CALLED[2:], (np.arange(len(listed)), listed, listed), strict=True))
            if "called_group.npy" in archive.namelist():  # otherwise each has its own list
                columns |= {name: load(name) for name in _CALLED[2:]}
            recording = _make_recording(header, columns)
            if f"{_ORDER[0]}.npy" in archive.namelist():
                order = _read_order(recording, *map(load, _ORDER))
                tags = load(_TAGS) if f"{_TAGS}.npy" in archive.namelist() else None
                if tags is not None and (tags.shape != order.numbers.shape or (tags < -1).any()):
                    raise ValueError("the tags of events are out of range")
                order = replace(order, tags=tags, whole=bool(header.get("whole")))
                recording = replace(recording, order=order)
            return recording
    except ParseError:
        raise
    except OSError as error:
        raise ParseError(path, 0, error.strerror or str(error)) from None
    except zipfile.BadZipFile:
        with open(path, "rb") as file:
            head = file.read(4)
        what = "damaged recording: it is cut short" if head == b"PK\3\4" else "no recording"
        raise ParseError(path, 0, what if head else "the file is empty", OTHERS) from None
    except Exception as error:  # zipfile, zlib and numpy's header parser may raise anything
        text = f"damaged recording: {printable(str(error), 80)}"
        raise ParseError(path, 0, text) from None


def _make_recording(header: dict[str, Any], columns: dict[str, Ints]) -> Recording:
    ranks = int(header["ranks"])
    _check_columns(columns, ranks, len(header["phases"]))
    called = _read_collectives(columns)
    phases = []
    for number, word in enumerate(header["phases"]):
        if word["kind"] not in KINDS:
            raise ValueError(f"kind {word['kind']}")
        in_phase = columns["sent_phase"] == number
        indices = np.flatnonzero(columns["called_phase"] == number).tolist()
        sent = Traffic(*(columns[name][in_phase] for name in _SENT[1:]))
        words = str(word["kind"]), str(word["site"]), int(word["calls"]), int(word["steps"])
        phases.append(RecordedPhase(*words, sent, tuple(called[i] for i in indices)))
    seconds, program, window = header["seconds"], str(header["program"]), str(header["window"])
    notes, hosts = (tuple(map(str, header.get(name, ()))) for name in ("notes", "hosts"))
    machine = str(header.get("machine", ""))
    times = [float(header.get(name, 0.0)) for name in ("exchange_s", "work_s")]
    if not all(0 <= time_s < math.inf for time_s in times):
        raise ValueError("invalid seconds")
    return Recording(
        ranks, float(seconds), tuple(phases), program, window, notes, None, hosts, machine, *times
    )


def _read_order(
    recording: Recording, events: Ints, numbers: Ints, start: Ints, ends: Ints, members: Ints
) -> RecordedOrder:
    """Return the events of all ranks, in order."""
    what, peer, group, phase, size = events.T
    called, counted = what == EVENTS.index("collective"), what == EVENTS.index("wait-for-last")
    groups = tuple(members[low:high] for low, high in itertools.pairwise(ends.tolist()))
    limits = (
        (what, len(EVENTS)), (peer[~counted] + 1, recording.ranks + 1),
        (peer[counted], len(numbers) + 1), (size, np.iinfo(np.int64).max),
        (group[called], len(groups)), (phase[called], len(recording.phases)),
        (numbers, len(events)), (members, recording.ranks), (start, len(numbers) + 1),
    )  # fmt: skip
    if any(len(column) and not 0 <= column.min() <= column.max() < most for column, most in limits):
        raise ValueError("the order of events is out of range")
    if len(start) != recording.ranks + 1 or (np.diff(start) < 0).any():
        raise ValueError("order_start is not a list of ranks")
    return RecordedOrder(events, numbers, start, groups)


def _read_collectives(columns: dict[str, Ints]) -> list[RecordedCollective]:
    """Return all phases' collectives; those on one communicator share its rank list."""
    start, at, collectives = columns["called_start"], 0, []
    ranks = [columns["member_rank"][low:high] for low, high in itertools.pairwise(start)]
    for root, group, calls, size in zip(*(columns[n].tolist() for n in _CALLED[1:]), strict=True):
        members = ranks[group]
        if calls == _LISTED:
            here = slice(at, at + len(members))
            at += len(members)
            figures = (columns[name][here] for name in _MEMBERS)
            collectives.append(RecordedCollective(members, root, *figures))
        else:
            collectives.append(RecordedCollective.alike(members, root, calls, size))
    return collectives


def _check_columns(columns: dict[str, Ints], ranks: int, phases: int) -> None:
    """Raise ValueError if the columns are not those of a recording."""
    if not 0 < ranks <= MOST_RANKS:
        raise ValueError(f"{ranks} ranks")
    for names in (_SENT, _CALLED, _MEMBERS):
        if len({columns[name].shape for name in names}) != 1 or columns[names[0]].ndim != 1:
            raise ValueError(f"{names[0]} and its companion columns differ in length")
    for name, column in columns.items():
        limit = {"rank": ranks, "source": ranks, "target": ranks, "phase": phases}
        limit["group"] = len(columns["called_start"]) - 1
        most = limit.get(name.split("_")[1], np.iinfo(np.int64).max)
        low = {"called_root": -2, "called_calls": _LISTED, "called_bytes": _LISTED}.get(name, 0)
        if column.dtype.kind not in "iu":
            raise ValueError(f"{name} must be whole numbers")
        if len(column) and not (low <= int(column.min()) and int(column.max()) < most):
            raise ValueError(f"{name} is out of range")
    start, listed = columns["called_start"], columns["called_calls"] == _LISTED
    if not len(start) or start[0] != 0 or (np.diff(start) < 0).any():
        raise ValueError("called_start is not a list of communicators")
    count = np.diff(start)[columns["called_group"][listed]].sum()
    if start[-1] != len(columns["member_rank"]) or count != len(columns["member_calls"]):
        raise ValueError("called_start does not match the members")
