"""What is saved of a machine: a picture, or the whole page in one file."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import UsageError
from placement.lookup import nodes_of, rows_of
from web import requests
from web.picture.scene import Mark, draw_scene
from web.requests import Describe, Export

if TYPE_CHECKING:
    from placement.machine import Machine
    from web.snapshot import Snapshot

__all__ = ["export", "file_name"]

#: Ways to colour for which a page asks a server.
_ASKED = ("rank", "hops")

_KINDS = {"svg": "image/svg+xml", "png": "image/png", "html": "text/html; charset=utf-8"}


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


def export(machine: Machine, now: Snapshot, wanted: Export) -> tuple[bytes, str]:
    """Return a file's content and the sentence that stands in it.

    Parameters
    ----------
    machine : Machine
    now : Snapshot
    wanted : Export
        What is marked and how it is shown; pattern, ranks and order are for the sentence.
    """
    marks, said = _marks(machine, wanted), None
    asked = wanted.colour in _ASKED
    if asked and not marks and not wanted.focus:
        raise UsageError(f"colours by {wanted.colour} are of marked nodes", "--nodes LIST")
    if asked and wanted.format != "html":
        raise UsageError(f"colours by {wanted.colour} are a page's", "-o FILE.html")
    if marks:
        from web.figures import describe

        text = nodes_of(machine, marks[0].rows).fold()
        job = Describe(
            text, wanted.ppn, wanted.pattern, wanted.bytes, order=wanted.order,
            slots=wanted.slots, links=300,
        )  # fmt: skip
        said = describe(machine, now.free(machine), job)
        sentence = said["sentence"]
    else:
        free, compute = int(now.free(machine).sum()), int(machine.compute.sum())
        holding = f", {len(now.jobs)} jobs" if now.jobs else ""
        sentence = f"{compute} compute nodes, {free} of them free{holding}"
    if wanted.format == "html":
        more = {"describe": said, "hash": wanted.state, **_colours_of(machine, now, marks, wanted)}
        return _page(machine, now, marks, more).encode(), sentence
    from web.picture.files import png, svg

    scene = draw_scene(machine, now, marks, wanted, sentence)
    return svg(scene) if wanted.format == "svg" else png(scene, wanted.width), sentence


def _marks(machine: Machine, wanted: Export) -> list[Mark]:
    """Return the marks that name a node."""
    found: list[Mark] = []
    for one in (requests.Mark(wanted.nodes), *wanted.marks):
        if one.nodes.strip():
            rows = rows_of(machine, one.nodes, repeats=True)
            once = np.array(list(dict.fromkeys(rows.tolist())), dtype=np.int64)
            found.append(Mark(one.name, once, len(found) if one.hue is None else one.hue))
    return found


def _colours_of(
    machine: Machine, now: Snapshot, marks: list[Mark], wanted: Export
) -> dict[str, Any]:
    """Return how a page colours its nodes, with the figures that it cannot ask a server for."""
    from web import figures

    free = now.free(machine)
    if wanted.colour == "rank":
        nodes = nodes_of(machine, marks[0].rows).fold()
        order = wanted.order or "row-major"
        job = requests.Order(nodes, wanted.ppn, wanted.pattern, order, wanted.slots)
        return {"way": "rank", "ranks": figures.order(machine, free, job)}
    if wanted.colour == "hops":
        start = wanted.focus or f"#{marks[0].rows[0]}"
        return {"way": "hops", "hops": figures.hops(machine, free, requests.Hops(start))}
    group = f"level:{machine.topology.levels[0]}"
    return {"way": group if wanted.colour == "group" else wanted.colour}


def _page(machine: Machine, now: Snapshot, marks: list[Mark], more: dict[str, Any]) -> str:
    from web import layout
    from web.columns import document
    from web.page import export_page

    own = document(machine) | {"show_users": any(job.user for job in now.jobs), "live": False}
    data = {
        "schema": "nidmap.export/1",
        "machine": own | {"refresh": 0, "version": "", "limits": {"marks": 32}},
        "layout": layout.document(machine),
        "state": now.document(machine),
        "marks": [
            mark._asdict()
            | {"rows": mark.rows.tolist(), "nodelist": nodes_of(machine, mark.rows).fold()}
            for mark in marks
        ],
        **more,
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    return export_page(machine.name, data)
