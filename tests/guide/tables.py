# SPDX-License-Identifier: Apache-2.0
"""Tables of the guide that are made from the registries.

They stand between ``<!-- table: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module

import nidmap  # noqa: F401  # tells the front door where strategies are
from nidmap.placement import emit, errors, exports, planners, readers
from nidmap.placement.network import ROUTINGS
from nidmap.rankmap import orders
from nidmap.rankmap.emit import FORMATS as ORDER_FORMATS

_TABLE = re.compile(r"<!-- table: ([\w-]+) -->\n.*?<!-- end -->", re.S)

#: What a registry cannot say in a docstring: `auto` is found by the front door.
_AUTO = "Choose nodes and rank order together, by the least predicted time for `--pattern`."


def _head(thing: object) -> str:
    """Return the first line of a docstring as a cell."""
    return _cell((thing.__doc__ or "").split("\n")[0])


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|").rstrip(".")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [list(head)]
    lines = [f"| {' | '.join(cells[0])} |", "|" + "---|" * len(cells[0])]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def dumps() -> str:
    """Return what each reader reads, and what that tells."""
    rows = (
        _head(import_module(readers.find(name).read.__module__)).split(": ", 1)
        for name in readers.BUNDLED
    )
    return _table(("format", "what it tells"), rows)


def strategies() -> str:
    """Return each planner with the machines it applies to."""

    def rows() -> Iterator[tuple[str, str, str]]:
        for name in planners.names():
            words = _AUTO.rstrip(".") if name == "auto" else _head(planners.find(name))
            needs = planners._needs.get(name, planners.Needs())
            where = ", ".join(needs.kinds) or (needs.switches and f"topology/{needs.switches}")
            yield f"`{name}`", words, where or "all"

    return _table(("`--strategy`", "what it does", "on"), rows())


def rank_orders() -> str:
    """Return each order of ranks."""
    rows = ((f"`{name}`", _head(orders.find(name))) for name in orders.names())
    return _table(("`--strategy`", "what it does"), rows)


def order_formats() -> str:
    """Return each format of a rank order with the file names that choose it."""
    rows = (
        (f"`{name}`", _cell(form.words), ", ".join(f"`{x}`" for x in form.files.split()) or "–")
        for name, form in ORDER_FORMATS.items()
    )
    return _table(("`--format`", "holds", "chosen by the file's name"), rows)


def node_formats() -> str:
    """Return each format of a plan."""

    def words(name: str, form: Callable[..., str]) -> str:
        if name == "exclude":
            return "an sbatch header that excludes what lies outside the plan's groups"
        text = _head(form).removeprefix("Return ")
        return text.split(":")[0] if name == "sbatch" else text

    rows = ((f"`{name}`", words(name, form)) for name, form in emit.FORMATS.items())
    return _table(("`--format`", "holds"), rows)


def export_formats() -> str:
    """Return the formats of a machine's export."""
    return ", ".join(f"`{name}`" for name in exports.FORMATS)


def routings() -> str:
    """Return the routings of each kind of network."""
    rows = ((kind, ", ".join(f"`{name}`" for name in names)) for kind, names in ROUTINGS.items())
    return _table(("network", "`routing=`; the first where nothing else is known"), rows)


def exit_codes() -> str:
    """Return the exit codes that errors carry, and those that are no error of ours."""
    classes = (
        *(errors.PlanError, errors.UsageError, errors.NidmapError),
        *(errors.LaunchError, errors.OutputError),
    )
    words = {
        0: "yes, done",
        1: "the answer is no: too few free nodes, an occupied list, `check` found faults",
        2: "usage: options or patterns that do not fit together, an extra that is not installed",
        3: "bad input: unreadable, unknown or empty; the line says file:line",
        4: "Slurm or a launcher is missing, failed or did not answer in time",
        5: "the output cannot be written",
        70: "a bug in nidmap; `NIDMAP_DEBUG=1` shows where",
        125: "`run --strict` or `record --strict` refused to start the program",
        130: "interrupted by Ctrl-C",
    }
    assert {one.exit_code for one in classes} <= words.keys()
    return _table(("code", "meaning"), ((str(code), text) for code, text in words.items()))


TABLES = {
    "dumps": dumps,
    "exit-codes": exit_codes,
    "export-formats": export_formats,
    "node-formats": node_formats,
    "order-formats": order_formats,
    "orders": rank_orders,
    "routings": routings,
    "strategies": strategies,
}


def rewritten(page: str) -> str:
    """Return a page with its tables as the registries are now."""
    return _TABLE.sub(lambda m: f"<!-- table: {m[1]} -->\n\n{TABLES[m[1]]()}\n\n<!-- end -->", page)


def named(page: str) -> list[str]:
    """Return the tables that a page has."""
    return _TABLE.findall(page)
