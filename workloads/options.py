# SPDX-License-Identifier: Apache-2.0
"""Options that all programs share, and the code around a program's command.

`bench_callback` turns a function into the callback of a click command that

- has ``-n --repeat --time-limit --json -o``;
- outside a launch becomes ``mpiexec -n N`` with the same words;
- inside one runs as a rank, after `nidmap.workloads.world.run_guarded`.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from nidmap.placement.commands.common import ByteCount, Param
from nidmap.placement.support.writing import to_json, write_output
from nidmap.workloads import results
from nidmap.workloads.launched import become_mpiexec, current_launch
from nidmap.workloads.world import Comm, run_guarded, world


class Duration(Param):
    """Seconds, or ``90s``, ``10m``, ``2h``, ``1:30:00``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the seconds as float."""
        if isinstance(value, (int, float)):
            return float(value)
        text = str(value)
        unit = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smh]?)", text, re.ASCII)
        if unit:
            return float(unit[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[unit[2]]
        clock = re.fullmatch(r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})", text, re.ASCII)
        if clock:
            return float(int(clock[1] or 0) * 3600 + int(clock[2]) * 60 + int(clock[3]))
        return self.fail(f"{text!r} is not a time; 90, 90s, 10m, 2h or 1:30:00", param, ctx)


class Sizes(Param):
    """Sizes in bytes: ``8,64,1KiB``, or ``8-4MiB``: powers of two times the start, and the end."""

    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the sizes as a tuple of int."""
        sizes: list[int] = []
        for part in str(value).split(","):
            ends = [
                ByteCount(whole=True).convert(end.strip(), param, ctx) for end in part.split("-")
            ]
            if len(ends) > 2 or (len(ends) == 2 and not 0 < ends[0] <= ends[1]):
                self.fail(f"{part!r} is not a range of sizes", param, ctx)
            size = ends[0]
            while len(ends) == 2 and size < ends[1]:
                sizes.append(size)
                size *= 2
            sizes.append(ends[-1])
        return tuple(sizes)


class Number(Param):
    """A whole number, abbreviated if large: ``1000000``, ``1e6``, ``2^20``; or a comma list."""

    name = "number"

    def __init__(self, several: bool = False) -> None:
        self.several = several

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return an int, or a tuple of ints for a list."""
        if not isinstance(value, str):
            return value
        texts = value.split(",") if self.several else [value]
        sizes = tuple(self._one(text.strip(), param, ctx) for text in texts)
        return sizes if self.several else sizes[0]

    def _one(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d{1,15})(?:([e^])(\d{1,15}))?", text, re.ASCII)
        if match is None:
            self.fail(f"{text!r} is not a whole number; 1000000, 1e6 or 2^20", param, ctx)
        number, mark, power = int(match[1]), match[2], int(match[3] or 0)
        if power > 62:
            self.fail(f"{text!r} is too large", param, ctx)
        base, factor = (number, 1) if mark == "^" else (10, number)
        return factor * int(base**power)


class Words(Param):
    """Comma-separated words from a list, or ``all``."""

    name = "words"

    def __init__(self, known: Sequence[str]) -> None:
        self.known = tuple(known)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the words as a tuple without duplicates."""
        words = self.known if value == "all" else tuple(dict.fromkeys(str(value).split(",")))
        for word in words:
            if word not in self.known:
                names = ", ".join((*self.known, "all"))
                self.fail(f"unknown name {word!r}; choose from {names}", param, ctx)
        return words


def option_with_default(
    names: str, kind: type | Param | Sequence[str], default: Any, words: str, **more: Any
) -> Callable[..., Any]:
    """Return, as a decorator, an option whose help shows its default.

    `names`: the option, and after a blank what its parameter is called, where that differs.
    `kind`: the last: one of these words. `words`: its help.
    """
    known = click.Choice(kind) if isinstance(kind, (list, tuple)) else kind
    return click.option(
        *names.split(), type=known, default=default, show_default=True, help=words, **more
    )


@dataclass(frozen=True, slots=True)
class Common:
    """The shared options of one call."""

    ranks: int | None = None  # ``-n``; None where it was not given
    repeat: int = 10  # timed repetitions
    time_limit: float | None = None  # seconds; None for none
    as_json: bool = False
    output: str | None = None  # file for the raw samples

    @property
    def comm(self) -> Comm:
        """The world, checked against ``-n`` and the launcher."""
        return world(self.ranks)

    def show(self, document: Any, text: str) -> None:
        """Print the result on rank 0: the document with ``--json``, else the text."""
        if self.comm.Get_rank() == 0:
            write_output(to_json(document) if self.as_json else text, None)


def _shared_options(repeat: int) -> list[Callable[..., Any]]:
    """Return the shared options, as decorators."""
    count = click.IntRange(min=1)
    ranks = "Ranks to start with mpiexec; inside a launch, the number it must have."
    limit = "Time limit; what is finished by then is kept: 90, 10m, 2h, 1:30:00."
    keep = "Keep the raw samples: .csv; .svg or .png: a picture of them, plus the .csv."
    return [
        click.option("-n", "--ranks", type=count, help=ranks),
        option_with_default("--repeat", count, repeat, "Timed repetitions."),
        click.option("--time-limit", type=Duration(), help=limit),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("-o", "--output", metavar="FILE", help=keep),
    ]


def bench_callback(
    function: Callable[..., int | None] | None = None,
    *,
    repeat: int = 10,
) -> Callable[..., Any]:
    """Make a function the callback of a program's click command.

    `function`: called on every rank as ``function(common, **own_options)`` with a `Common`;
    returns the exit code, None for 0. `repeat`: default of the option.
    """
    if function is None:
        return functools.partial(bench_callback, repeat=repeat)
    main = function

    @functools.wraps(main)
    def callback(**options: Any) -> None:
        shared = options.keys() & set(Common.__slots__)
        common = Common(**{name: options.pop(name) for name in shared})
        if current_launch() is None and (common.ranks or 1) > 1:
            become_mpiexec(common.ranks or 1)
        return leave_command(run_guarded(lambda: run_rank(common, options)))

    def run_rank(common: Common, options: dict[str, Any]) -> int | None:
        results.check_name(common.output)
        try:
            return main(common, **options)
        except click.exceptions.Exit as leaving:  # the result's reader is gone
            return leaving.exit_code

    shared = reversed(_shared_options(repeat))
    return functools.reduce(lambda decorated, option: option(decorated), shared, callback)


def leave_command(code: int) -> None:
    """Exit with a code, flushing the output first."""
    sys.stdout.flush()
    if code:
        raise click.exceptions.Exit(code)
