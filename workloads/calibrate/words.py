# SPDX-License-Identifier: Apache-2.0
"""A calibration as a file of figures, as a table, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from nidmap.placement.support.tables import align_columns
from nidmap.workloads.calibrate.result import MeasuredFigure, Result

#: Tables of a site file, in their order.
_TABLES = ("bandwidth", "latency", "sending", "stated")


def overlay_text(result: Result, about: Mapping[str, Any]) -> str:
    """Return the text of the file for ``-m MACHINE -m FILE``.

    `about`: ``machine``, ``date``, ``nodes`` (folded), ``count``, ``ppn``, ``rounds``.
    """
    where = f"{about['count']} nodes x {about['ppn']} ranks, {about['rounds']} rounds"
    lines = [
        f"# Measured by nidmap calibrate on {about['nodes']}: {where}.",
        *(f"# {line}" for line in [*about_fit(result), *result.notes]),
        "",
        "overlay = true",
        f"title = {_toml('measured ' + about['date'])}",
        f"machine = {_toml(about['machine'])}",
    ]
    source = f"nidmap calibrate, {about['date'][:10]}, {about['count']} nodes {about['nodes']}"
    for table in _TABLES:
        lines += ["", f"[{table}]"]
        for figure in result.figures:
            name, _, key = figure.key.partition(".")
            if name == table:
                lines.append(f"{key} = {_figure_toml(figure, source, unit=table == 'stated')}")
    return "\n".join(lines) + "\n"


def _figure_toml(figure: MeasuredFigure, source: str, unit: bool) -> str:
    """Return a figure as TOML, with its unit unless its table implies it."""
    entries = {
        "value": figure.value,
        "unit": figure.unit if unit and figure.unit else None,
        "mark": figure.mark,
        "source": f"{source[:250]}: {figure.what}"[:400],
        "interval": figure.interval,
    }
    parts = [f"{key} = {_toml(entry)}" for key, entry in entries.items() if entry is not None]
    return f"{{ {', '.join(parts)} }}"


def _toml(value: Any) -> str:
    """Return a word, a number with six digits, or a list as TOML, in JSON's notation."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(float(f"{value:.6g}"))


def about_fit(result: Result) -> list[str]:
    """Return remarks on the routing and on classes that were not reached."""
    off = f"{result.links.error:.1%}"
    if result.links.explains:
        lines = [f"routing {result.routing} explains the times: off by {off}"]
    else:
        lines = [
            f"routing {result.routing} does not explain the times: off by {off}; "
            "calibrate under another one: -m MACHINE,routing=..."
        ]
    if result.unreached:
        lines.append(f"not reached with these nodes: {', '.join(result.unreached)}")
    return lines


def table_text(result: Result) -> str:
    """Return the figures as text."""
    rows = [("figure", "measured", "95 %", "stated", "ratio", "what")]
    for figure in result.figures:
        stated, marked = figure.stated, "" if figure.mark == "measured" else f"{figure.mark}: "
        rows.append((
            figure.key.removeprefix("stated."),
            f"{_short_number(figure.value)} {figure.unit}".rstrip(),
            " to ".join(map(_short_number, figure.interval or ())),
            _short_number(stated) if stated else "",
            _short_number(figure.value / stated) if stated else "",
            f"{marked}{figure.what}",
        ))  # fmt: skip
    table = align_columns(rows, left=range(6))
    return "\n".join([table, *about_fit(result), *result.notes, ""])


def _short_number(value: float) -> str:
    return f"{value:.4g}"


def document(result: Result, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the calibration as JSON."""
    figures = {figure.key: asdict(figure) for figure in result.figures}
    for figure in figures.values():
        del figure["key"]
    return {
        "schema": "nidmap.calibrate/1",
        **about,
        "figures": figures,
        "routing": {
            "name": result.routing,
            "error": result.links.error,
            "explains": result.links.explains,
        },
        "unreached": list(result.unreached),
        "notes": result.notes,
    }
