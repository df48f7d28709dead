"""What is saved of a machine: a picture, or the whole page in one file."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.lookup import nodes_of, rows_of
from web.picture import Mark, picture

if TYPE_CHECKING:
    from placement.machine import Machine
    from web.snapshot import Snapshot

__all__ = ["export", "file_name"]

_KINDS = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "html": "text/html; charset=utf-8",
}

#: What the sentence is about where nobody says.
_USUAL = {"ppn": 1, "pattern": "alltoall", "bytes": None, "order": ""}


def file_name(machine: Machine, form: str) -> tuple[str, str]:
    """Return the name of a file that is taken away, and its media type.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> file_name(parse_spec("torus:2x2"), "svg")
    ('torus-2x2.svg', 'image/svg+xml')
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", machine.name)[:60] or "machine"
    return f"{name}.{form}", _KINDS[form]


def export(machine: Machine, now: Snapshot, wanted: dict[str, Any]) -> tuple[bytes, str]:
    """Return a file's content and the sentence that stands in it.

    Parameters
    ----------
    machine : Machine
    now : Snapshot
    wanted : dict
        ``format``, ``nodes``, ``marks``, ``view``, ``colour``, ``theme``,
        ``width``, and ``ppn``, ``pattern``, ``bytes`` and ``order`` that the
        sentence is about (`web.requests.Export`).
    """
    marks = _marks(machine, wanted)
    said = _described(machine, now, marks, {key: wanted.get(key, _USUAL[key]) for key in _USUAL})
    sentence = said["sentence"] if said else _whole(machine, now)
    if wanted["format"] == "html":
        return _page(machine, now, marks, said).encode(), sentence
    look = {key: wanted[key] for key in ("view", "colour", "theme")}
    raw = picture(machine, now, marks, wanted["format"], wanted["width"], sentence=sentence, **look)
    return raw, sentence


def _marks(machine: Machine, wanted: dict[str, Any]) -> list[Mark]:
    """Return the marks that name a node."""
    listed = [{"name": "", "nodes": wanted["nodes"]}, *wanted["marks"]]
    found: list[Mark] = []
    for one in listed:
        if one["nodes"].strip():
            rows = rows_of(machine, one["nodes"], repeats=True)
            once = np.array(list(dict.fromkeys(rows.tolist())), dtype=np.int64)
            hue = one.get("hue")
            found.append(Mark(one["name"], once, len(found) if hue is None else hue))
    return found


def _described(
    machine: Machine, now: Snapshot, marks: list[Mark], job: dict[str, Any]
) -> dict[str, Any] | None:
    """Return what the first mark is worth; None where nothing is marked."""
    if not marks:
        return None
    from web.figures import describe

    text = nodes_of(machine, marks[0].rows).fold()
    wanted = {"nodes": text, "routing": "", "slots": [], "links": 300, **job}
    return describe(machine, now.free(machine), wanted)


def _whole(machine: Machine, now: Snapshot) -> str:
    """Return the sentence of a picture without marks."""
    free, compute = int(now.free(machine).sum()), int(machine.compute.sum())
    holding = f", {len(now.jobs)} jobs" if now.jobs else ""
    return f"{compute} compute nodes, {free} of them free{holding}"


def _page(machine: Machine, now: Snapshot, marks: list[Mark], said: dict[str, Any] | None) -> str:
    from web import layout
    from web.columns import document
    from web.page import exported

    own = document(machine) | {"show_users": any(job.user for job in now.jobs), "live": False}
    data = {
        "schema": "nidmap.export/1",
        "machine": own | {"refresh": 0, "version": "", "limits": {"marks": 32}},
        "layout": layout.document(machine),
        "state": now.document(machine),
        "marks": [
            {
                "name": mark.name,
                "rows": mark.rows.tolist(),
                "hue": mark.hue,
                "nodelist": nodes_of(machine, mark.rows).fold(),
            }
            for mark in marks
        ],
        "describe": said,
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    return exported(machine.name, data)
