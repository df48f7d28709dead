# SPDX-License-Identifier: Apache-2.0
"""From a TOML file to a checked `Site` or `Overlay`; faults are reported by file, line and key."""

from __future__ import annotations

import re
import sys
from typing import Any, TypeVar, get_type_hints

import msgspec

from nidmap.placement.errors import SiteError, at_line, schema_fault
from nidmap.placement.sites.overlay import Overlay
from nidmap.placement.sites.schema import Config, OverlayConfig
from nidmap.placement.sites.shared import WrongFigure, line_of
from nidmap.placement.sites.site import Site

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")

#: Site files are a few kB; anything larger is something else.
MAX_BYTES = 1_000_000


def read_site(source: str) -> Site | Overlay:
    """Read, check and lay out a site file, or a file of figures alone."""
    return parse_site(_read_text(source), source)


def read_tables(source: str) -> dict[str, Any]:
    """Read a TOML file without checking it."""
    return _parse_tables(_read_text(source), source)


def _read_text(source: str) -> str:
    """Return the text of a file, refusing what is obviously not a site file."""
    try:
        with open(source, "rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SiteError(f"{at_line(source)}: cannot read the site file: {reason}") from None
    where = at_line(source)
    if len(raw) > MAX_BYTES:
        raise SiteError(f"{where}: larger than {MAX_BYTES} bytes, so it is not a site file")
    if not raw.strip():
        raise SiteError(f"{where}: is empty", "nidmap site show shaheen2 prints an example")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SiteError(f"{where}:{line}: not text in UTF-8, so it is not a site file") from None


def parse_site(text: str, source: str) -> Site | Overlay:
    """Return the site that a TOML text describes, or its figures if it describes none.

    A text is an overlay where it says ``overlay = true``, or states figures
    and neither a network nor nodes.
    """
    tables = _parse_tables(text, source)
    try:
        figures = {"bandwidth", "sending", "latency"} & tables.keys()
        if "overlay" in tables or (figures and not {"network", "nodes"} & tables.keys()):
            return Overlay(_convert_tables(tables, OverlayConfig), source, text)
        site = Site(_convert_tables(tables, Config), source)
        site.layout, site.hardware  # noqa: B018  # laid out, which checks the figures together
    except WrongFigure as wrong:
        where = at_line(source, line_of(text, wrong.key))
        raise SiteError(f"{where}: {wrong.key}: {wrong.text}") from None
    return site


def _parse_tables(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise SiteError(f"{at_line(source)}: nested too deeply for a site file") from None
    except ValueError as error:
        raise _syntax_error(str(error), text, source) from None


def _syntax_error(message: str, text: str, source: str) -> SiteError:
    """Return a TOML error on one line with file and line number."""
    match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
    words = message[: match.start()] if match else message
    line = int(match[1]) if match and match[1] else text.count("\n") + 1
    where = at_line(source, line if match else 0)
    return SiteError(f"{where}: not TOML: {words}")


# --- what msgspec says, with the key named ----------------------------------


def _convert_tables(tables: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(tables, kind)
    except msgspec.ValidationError as error:
        key, text = _explain_fault(tables, *schema_fault(error))
    raise WrongFigure(key, text)


def _explain_fault(tables: dict[str, Any], path: str, words: str) -> tuple[str, str]:
    """Return the dotted key of a fault, and its description."""
    key = _follow_path(tables, re.findall(r"[A-Za-z_]\w*|\d+|\.\.\.", path))
    extra = re.search(r"(?:unknown|required) field `(.{1,80})`", words, re.DOTALL)
    if extra:
        key = f"{key}.{extra[1]}" if key else extra[1]
    return key, _plain_words(words, key)


def _follow_path(tables: dict[str, Any], keys: list[str]) -> str:
    """Follow msgspec's path through the tables, naming tables in a list by their name."""
    value: Any = tables
    names: list[str] = []
    for key in keys:
        name = _first_faulty(value, names) if key == "..." else key
        if name.isdigit() and isinstance(value, list):
            value = value[int(name)] if int(name) < len(value) else None
            named = value.get("name") if isinstance(value, dict) else None
            name = named if isinstance(named, str) and named else name
        else:
            value = value.get(name) if isinstance(value, dict) else None
        names.append(name)
    return ".".join(names)


def _first_faulty(value: Any, names: list[str]) -> str:
    """Return the key of the first entry of a free-form table that is not a figure.

    msgspec writes ``[...]`` for any key of a mapping; the entries are tried
    one by one to learn which it was.
    """
    entry = get_type_hints(Config, include_extras=True)[names[0]] if names else dict[str, Any]
    for key, item in value.items() if isinstance(value, dict) else ():
        try:
            msgspec.convert({key: item}, entry)
        except msgspec.ValidationError:
            return str(key)
    return "…"


def _plain_words(words: str, key: str) -> str:
    """Rephrase msgspec's message in terms of a site file."""
    if "unknown field" in words:
        return "no such key here"
    if "missing required field" in words:
        return "missing"
    match = re.fullmatch(r"invalid (?:enum )?value (.*)", words, re.DOTALL)
    if match:
        choices = (_CHOICES[name] for name in reversed(key.split(".")) if name in _CHOICES)
        expected = next(choices, "another value")
        return f"{match[1]} is not possible; expected {expected}"
    return words.replace("an object", "a table { value = …, mark = …, source = … }")


#: What may be at a key that has a fixed set of values.
_CHOICES = {
    "mark": "measured, published or assumed",
    "fabric": "one of aries, gemini, infiniband, infiniband-dragonfly+, slingshot",
    "wiring": "one of aligned, consecutive, same-chassis",
    "scheduler": "one of slurm, pbs, alps",
    "launcher": "one of srun, aprun, mpiexec, mpirun",
}
