"""The page: its shell, the file that holds everything and opens from disk, and pictures of it.

A browser refuses ES modules from ``file://``, so that the exported file has
one script: each module of ``static/`` in a function of its own, in the order
in which they need each other. How modules may be written for that is said in
`bundle_modules`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from placement.errors import NidmapError
from placement.support.lazy import lazy

if TYPE_CHECKING:
    import quickjs
    import resvg_py
else:
    quickjs, resvg_py = lazy("quickjs"), lazy("resvg_py")

__all__ = ["bundle_modules", "draw_svg", "export_page", "page_modules", "page_shell", "paint_png"]

_HOME = Path(__file__).parent
STATIC = _HOME / "static"

#: The module that everything starts from, and the style sheet.
ENTRY, STYLE = "main.js", "page.css"
#: The module that draws, without a browser, what an exported page would show (QuickJS runs it).
DRAWING = "headless.js"

_IMPORT = re.compile(
    r"^import\s+\{(?P<names>[^}]*)\}\s+from\s+[\"']\./(?P<file>[\w.\-]+\.js)[\"'];[ \t]*$", re.M
)
_EXPORT = re.compile(
    r"^export\s+(?P<head>(?:async\s+)?function|const|class)\s+(?P<name>[\w$]+)", re.M
)
_LEFT = re.compile(r"^(?:import|export)\b.*$", re.M)


def page_shell(title: str) -> str:
    """Return the page as it is served: no data, no script and no style in it."""
    return _render_page(
        title=title,
        export=False,
        scripts=needed_modules(page_modules()),
        head_assets=_trust_html(f'<link rel="stylesheet" href="static/{STYLE}">'),
        body_assets=_trust_html(f'<script type="module" src="static/{ENTRY}"></script>'),
    )


def export_page(title: str, data: Mapping[str, Any]) -> str:
    """Return the page with its style, its script and its data in it.

    Parameters
    ----------
    title : str
    data : mapping
        What the page finds in the element ``nidmap-data``.
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
        scripts=(),
        head_assets=_trust_html(head),
        body_assets=_trust_html(body),
    )


def page_modules() -> dict[str, str]:
    """Return the texts of the page's modules by file name."""
    return {path.name: path.read_text(encoding="utf-8") for path in STATIC.glob("*.js")}


def _trust_html(text: str) -> Markup:
    """Mark our own files' text as HTML; what others wrote is in it as `_inert_json` JSON only."""
    return Markup(text)  # noqa: S704 - see above


def _inert_json(data: Mapping[str, Any]) -> str:
    """Return data as JSON that cannot end the element it stands in."""
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

    Parameters
    ----------
    modules : mapping of str to str
        Texts by file name; those that `entry` does not need are left out.
    entry : str

    Raises
    ------
    NidmapError
        A module that is not written so, or that is missing.

    Examples
    --------
    >>> print(bundle_modules({"main.js": 'import { a } from "./x.js";\\na();',
    ...               "x.js": "export function a() {}"}))
    (() => {
    "use strict";
    const _x_js = (() => {
    function a() {}
    return { a };
    })();
    const _main_js = (() => {
    const { a } = _x_js;
    a();
    return {  };
    })();
    })();
    <BLANKLINE>
    """
    parts = [_as_function(name, modules[name]) for name in needed_modules(modules, entry)]
    return "\n".join(["(() => {", '"use strict";', *parts, "})();", ""])


def needed_modules(modules: Mapping[str, str], entry: str = ENTRY) -> list[str]:
    """Return the modules that one needs, itself the last, each behind those that it imports."""
    ordered: list[str] = []
    _visit_module(modules, entry, ordered, [])
    return ordered


def _visit_module(modules: Mapping[str, str], name: str, done: list[str], way: list[str]) -> None:
    """Add a module behind those that it needs."""
    if name in done:
        return
    if name in way:
        raise NidmapError(f"{' -> '.join([*way, name])}: modules in a circle")
    if name not in modules:
        raise NidmapError(f"{(way or ['the page'])[-1]} imports {name}, which is not there")
    for match in _IMPORT.finditer(modules[name]):
        _visit_module(modules, match.group("file"), done, [*way, name])
    done.append(name)


def _as_function(name: str, text: str) -> str:
    """Return a module as a function that returns what it exports."""
    exports = ", ".join(match.group("name") for match in _EXPORT.finditer(text))
    body = _IMPORT.sub(lambda m: f"const {{{m['names']}}} = {_module_variable(m['file'])};", text)
    body = _EXPORT.sub(r"\g<head> \g<name>", body)
    left = _LEFT.search(body)
    if left is not None:
        raise NidmapError(f"{name}: {left.group()[:80]!r} cannot be bundled")
    variable = _module_variable(name)
    return f"const {variable} = (() => {{\n{body.strip()}\nreturn {{ {exports} }};\n}})();"


def _module_variable(name: str) -> str:
    return "_" + re.sub(r"\W", "_", name)


def draw_svg(data: Mapping[str, Any]) -> str:
    """Return what a page of these data shows, as SVG: the whole machine and its legend.

    Parameters
    ----------
    data : mapping
        Those of an exported page (`web.export.page_data`), with ``view`` (of
        `web.layout.layout`), ``theme`` and the ``sentence`` above.
    """
    context = quickjs.Context()
    context.eval(_bundle_script())
    return str(context.get("draw")(msgspec.json.encode(data).decode()))


@lru_cache(maxsize=1)
def _bundle_script() -> str:
    return bundle_modules(page_modules(), DRAWING)


def paint_png(svg: str, width: int) -> bytes:
    """Return a picture as PNG, `width` pixels wide; its words need a font on this machine."""
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, width=width))
