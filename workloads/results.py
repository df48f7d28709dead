"""Raw samples on disk and as a picture: a header that says their origin, one row a sample.

They are written as CSV, the header as JSON in a comment on the first line. ``.svg`` and
``.png`` are a picture of the samples, which then stand beside it as CSV. While a
program runs, each finished sample goes into ``FILE.part``, as a line of JSON behind
one with the header, so that a kill or a time limit of the batch system loses none of them.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from placement.commands.common import write_output
from placement.errors import OutputError, ParseError, UsageError, printable
from placement.support.lazy import lazy

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")
plots = lazy("rankmap.compare.plots")

__all__ = [
    "SCHEMA",
    "Journal",
    "Run",
    "check_name",
    "csv_text",
    "draw_samples",
    "load",
    "read_run",
    "save",
]


#: Columns of samples that do not tell cases apart.
_BOOKKEEPING = {
    *("launch", "block", "visit", "repetition", "warmup", "phase"),
    *("min", "mean", "max", "figure", "wall"),
}

#: Inches of a panel's width, of a case's row, and of what stands above and below the rows.
_WIDTH, _ROW, _FRAME = 7.0, 0.35, 1.2


def draw_samples(header: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], form: str) -> bytes:
    """Return a picture of samples, warm-ups left out.

    Parameters
    ----------
    header, rows
        As `workloads.results.save` takes them.
    form : str
        ``svg`` or ``png``.

    Returns
    -------
    bytes
    """
    phases = _seconds(rows)
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

    drawn: bytes = plots.picture(form, build, {"text.parse_math": False})
    return drawn


def _seconds(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Return by phase and case the slowest rank's seconds of the repetitions that count.

    Examples
    --------
    >>> _seconds([{"arm": "plan", "warmup": 0, "phase": "total", "max": 0.25, "block": 3}])
    {'total': {'plan': [0.25]}}
    """
    phases: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if not row.get("warmup"):
            labels = {k: v for k, v in row.items() if k not in _BOOKKEEPING and v not in (None, "")}
            words = labels.values() if len(labels) < 2 else (f"{k}={v}" for k, v in labels.items())
            name = " ".join(map(str, words))
            phases.setdefault(row["phase"], {}).setdefault(name, []).append(float(row["max"]))
    return phases


#: Name and version of the shape, first thing in every file.
SCHEMA = "nidmap.samples/1"

_PICTURES = (".svg", ".png")
_MARK = f"# {SCHEMA} "


@dataclass(frozen=True, slots=True)
class Run:
    """The samples of one file: of one launch, or of several that were pooled before.

    Attributes
    ----------
    source : str
        For messages.
    header : dict
    rows : list of dict
        One a sample.
    """

    source: str
    header: dict[str, Any]
    rows: list[dict[str, Any]]

    @property
    def compares(self) -> bool:
        """Whether it is of an A/B measurement."""
        return "arms" in self.header


def check_name(path: str | None) -> None:
    """Refuse a file name whose suffix is none of ours, before anything is measured.

    Raises
    ------
    UsageError
    """
    if path is None or path == "-" or path.endswith(".csv"):
        return
    if not path.endswith(_PICTURES):
        written = ", ".join((".csv", *_PICTURES))
        raise UsageError(f"-o {printable(path)}: samples are written as {written}")
    import_module("matplotlib")


