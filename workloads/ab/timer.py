# SPDX-License-Identifier: Apache-2.0
"""The result of one launch: what the program reports, or the wall time of the launch."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nidmap.placement.errors import ParseError, UsageError, printable

#: Seconds of each unit of time.
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}

#: The last line of programs of ``nidmap bench``, and how their commands are recognised.
_BENCH_TIME = re.compile(r"^nidmap: (?:communication|total) took ([0-9.e+-]+) s$", re.MULTILINE)
_BENCH = re.compile(r"(?:^|[ /])nidmap bench ")

#: Number of bytes at the end of an output that are searched.
_MOST_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Timer:
    """The source of a launch's result."""

    # Its first group is the figure, its last match counts; None means wall time
    regex: re.Pattern[str] | None = None
    unit: str = "s"  # one of `UNITS`; any word for a rate
    higher_is_better: bool = False  # True for a rate, False for a time
    file: str | None = None  # where the program writes it; None means it prints it

    def written(self) -> tuple[str, int]:
        """Return the file's content before a launch, and since when; ('', 0) if there is none."""
        if not self.file or not os.path.exists(self.file):
            return "", 0
        return _end_of(self.file), os.stat(self.file).st_mtime_ns

    def read(self, paths: Sequence[str], before: tuple[str, int] = ("", 0)) -> float | None:
        """Return the result as the program reports it; None if it is not expected to.

        `paths`: files with what it printed; the first that has a match counts. `before`: what was
        `written` before the launch: what it has added since is looked at, or all of a file that
        it has written anew.
        """
        if self.regex is None:
            return None
        for path in paths if self.file is None else (self.file,):
            text = _end_of(path)
            anew = self.file is not None and self.written()[1] != before[1] and text == before[0]
            new = text if anew else text.removeprefix(before[0])
            *_, last = (None, *self.regex.finditer(new))
            if last is not None:
                return _parse_figure(last[1], path)
        if self.file is not None:
            raise ParseError(
                self.file, 0, "nothing that the program wrote to it matches --time-regex"
            )
        raise ParseError(
            paths[0], 0, "nothing in it matches --time-regex", f"nor in {printable(paths[-1])}"
        )

    def cost(self, figure: float) -> float:
        """Return a comparable cost: seconds, or the inverse of a rate."""
        return 1.0 / figure if self.higher_is_better else figure * UNITS[self.unit]

    def document(self) -> dict[str, Any]:
        """Return the timer as the header of a samples file stores it."""
        kind = "rate" if self.higher_is_better else "time"
        return {
            "regex": self.regex.pattern if self.regex else None,
            "unit": self.unit,
            "higher_is_better": self.higher_is_better,
            "file": self.file,
            "words": f"the program's own {kind}" if self.regex else "wall time of the launch",
        }


def timer_of(
    regex: str | None,
    unit: str | None,
    file: str | None = None,
    command: Sequence[str] = (),
) -> Timer:
    """Return the timer that the options request; programs of ``nidmap bench`` have their own."""
    if regex is None:
        if unit or file:
            raise UsageError("--unit and --time-file need --time-regex")
        return Timer(_BENCH_TIME if _BENCH.search(" ".join(command)) else None)
    try:
        compiled = re.compile(regex, re.MULTILINE)
    except re.error as error:
        raise UsageError(f"--time-regex {printable(regex, 60)}: {error}") from None
    if not compiled.groups:
        raise UsageError(
            f"--time-regex {printable(regex, 60)} has no group",
            "put the number in parentheses: 'Loop time of ([0-9.]+)'",
        )
    rate = "/" in (unit or "")
    if not rate and unit not in (None, *UNITS):
        raise UsageError(
            f"--unit {printable(unit or '', 20)} is neither a unit of time ({', '.join(UNITS)})"
            " nor of a rate",
            "a rate is an amount per time: ns/day, steps/s, GF/s",
        )
    return Timer(compiled, unit or "s", rate, file)


def _parse_figure(text: str | None, path: str) -> float:
    """Parse the number that an expression matched; Fortran writes exponents with D."""
    try:
        figure = float((text or "").upper().replace("D", "E"))
    except ValueError:
        figure = math.nan
    if not 0 < figure < math.inf:
        raise ParseError(
            path, 0, f"--time-regex finds {printable(text or 'nothing', 40)}, not a number above 0"
        )
    return figure


def _end_of(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _MOST_BYTES))
            return stream.read().decode("utf-8", "replace")
    except OSError as error:
        raise ParseError(path, 0, f"cannot be read: {error.strerror or error}") from None
