# SPDX-License-Identifier: Apache-2.0
"""The page: its shell, the self-contained file that opens from disk, and its pictures.

A browser refuses ES modules from ``file://``, and each is a request of its own, so that the page
has one script: each module of ``static/`` in a function of its own, in the order in which they
need each other. How modules may be written for that is said in `bundle_modules`.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from nidmap.placement import __version__
from nidmap.placement.errors import NidmapError, UsageError, printable
from nidmap.placement.lookup import nodes_of, rows_of
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.arrays import each_once
from nidmap.web import figures, layout, replies, requests
from nidmap.web.columns import document
from nidmap.web.requests import Describe, Export
from nidmap.web.snapshot import DOWN

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine
    from nidmap.web.snapshot import Snapshot

_HOME = Path(__file__).parent
STATIC = _HOME / "static"

#: The module that everything starts from, and the style sheet.
ENTRY, STYLE = "main.js", "page.css"
#: The module that draws, without a browser, what an exported page would show (QuickJS runs it).
DRAWING = "draw/headless.js"

_IMPORT = re.compile(
    r"^import\s+\{(?P<names>[^}]*)\}\s+from\s+[\"'](?P<file>\.\.?/[\w./\-]+\.js)[\"'];[ \t]*$", re.M
)
_EXPORT = re.compile(
    r"^export\s+(?P<head>(?:async\s+)?function|const|class)\s+(?P<name>[\w$]+)", re.M
)
_LEFT = re.compile(r"^(?:import|export)\b.*$", re.M)


def page_shell(title: str) -> str:
    """Return the page as served, without data, script or style."""
    script, style = served_files()
    return _render_page(
        title=title,
        export=False,
        head_assets=_trust_html(
            f'<link rel="stylesheet" href="static/{style}">'
            f'<script defer src="static/{script}"></script>'
        ),
        body_assets="",
    )


@lru_cache(maxsize=1)
def served_files() -> dict[str, str]:
    """Return the page's script and style under names that change with their contents."""
    script, style = bundle_modules(page_modules()), (STATIC / STYLE).read_text(encoding="utf-8")
    return {
        f"page-{hashlib.sha256(text.encode()).hexdigest()[:12]}.{suffix}": text
        for text, suffix in ((script, "js"), (style, "css"))
    }


def export_page(title: str, data: Mapping[str, Any]) -> str:
    """Return the page with its style, its script and its data.

    `data`: what the page finds in the element ``nidmap-data``.
    """
    style = (STATIC / STYLE).read_text(encoding="utf-8")
    script = bundle_modules(page_modules())
    for name, text, end in (("style", style, "</style"), ("script", script, "</script")):
        if end in text.lower():
            raise NidmapError(f"the page's {name} contains its own end mark: a bug in nidmap")
    rule = (
        f"default-src 'none'; script-src '{_script_digest(script)}'; "
        f"style-src '{_script_digest(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{rule}"><style>{style}</style>'
    body = (
        f'<script type="application/json" id="nidmap-data">{_inert_json(data)}</script>'
        f"<script>{script}</script>"
    )
    return _render_page(
        title=title,
        export=True,
        head_assets=_trust_html(head),
        body_assets=_trust_html(body),
    )


def page_modules() -> dict[str, str]:
    """Return the texts of the page's modules by path below ``static/``."""
    return {
        path.relative_to(STATIC).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(STATIC.rglob("*.js"))
    }


def _trust_html(text: str) -> Markup:
    """Mark our own files' text as HTML; foreign text is in it only as `_inert_json` JSON."""
    return Markup(text)  # noqa: S704 - see above


def _inert_json(data: Mapping[str, Any]) -> str:
    """Return data as JSON that cannot end its enclosing element."""
    text = msgspec.json.encode(data).decode()
    for mark, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"),
                       ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):  # fmt: skip
        text = text.replace(mark, code)
    return text


