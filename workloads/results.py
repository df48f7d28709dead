# SPDX-License-Identifier: Apache-2.0
"""Raw samples on disk or as a picture: a header with their origin, one row per sample.

They are written as CSV, the header as JSON in a comment on the first line. ``.svg`` and
``.png`` are a picture of the samples, which then are next to it as CSV. While a
program runs, the file is written anew every few seconds, so that a kill by the batch system
loses no more than these.
"""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.support.writing import write_output

#: Columns of samples that do not tell cases apart.
_BOOKKEEPING = {
    *("block", "visit", "repetition", "warmup", "phase"),
    *("min", "mean", "max", "figure", "wall"),
}

#: Inches of a panel's width, of a case's row, and of what is above and below the rows.
_WIDTH, _ROW, _FRAME = 7.0, 0.35, 1.2


def draw_samples(header: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], form: str) -> bytes:
    """Draw samples, leaving out warm-ups.

    `header`, `rows`: as `nidmap.workloads.results.save` takes them. `form`: ``svg`` or ``png``.
    """
    from nidmap.rankmap.compare import plots

    phases = _slowest_seconds(rows)
    most = max((len(cases) for cases in phases.values()), default=1)
    size = _WIDTH, max(len(phases), 1) * (_FRAME + _ROW * most)

    def build(new: Any) -> Any:
        figure = new(figsize=size, layout="tight")
        title = f"{header.get('workload', '')} on {header.get('ranks', '?')} ranks"
        figure.suptitle(printable(title, 100))
        for place, (phase, cases) in enumerate(phases.items(), 1):
            axes = figure.add_subplot(len(phases), 1, place)
            axes.boxplot(list(cases.values()), orientation="horizontal")
            axes.set_yticks(range(1, len(cases) + 1), [printable(name, 60) for name in cases])
            axes.invert_yaxis()
            axes.set_xlabel(f"seconds of {printable(phase, 40)}")
            axes.set_xlim(left=0)
        return figure

    drawn: bytes = plots.picture_bytes(form, build, {"text.parse_math": False})
    return drawn


def _slowest_seconds(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Return the slowest rank's seconds of each counted repetition, by phase and case."""
    phases: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if not row.get("warmup"):
            labels = {k: v for k, v in row.items() if k not in _BOOKKEEPING and v not in (None, "")}
            words = labels.values() if len(labels) < 2 else (f"{k}={v}" for k, v in labels.items())
            name = " ".join(map(str, words))
            phases.setdefault(row["phase"], {}).setdefault(name, []).append(float(row["max"]))
    return phases


#: Name and version of the format, at the start of every file.
SCHEMA = "nidmap.samples/1"

_PICTURES = (".svg", ".png")

#: Seconds between updates of a file while samples arrive.
EVERY = 10.0
_MARK = f"# {SCHEMA} "


def check_name(path: str | None) -> None:
    """Refuse a file name with an unknown suffix before anything is measured."""
    if path is None or path == "-" or path.endswith(".csv"):
        return
    if not path.endswith(_PICTURES):
        written = ", ".join((".csv", *_PICTURES))
        raise UsageError(f"-o {printable(path)}: samples are written as {written}")
    import_module("matplotlib")


def save(path: str, header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write samples with their header, all or nothing.

    `path`: ``.csv``; ``.svg`` or ``.png`` for a picture, and the samples next to it as CSV; ``-``
    for standard output, as CSV. `header`: what the samples are of; anything JSON can hold.
    `rows`: one a sample; columns are all names that occur, in the order of their first
    occurrence, and a sample without one leaves it empty.
    """
    kept = list(rows)
    _write_csv(path, header, kept)
    if path.endswith(_PICTURES):
        form = path.rpartition(".")[2]
        write_output(draw_samples(header, kept, form), path)


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV, with every column that occurs."""
    out = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _write_csv(path: str, header: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write samples as CSV, next to the picture if the file is one."""

    def plain(value: Any) -> Any:
        return value.tolist() if hasattr(value, "tolist") else str(value)

    name = f"{path.rpartition('.')[0]}.csv" if path.endswith(_PICTURES) else path
    line = json.dumps({"schema": SCHEMA, **header}, default=plain, separators=(",", ":"))
    write_output(f"{_MARK}{line}\n{csv_text(rows)}", name)


class Journal:
    """Finished samples, saved to disk soon after they are taken, by one rank.

    `path`: the file that the samples are in; None for none.
    """

    def __init__(self, path: str | None, header: Mapping[str, Any]) -> None:
        self.path = path
        self.header = dict(header)
        self.rows: list[dict[str, Any]] = []  # all samples so far
        self._keep()

    def _keep(self) -> None:
        """Write the current samples as CSV; a picture is drawn at the end only."""
        self._kept = time.monotonic()
        path = self.path
        if path and (os.path.isfile(path) or not os.path.exists(path)) and path != "-":
            _write_csv(path, {**self.header, "ended": "running"}, self.rows)

    def describe(self, more: Mapping[str, Any]) -> None:
        """Add to the header."""
        self.header.update(more)

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Add finished samples."""
        self.rows.extend(rows)
        if time.monotonic() - self._kept > EVERY:
            self._keep()

    def close(self, ended: str = "complete") -> None:
        """Write the final file.

        `ended`: ``complete``, or what kept it from being so; in the header.
        """
        if self.path is not None:
            save(self.path, {**self.header, "ended": ended}, self.rows)
