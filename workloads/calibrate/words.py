"""A calibration as a file of figures, as a table, and as JSON takes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from placement.support.tables import align_columns
from workloads.calibrate.result import MeasuredFigure, Result

#: Tables of a site file, in their order.
_TABLES = ("bandwidth", "latency", "sending", "stated")


def overlay_text(result: Result, about: Mapping[str, Any]) -> str:
    """Return the file that ``-m MACHINE -m FILE`` takes.

    Parameters
    ----------
    result : Result
    about : mapping
        ``machine``, ``date``, ``nodes`` (folded), ``count``, ``ppn``, ``rounds``.
    """
    where = f"{about['count']} nodes x {about['ppn']} ranks, {about['rounds']} rounds"
    lines = [
        f"# Measured by nidmap calibrate on {about['nodes']}: {where}.",
        *(f"# {line}" for line in about_fit(result)),
        *(f"# {note}" for note in result.notes),
        "",
        "overlay = true",
        f"title = {_text_toml('measured ' + about['date'])}",
        f"machine = {_text_toml(about['machine'])}",
    ]
    source = f"nidmap calibrate, {about['date'][:10]}, {about['count']} nodes {about['nodes']}"
    for table in _TABLES:
        lines += ["", f"[{table}]"]
        lines += [
            f"{one.key.partition('.')[2]} = {_figure_toml(one, source)}"
            for one in result.figures
            if one.key.startswith(f"{table}.")
        ]
    return "\n".join(lines) + "\n"


def _figure_toml(one: MeasuredFigure, source: str) -> str:
    """Return a figure as TOML."""
    told = f"{source[:250]}: {one.how}"[:400]
    parts = [f"value = {_value_toml(one.value)}"]
    if one.unit and one.key.startswith("stated."):
        parts.append(f"unit = {_text_toml(one.unit)}")
    parts += [f'mark = "{one.mark}"', f"source = {_text_toml(told)}"]
    if one.low is not None and one.high is not None:
        parts.append(f"interval = [{_value_toml(one.low)}, {_value_toml(one.high)}]")
    return f"{{ {', '.join(parts)} }}"


def _value_toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text_toml, value))}]"
    return repr(float(f"{value:.6g}"))


def _text_toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def about_fit(result: Result) -> list[str]:
    """Return what is to be said of routings and of classes that were not reached."""
    best, names = result.network.best, result.network.alike
    if not names:
        lines = [f"no routing explains the times: {best.routing} is off by {best.error:.0%}"]
    else:
        lines = [f"routing {' or '.join(names)}: off by {best.error:.1%} in the mean"]
        others = [fit for fit in result.network.fits if fit.routing not in names]
        lines[0] += "".join(f"; {fit.routing} by {fit.error:.1%}" for fit in others)
    if len(names) > 1:
        lines.append(f"{', '.join(names)} cannot be told apart on these nodes")
    if result.unreached:
        lines.append(f"not reached with these nodes: {', '.join(result.unreached)}")
    return lines


def table_text(result: Result) -> str:
    """Return the figures for a person."""
    head = ("figure", "measured", "95 %", "stated", "ratio", "what")
    rows = [
        (
            one.key.removeprefix("stated."),
            f"{_short_number(one.value)} {one.unit}".rstrip(),
            f"{_short_number(one.low)} to {_short_number(one.high)}"
            if one.low and one.high
            else "",
            _short_number(one.stated) if one.stated else "",
            f"{one.value / one.stated:.4g}" if one.stated else "",
            one.how if one.mark == "measured" else f"{one.mark}: {one.how}",
        )
        for one in result.figures
    ]
    table = align_columns([head, *rows], left=range(6))
    return "\n".join([table, *about_fit(result), *result.notes, ""])


def _short_number(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:.4g}"


def document(result: Result, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the calibration as JSON takes it."""
    return {
        "schema": "nidmap.calibrate/1",
        **about,
        "figures": {
            one.key: {
                "value": one.value,
                "unit": one.unit,
                "mark": one.mark,
                "interval": None if one.low is None or one.high is None else [one.low, one.high],
                "stated": one.stated,
                "what": one.how,
            }
            for one in result.figures
        },
        "routings": {fit.routing: fit.error for fit in result.network.fits},
        "routing": list(result.network.alike),
        "unreached": list(result.unreached),
        "notes": result.notes,
    }