def _script_digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _render_page(**values: Any) -> str:
    environment = Environment(
        loader=FileSystemLoader(_HOME / "templates"), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("page.html").render(**values)


def bundle_modules(modules: Mapping[str, str], entry: str = ENTRY) -> str:
    """Join ES modules into one plain script.

    A module may import at the beginnings of lines, ``import { a, b } from
    "./x.js";``, and export declarations of one name at the beginnings of
    lines (function, async function, const, class). Nothing else: no default,
    no dynamic import, no cycle.

    `modules`: texts by path; those that `entry` does not need are left out.
    """
    parts = [_as_function(name, modules[name]) for name in needed_modules(modules, entry)]
    return "\n".join(["(() => {", '"use strict";', *parts, "})();", ""])


def needed_modules(modules: Mapping[str, str], entry: str = ENTRY) -> list[str]:
    """Return the modules that one needs, itself last, each after its imports."""
    ordered: list[str] = []
    _visit_module(modules, entry, ordered, [])
    return ordered


def _visit_module(modules: Mapping[str, str], name: str, done: list[str], way: list[str]) -> None:
    """Add a module after those that it needs."""
    if name in done:
        return
    if name in way:
        raise NidmapError(f"{' -> '.join([*way, name])}: modules import each other in a circle")
    if name not in modules:
        raise NidmapError(f"{(way or ['the page'])[-1]} imports {name}, which is not there")
    for match in _IMPORT.finditer(modules[name]):
        _visit_module(modules, _imported_path(name, match["file"]), done, [*way, name])
    done.append(name)


def _imported_path(name: str, file: str) -> str:
    """Return the path of an imported module."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), file))


def _as_function(name: str, text: str) -> str:
    """Return a module as a function that returns what it exports."""
    exports = ", ".join(match.group("name") for match in _EXPORT.finditer(text))

    def bind(match: re.Match[str]) -> str:
        return (
            f"const {{{match['names']}}} = {_module_variable(_imported_path(name, match['file']))};"
        )

    body = _IMPORT.sub(bind, text)
    body = _EXPORT.sub(r"\g<head> \g<name>", body)
    left = _LEFT.search(body)
    if left is not None:
        raise NidmapError(f"{name}: {left.group()[:80]!r} cannot be bundled")
    variable = _module_variable(name)
    return f"const {variable} = (() => {{\n{body.strip()}\nreturn {{ {exports} }};\n}})();"


def _module_variable(name: str) -> str:
    return "_" + re.sub(r"\W", "_", name)


def draw_svg(data: Mapping[str, Any]) -> str:
    """Return the picture of a page's data as SVG: the whole machine and its legend.

    `data`: those of an exported page (`page_data`), with ``view`` (of
    `nidmap.web.layout.layout`), ``theme`` and the ``sentence`` above.
    """
    import quickjs

    context = quickjs.Context()
    context.eval(_bundle_script())
    return str(context.get("draw")(msgspec.json.encode(data).decode()))


@lru_cache(maxsize=1)
def _bundle_script() -> str:
    return bundle_modules(page_modules(), DRAWING)


def paint_png(svg: str, width: int) -> bytes:
    """Return a picture as PNG, `width` pixels wide; text needs a font on this machine."""
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, width=width))


# --- what is saved: a picture, or the page with its data ------------------------------------

#: Ways to colour for which a page asks a server.
_ASKED = ("rank", "hops")

_KINDS = {"svg": "image/svg+xml", "png": "image/png", "html": "text/html; charset=utf-8"}


class MarkedRows(NamedTuple):
    """A named set of rows; `hue` counts the palette's colours."""

    name: str
    rows: Ints
    hue: int = 0


def file_name(machine: Machine, form: str) -> tuple[str, str]:
    """Return the name of an exported file, and its media type."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", machine.name)[:60] or "machine"
    return f"{name}.{form}", _KINDS[form]


def export(machine: Machine, now: Snapshot, wanted: Export) -> tuple[bytes, str]:
    """Return a file's content and its caption.

    `wanted`: what is marked and how it is shown; pattern, ranks and order are for the sentence.
    """
    marks = _marks_with_nodes(machine, wanted)
    if wanted.colour in _ASKED and not marks and not wanted.focus:
        raise UsageError(f"--colour {wanted.colour} needs marked nodes", "use --nodes LIST")
    views = [view.id for view in layout.layout(machine)]
    if wanted.view and wanted.view not in views:
        what = f"unknown view {printable(wanted.view)!r}"
        raise UsageError(what, f"choose from {', '.join(views)}")
    data = page_data(machine, now, marks, wanted)
    described = data["describe"]
    sentence = described.sentence if described else _describe_machine(machine, now)
    if wanted.format == "html":
        return export_page(machine.name, data).encode(), sentence
    shown = {"view": wanted.view or views[0], "theme": wanted.theme, "sentence": sentence}
    svg = draw_svg(data | shown)
    return svg.encode() if wanted.format == "svg" else paint_png(svg, wanted.width), sentence


def page_data(
    machine: Machine, now: Snapshot, marks: list[MarkedRows], wanted: Export
) -> dict[str, Any]:
    """Return all data of a page that has no server to ask."""
    state = now.document(machine)
    for job in state.jobs:
        job.mine = False  # somebody else may open the file
    columns = document(machine) | {"show_users": any(job.user for job in now.jobs), "live": False}
    return {
        "schema": "nidmap.export/1",
        "machine": columns | {"refresh": 0, "version": __version__, "limits": {"marks": 8}},
        "layout": layout.document(machine),
        "state": state,
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


def _describe_mark(
    machine: Machine, now: Snapshot, mark: MarkedRows, wanted: Export
) -> replies.Described:
    """Return the cost of the first mark's job, and how many of its nodes are down."""
    job = Describe(
        nodes_of(machine, mark.rows).fold(), wanted.ppn, wanted.pattern, wanted.bytes,
        order=wanted.order, slots=wanted.slots, kind=wanted.kind, links=300,
    )  # fmt: skip
    description = figures.describe(machine, now.offer(machine, wanted.partition), job)
    if down := int((now.kinds(machine)[mark.rows] == DOWN).sum()):
        description.sentence += f"; {down} of them {'is' if down == 1 else 'are'} down"
    return description


def _describe_machine(machine: Machine, now: Snapshot) -> str:
    free, compute = int(now.free(machine).sum()), int(machine.compute.sum())
    holding = f", {len(now.jobs)} jobs" if now.jobs else ""
    if now.assumed:
        return f"{compute:,} compute nodes; which of them are free is not known"
    return f"{compute:,} compute nodes, {free:,} of them free{holding}"


def _marks_with_nodes(machine: Machine, wanted: Export) -> list[MarkedRows]:
    """Return the marks that contain a node."""
    marks: list[MarkedRows] = []
    for mark in (requests.Mark(wanted.nodes), *wanted.marks):
        if mark.nodes.strip():
            rows = each_once(rows_of(machine, mark.nodes, repeats=True))
            marks.append(MarkedRows(mark.name, rows, len(marks) if mark.hue is None else mark.hue))
    return marks


def _colours_of(
    machine: Machine, now: Snapshot, marks: list[MarkedRows], wanted: Export
) -> dict[str, Any]:
    """Return how a page colours its nodes, with figures that need a server."""
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
