"""Recordings on disk: one npz file, which ``matrix:FILE`` reads as well.

Beside the phases stands the sum over all of them, as scipy saves a sparse
matrix, so that other programs read the file too.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.commands.common import write_output
from placement.errors import ParseError, UsageError, printable
from rankmap.recording import KINDS, Collective, Messages, Phase, Recording, joined
from rankmap.slots import MOST_SLOTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Columns = dict[str, Ints]

__all__ = ["SCHEMA", "load_recording", "save_recording"]

SCHEMA = "nidmap.recording/1"

#: Bytes of a file's largest array.
_MOST_BYTES = 1 << 33

#: Of each message's entry: its phase and `Messages`.
_SENT = ("sent_phase", "sent_source", "sent_target", "sent_bytes", "sent_messages")
#: Of each collective: its phase, root, and where its members begin; of each member the rest.
_CALLED = (
    "called_phase",
    "called_root",
    "called_start",
    "member_rank",
    "member_calls",
    "member_bytes",
)


def save_recording(recording: Recording, path: str) -> None:
    """Write a recording, whole or not at all.

    Raises
    ------
    OutputError
        Where it cannot be written.
    """
    columns: dict[str, Any] = {"recording": np.array(json.dumps(_header(recording)))}
    sent = [phase.sent for phase in recording.phases]
    numbers = np.repeat(np.arange(len(sent)), [len(one.source) for one in sent])
    columns |= dict(zip(_SENT, (numbers, *joined(sent)), strict=True))
    columns |= _collectives(recording.phases)
    try:
        columns |= _matrix(recording)
    except UsageError:  # too many pairs: the phases say it shorter
        columns["shape"] = np.array([recording.ranks, recording.ranks])
    out = io.BytesIO()
    np.savez_compressed(out, **columns)
    write_output(out.getvalue(), path)


def _header(recording: Recording) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "ranks": recording.ranks,
        "seconds": recording.seconds,
        "program": recording.program,
        "window": recording.window,
        "notes": recording.notes,
        "phases": [
            {"kind": p.kind, "site": p.site, "calls": p.calls, "steps": p.steps}
            for p in recording.phases
        ],
    }


def _collectives(phases: Sequence[Phase]) -> Columns:
    found = [(number, c) for number, phase in enumerate(phases) for c in phase.collectives]
    sizes = [len(c.members) for _, c in found]
    none = np.empty(0, dtype=np.int64)
    values = (
        np.array([number for number, _ in found], dtype=np.int64),
        np.array([c.root for _, c in found], dtype=np.int64),
        np.cumsum([0, *sizes], dtype=np.int64),
        np.concatenate([none, *(c.members for _, c in found)]),
        np.concatenate([none, *(c.calls for _, c in found)]),
        np.concatenate([none, *(c.bytes for _, c in found)]),
    )
    return dict(zip(_CALLED, values, strict=True))


def _matrix(recording: Recording) -> dict[str, Any]:
    total = recording.total()
    return {
        "indices": total.target,
        "indptr": np.searchsorted(total.source, np.arange(recording.ranks + 1)),
        "format": np.array(b"csr"),
        "shape": np.array([recording.ranks, recording.ranks]),
        "data": total.bytes,
        "messages": total.messages,
    }


def load_recording(path: str) -> Recording:
    """Return the recording that stands in a file.

    Raises
    ------
    ParseError
        No such file, no recording, damaged, or of a later version.
    """
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            if "recording.npy" not in archive.namelist():
                hint = "nidmap record writes them; of other files nidmap pattern show needs matrix:"
                raise ParseError(path, 0, "no recording of nidmap record", hint)
            header = json.loads(str(_column(archive, "recording", path)))
            columns = {name: _column(archive, name, path) for name in (*_SENT, *_CALLED)}
    except ParseError:
        raise
    except OSError as error:
        raise ParseError(path, 0, error.strerror or str(error)) from None
    except Exception as error:  # zipfile, zlib and numpy's header parser raise what comes
        text = f"damaged recording: {printable(str(error), 80)}"
        raise ParseError(path, 0, text) from None
    return _recording(header, columns, path)


def _column(archive: zipfile.ZipFile, name: str, path: str) -> Any:
    member = f"{name}.npy"
    if archive.getinfo(member).file_size > _MOST_BYTES:
        raise ParseError(path, 0, f"{name} is larger than {_MOST_BYTES >> 30} GB")
    with archive.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _recording(header: Any, columns: Columns, path: str) -> Recording:
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        raise ParseError(path, 0, f"no recording of the version that is read here ({SCHEMA})")
    try:
        ranks, words = int(header["ranks"]), header["phases"]
        _check(columns, ranks, len(words))
        phases = tuple(_phase(n, word, columns) for n, word in enumerate(words))
        return Recording(
            ranks,
            float(header["seconds"]),
            phases,
            str(header["program"]),
            str(header["window"]),
            tuple(str(note) for note in header["notes"]),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        text = f"damaged recording: {printable(str(error), 80)}"
        raise ParseError(path, 0, text) from None


def _check(columns: Columns, ranks: int, phases: int) -> None:
    """Raise ValueError where the columns cannot be those of a recording."""
    if not 0 < ranks <= MOST_SLOTS:
        raise ValueError(f"{ranks} ranks")
    for names in (_SENT, _CALLED[:2], _CALLED[3:]):
        if len({columns[name].shape for name in names}) != 1 or columns[names[0]].ndim != 1:
            raise ValueError(f"{names[0]} and its neighbours are not as long as each other")
    for name, column in columns.items():
        limit = {"rank": ranks, "source": ranks, "target": ranks, "phase": phases}
        most = limit.get(name.split("_")[1], np.iinfo(np.int64).max)
        low = -2 if name == "called_root" else 0
        if column.dtype.kind not in "iu":
            raise ValueError(f"{name} holds no whole numbers")
        if len(column) and not (low <= int(column.min()) and int(column.max()) < most):
            raise ValueError(f"{name} is out of range")
    start = columns["called_start"]
    whole = len(start) == len(columns["called_phase"]) + 1 and (np.diff(start) >= 0).all()
    if not whole or start[0] != 0 or start[-1] != len(columns["member_rank"]):
        raise ValueError("called_start does not fit the members")


def _phase(number: int, word: Any, columns: Columns) -> Phase:
    mine = columns["sent_phase"] == number
    start = columns["called_start"]
    if word["kind"] not in KINDS:
        raise ValueError(f"kind {word['kind']}")
    called = [
        Collective(
            columns["member_rank"][start[i] : start[i + 1]],
            int(columns["called_root"][i]),
            columns["member_calls"][start[i] : start[i + 1]],
            columns["member_bytes"][start[i] : start[i + 1]],
        )
        for i in np.flatnonzero(columns["called_phase"] == number)
    ]
    sent = Messages(*(columns[name][mine] for name in _SENT[1:]))
    return Phase(
        str(word["kind"]),
        str(word["site"]),
        int(word["calls"]),
        int(word["steps"]),
        sent,
        tuple(called),
    )
