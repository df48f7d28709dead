"""What is saved of a machine: a picture (SVG, PNG), or the whole page in one file."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from placement.errors import UsageError, printable
from placement.lookup import nodes_of, rows_of
from placement.support.array_types import Ints
from web import figures, layout, requests
from web.columns import document
from web.page import draw_svg, export_page, paint_png
from web.requests import Describe, Export
from web.snapshot import DOWN

if TYPE_CHECKING:
    from placement.machine import Machine
    from web.snapshot import Snapshot

__all__ = ["Mark", "export", "file_name", "page_data"]

#: Ways to colour for which a page asks a server.
_ASKED = ("rank", "hops")

_KINDS = {"svg": "image/svg+xml", "png": "image/png", "html": "text/html; charset=utf-8"}


class Mark(NamedTuple):
    """A named set of rows; `hue` counts the palette's colours."""

    name: str
    rows: Ints
    hue: int = 0


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

    Raises
    ------
    UsageError
        The machine has no such view, or colours need nodes that are not named.
    """
    marks = _marks_with_nodes(machine, wanted)
    if wanted.colour in _ASKED and not marks and not wanted.focus:
        raise UsageError(f"colours by {wanted.colour} need marked nodes", "--nodes LIST")
    views = [view.id for view in layout.layout(machine)]
    if wanted.view and wanted.view not in views:
        what = f"no view {printable(wanted.view)!r}"
        raise UsageError(what, f"there are {', '.join(views)}")
    data = page_data(machine, now, marks, wanted)
    described = data["describe"]
    sentence = described["sentence"] if described else _describe_machine(machine, now)
    if wanted.format == "html":
        return export_page(machine.name, data).encode(), sentence
    shown = {"view": wanted.view or views[0], "theme": wanted.theme, "sentence": sentence}
    svg = draw_svg(data | shown)
    return svg.encode() if wanted.format == "svg" else paint_png(svg, wanted.width), sentence


def page_data(machine: Machine, now: Snapshot, marks: list[Mark], wanted: Export) -> dict[str, Any]:
    """Return all that a page shows which has no server to ask."""
    columns = document(machine) | {"show_users": any(job.user for job in now.jobs), "live": False}
    return {
        "schema": "nidmap.export/1",
        "machine": columns | {"refresh": 0, "version": "", "limits": {"marks": 8}},
        "layout": layout.document(machine),
        "state": now.document(machine),
        "marks": [
            mark._asdict()
            | {"rows": mark.rows.tolist(), "nodelist": nodes_of(machine, mark.rows).fold()}
            for mark in marks
        ],
        "describe": _describe_mark(machine, now, marks[0], wanted) if marks else None,
        "hash": wanted.state,
        **_colours_of(machine, now, marks, wanted),
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def _describe_mark(machine: Machine, now: Snapshot, mark: Mark, wanted: Export) -> dict[str, Any]:
    """Return what the first mark's job costs, and how many of its nodes are down."""
    job = Describe(
        nodes_of(machine, mark.rows).fold(), wanted.ppn, wanted.pattern, wanted.bytes,
        order=wanted.order, slots=wanted.slots, links=300,
    )  # fmt: skip
    description = figures.describe(machine, now.offer(machine), job)
    if down := int((now.kinds(machine)[mark.rows] == DOWN).sum()):
        description["sentence"] += f"; {down} of them {'is' if down == 1 else 'are'} down"
    return description


def _describe_machine(machine: Machine, now: Snapshot) -> str:
    free, compute = int(now.free(machine).sum()), int(machine.compute.sum())
    holding = f", {len(now.jobs)} jobs" if now.jobs else ""
    return f"{compute} compute nodes, {free} of them free{holding}"


def _marks_with_nodes(machine: Machine, wanted: Export) -> list[Mark]:
    """Return the marks that name a node."""
    marks: list[Mark] = []
    for mark in (requests.Mark(wanted.nodes), *wanted.marks):
        if mark.nodes.strip():
            rows = rows_of(machine, mark.nodes, repeats=True)
            once = np.array(list(dict.fromkeys(rows.tolist())), dtype=np.int64)
            marks.append(Mark(mark.name, once, len(marks) if mark.hue is None else mark.hue))
    return marks


def _colours_of(
    machine: Machine, now: Snapshot, marks: list[Mark], wanted: Export
) -> dict[str, Any]:
    """Return how a page colours its nodes, with the figures that it cannot ask a server for."""
    offer = now.offer(machine)
    if wanted.colour == "rank":
        nodes = nodes_of(machine, marks[0].rows).fold()
        order = wanted.order or "row-major"
        job = requests.Order(nodes, wanted.ppn, wanted.pattern, order, wanted.slots)
        return {"way": "rank", "ranks": figures.order(machine, offer, job)}
    if wanted.colour == "hops":
        start = wanted.focus or f"#{marks[0].rows[0]}"
        return {"way": "hops", "hops": figures.hops(machine, offer, requests.Hops(start))}
    group = f"level:{machine.topology.levels[0]}"
    return {"way": group if wanted.colour == "group" else wanted.colour}