def save(path: str, header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write samples with their header; the file is whole or not there.

    Parameters
    ----------
    path : str
        ``.csv``; ``.svg`` or ``.png`` for a picture, and the samples beside it as CSV; ``-``
        for standard output, as CSV.
    header : mapping
        What the samples are of; anything JSON can hold.
    rows : iterable of mapping
        One a sample; columns are all names that occur, in the order of their
        first occurrence, and a sample without one leaves it empty.

    Raises
    ------
    OutputError
        Where it cannot be written.

    Examples
    --------
    >>> import os, tempfile
    >>> name = os.path.join(tempfile.mkdtemp(), "run.csv")
    >>> save(name, {"workload": "sort"}, [{"phase": "total", "max": 0.25}])
    >>> header, frame = load(name)
    >>> header["workload"], frame["max"].tolist()
    ('sort', [0.25])
    """
    kept = list(rows)
    stem, dot, form = path.rpartition(".")
    drawn = f"{dot}{form}" in _PICTURES
    text = f"{_MARK}{_line({'schema': SCHEMA, **header})}{csv_text(kept)}"
    write_output(text, f"{stem}.csv" if drawn else path)
    if drawn:
        write_output(draw_samples(header, kept, form), path)


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV, with all columns that occur.

    Examples
    --------
    >>> csv_text([{"a": 1}, {"b": 2}])
    'a,b\\n1,\\n,2\\n'
    """
    out = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _line(entry: Mapping[str, Any]) -> str:
    def plain(value: Any) -> Any:
        return value.tolist() if hasattr(value, "tolist") else str(value)

    return json.dumps(entry, default=plain, separators=(",", ":")) + "\n"


def read_run(path: str, source: str = "") -> Run:
    """Return a file of samples with its rows as plain values; see `load`."""
    header, frame = load(path)
    return Run(source or path, header, cast("list[dict[str, Any]]", frame.to_dict("records")))


def load(path: str) -> tuple[dict[str, Any], pd.DataFrame]:
    """Read samples that `save` or a `Journal` wrote.

    A last line that a kill cut off is left out.

    Returns
    -------
    dict
        The header.
    pandas.DataFrame
        One row a sample.

    Raises
    ------
    ParseError
        Where it is not a file of samples.
    """
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as stream:
            text = stream.read()
    except OSError as error:
        raise ParseError(path, 0, f"cannot be read: {error.strerror or error}") from None
    if text.startswith(_MARK):
        return _from_csv(text, path)
    if text.startswith("{") and "\n" in text:
        return _from_lines(text, path)
    raise ParseError(path, 1, "no samples of nidmap bench", "its -o option writes them")


def _object(text: str, path: str, line: int, schema: bool = False) -> dict[str, Any]:
    """Return an object in JSON: a sample, or with `schema` a header."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ParseError(path, line, f"not a {'header' if schema else 'sample'} in JSON")
    if schema and found.get("schema") != SCHEMA:
        raise ParseError(path, line, f"the header's schema is not {SCHEMA}")
    return found


def _from_csv(text: str, path: str) -> tuple[dict[str, Any], pd.DataFrame]:
    first, _, rest = text.partition("\n")
    header = _object(first.removeprefix(_MARK), path, 1, schema=True)
    try:
        return header, pd.read_csv(io.StringIO(rest)) if rest.strip() else pd.DataFrame()
    except (ValueError, pd.errors.ParserError) as error:
        raise ParseError(path, 2, printable(str(error), 120)) from None


def _from_lines(text: str, path: str) -> tuple[dict[str, Any], pd.DataFrame]:
    lines = text.split("\n")[:-1]  # what follows the last newline is nothing, or cut off
    header = _object(lines[0], path, 1, schema=True)
    rows = [_object(line, path, number) for number, line in enumerate(lines[1:], 2)]
    for row in rows:
        header.update(row if "schema" in row else {})  # what became known on the way
    return header, pd.DataFrame([row for row in rows if "schema" not in row])


class Journal:
    """Finished samples, on disk as soon as they are there; kept by one rank.

    Parameters
    ----------
    path : str or None
        The file that the samples will be in at the end; None for none.
    header : mapping
        See `save`.

    Attributes
    ----------
    rows : list of dict
        All samples so far.

    Raises
    ------
    OutputError
        Where the file beside it cannot be made.
    """

    def __init__(self, path: str | None, header: Mapping[str, Any]) -> None:
        self.path = path
        self.header = dict(header)
        self.rows: list[dict[str, Any]] = []
        self._part = "" if path in (None, "-") else f"{path}.part"
        self._stream: io.TextIOWrapper | None = None
        if self._part:
            with self._writing():
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._part)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                self._stream = open(os.open(self._part, flags, 0o666), "w", encoding="utf-8")  # noqa: SIM115  # closed by close
            self._put({"schema": SCHEMA, **self.header, "ended": "running"})

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(f"cannot write {self._part}: {error.strerror or error}") from None

    def _put(self, entry: Mapping[str, Any]) -> None:
        if self._stream is not None:
            with self._writing():
                self._stream.write(_line(entry))
                self._stream.flush()

    def describe(self, more: Mapping[str, Any]) -> None:
        """Add to the header."""
        self.header.update(more)
        self._put({"schema": SCHEMA, **more})

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Keep finished samples."""
        for row in rows:
            self.rows.append(row)
            self._put(row)

    def close(self, ended: str = "complete") -> None:
        """Write the file itself, and take away the one beside it.

        Parameters
        ----------
        ended : str
            ``complete``, or what kept it from being so; in the header.
        """
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self.path is not None:
            save(self.path, {**self.header, "ended": ended}, self.rows)
        if self._part:
            with contextlib.suppress(OSError):
                os.unlink(self._part)
