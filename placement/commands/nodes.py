"""``nidmap nodes``: fold, expand and look up node lists."""

from __future__ import annotations

import functools
import re
import sys
from typing import TYPE_CHECKING, Any, ClassVar

import click

from placement.commands.common import (
    LazyGroup,
    machine_from,
    machine_option,
    report_options,
    to_json,
    write_output,
)
from placement.errors import ParseError, UsageError, printable
from placement.support.quantities import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement.machine import Machine
    from placement.nodelist import NodeList
    from placement.support.array_types import Ints

__all__ = ["nodes", "nodes_document"]

_NID = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)

#: Columns of `nodes info` that are left out where the machine knows nothing of them.
_OPTIONAL = ("cname", "mode", "sockets", "cores", "memory_mb", "nics", "gpus", "features")


class _Nodes(LazyGroup):
    """The group, with its commands of other modules loaded only when asked for."""

    lazy: ClassVar = {
        "free": (
            "placement.commands.free:free",
            "List the nodes that Slurm or a dump says are free.",
        )
    }


@click.group(cls=_Nodes)
def nodes() -> None:
    """Fold, expand and look up node lists.

    A LIST is a folded list, names, NIDs, or what squeue, sinfo, scontrol, PBS
    or a host file says; '-' is standard input, @FILE or the path of a file is
    read. A word that is also the name of a file here means the file.

    \b
    nidmap nodes fold nid00045 nid00012 nid00013
    squeue -h -j 4711 -o %N | nidmap nodes expand -
    nidmap nodes info -m shaheen2 nid[00012-00015]
    """


def _lists(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument that names lists."""
    return click.argument("lists", nargs=-1, metavar="[LIST|FILE|-]...")(command)


def _arranging(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that fold and expand share, and arrange what they name by them."""

    @functools.wraps(command)
    def run_on_names(
        lists: tuple[str, ...], specs: tuple[str, ...], in_order: bool, unique: bool, **options: Any
    ) -> None:
        machine = machine_from(specs) if specs else None
        names = _read_lists(lists, machine)
        names = names.unique if unique else names
        command(names.sorted() if in_order else names, machine, **options)

    by_number = click.option("--sort", "in_order", is_flag=True, help="Sort, numbers by value.")
    once = click.option("--unique", is_flag=True, help="Each node once.")
    return _lists(machine_option(by_number(once(report_options(run_on_names)))))


@nodes.command()
@_arranging
def fold(names: NodeList, machine: Machine | None, as_json: bool, output: str | None) -> None:
    """Fold node lists into one as Slurm writes it, keeping the order.

    Without a LIST, standard input is read. Bare integers are NIDs: 45-47 is
    nid[00045-00047], or with -m the machine's own names; with -m cnames, whole
    cabinets, chassis and blades (c0-0c1) and indices (#0-63) are resolved too.

    \b
    nidmap nodes fold nid00045 nid00012 nid00013        # nid[00045,00012-00013]
    nidmap nodes fold --sort --unique hosts.txt
    nidmap nodes fold -m shaheen2 c0-0c1
    """
    text = to_json(_document(names)) if as_json else names.fold() + "\n"
    write_output(text, output)


@nodes.command()
@_arranging
@click.option(
    "--format",
    "form",
    type=click.Choice(["lines", "comma", "nids", "cnames"]),
    default="lines",
    show_default=True,
    help="One a line, or with commas; nids and cnames: one a line.",
)
def expand(
    names: NodeList, machine: Machine | None, as_json: bool, output: str | None, form: str
) -> None:
    """Write each node of node lists, keeping order and repeats.

    Without a LIST, standard input is read. Bare integers are NIDs, as in
    `nodes fold`. Without -m the NIDs are the numbers that the names end in;
    cnames need -m.

    \b
    nidmap nodes expand nid[00045,00012]
    nidmap nodes expand --format comma 45-47
    nidmap nodes expand -m daint.xtprocadmin --format cnames nid[00012-00015]
    """
    if form == "cnames" and machine is None:
        raise click.UsageError("--format cnames needs a machine: use -m SPEC")
    if as_json:
        write_output(to_json(_document(names)), output)
        return
    words = list(names) if form in ("lines", "comma") else _words(names, form, machine)
    text = ",".join(words) + "\n" if form == "comma" else "".join(f"{word}\n" for word in words)
    write_output(text, output)


def _words(names: NodeList, form: str, machine: Machine | None) -> list[str]:
    """Return the NID or cname of each node; without a machine the number that its name ends in."""
    import numpy as np

    from placement.lookup import rows_of
    from placement.names.columns import name_numbers

    if machine is not None:
        rows = rows_of(machine, names, repeats=True)
        words: list[str] = (
            (machine.nid if form == "nids" else machine.cname)[rows].astype(str).tolist()
        )
        if not all(words):
            raise UsageError(f"{machine.name or 'this machine'} has no cnames for these nodes")
        return words
    numbers = name_numbers(np.array(names, dtype=np.str_))[1]
    if (numbers < 0).any():
        first = printable(names[int(np.argmin(numbers))])
        raise UsageError(f"'{first}' ends in no number", "give the machine with -m for its NIDs")
    return [str(number) for number in numbers.tolist()]


def _read_lists(lists: tuple[str, ...], machine: Machine | None) -> NodeList:
    """Read all lists; with a machine given, resolve them on it."""
    from placement.lookup import nodes_of, rows_of
    from placement.nodelist import NodeList

    found = NodeList()
    for text, source in _texts(lists):
        if machine is None:
            found += _without_machine(text, source)
        else:
            found += nodes_of(machine, rows_of(machine, text, source, repeats=True))
    return found


def _texts(lists: tuple[str, ...]) -> list[tuple[str, str]]:
    """Fetch the texts that the arguments mean; several direct ones are one list."""
    from placement.lists.pasted import read_list

    if not lists and sys.stdin is not None and sys.stdin.isatty():
        raise click.UsageError("no node list given: name one, or '-' for standard input")
    if list(lists).count("-") > 1:
        raise click.UsageError("standard input can be read only once")
    fetched = [read_list(argument) for argument in lists or ("-",)]
    if all(not source for _, source in fetched):
        return [(" ".join(text for text, _ in fetched), "")]
    return fetched


def _without_machine(text: str, source: str) -> NodeList:
    """Read a list, its bare integers being NIDs."""
    from placement.nodelist import NodeList

    names = NodeList.parse(text, source)
    if not names:
        raise ParseError(source or "node list", 0, "names no node", "the list is empty")
    index = next((name for name in names if name[0] == "#"), None)
    if index is not None:
        raise UsageError(f"'{index}' is an index of a machine's table", "give the machine with -m")
    if not any(name[0].isdigit() and _NID.fullmatch(name) for name in names):
        return names
    from placement.lists.expanding import expand
    from placement.lists.piece import Piece

    words = [_NID.sub(_name_nids, name) if _NID.fullmatch(name) else name for name in names]
    return NodeList(expand([Piece(",".join(words))], source))


def _name_nids(match: re.Match[str]) -> str:
    """Return the names that Slurm has on a Cray for a NID or a range of them."""
    low, high = (f"{int(nid or match[1]):05d}" for nid in match.groups())
    return f"nid[{low}-{high}]" if match[2] else f"nid{low}"


def _document(names: NodeList) -> dict[str, Any]:
    return {
        "schema": "nidmap.nodelist/1",
        "count": len(names),
        "nodelist": names.fold(),
        "nodes": list(names),
    }


@nodes.command()
@machine_option
@_lists
@report_options
def info(specs: tuple[str, ...], lists: tuple[str, ...], as_json: bool, output: str | None) -> None:
    """Say where nodes sit and what they are.

    One row a node, in the order given and each once, then how many groups,
    chassis and blades they touch. Without a LIST, standard input is read.

    \b
    nidmap nodes info -m shaheen2 nid[00012-00015]
    nidmap nodes info -m daint.xtprocadmin c0-0c1s3 --json
    """
    import numpy as np

    from placement.lookup import rows_of

    machine = machine_from(specs)
    parts = [rows_of(machine, text, source, repeats=True) for text, source in _texts(lists)]
    every = np.concatenate(parts)
    rows = every[np.sort(np.unique(every, return_index=True)[1])]
    text = to_json(nodes_document(machine, rows)) if as_json else _page(machine, rows)
    write_output(text, output)


def _columns(machine: Machine, rows: Ints) -> dict[str, list[Any]]:
    """Return the table of nodes, column by column."""
    table = {"nid": machine.nid[rows], "name": machine.names[rows], "cname": machine.cname[rows]}
    for k, level in enumerate(machine.topology.levels):
        table[level] = machine.coords[rows, k]
    for label in ("role", "state", "mode", *_OPTIONAL[2:]):
        table[label] = getattr(machine, label)[rows]
    return {label: column.tolist() for label, column in table.items()}


def nodes_document(machine: Machine, rows: Ints) -> dict[str, Any]:
    """Return nodes as the document ``nidmap.nodes/1``.

    Parameters
    ----------
    machine : Machine
    rows : int64 (k,)
        Each once, in the order in which they are listed.
    """
    from placement.lookup import nodes_of
    from placement.plan import spans

    columns = _columns(machine, rows) | {"planned": machine.planned[rows].tolist()}
    return {
        "schema": "nidmap.nodes/1",
        "machine": machine.name,
        "topology": machine.topology.kind,
        "levels": list(machine.topology.levels),
        "sources": list(machine.sources),
        "count": len(rows),
        "nodelist": nodes_of(machine, rows).fold(),
        "touches": spans(machine, rows),
        "nodes": [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ],
    }


def _page(machine: Machine, rows: Ints) -> str:
    """Return the table and the summary for a person."""
    from placement.commands.tables import align_columns
    from placement.plan import spans

    columns = _columns(machine, rows)
    states = zip(columns["state"], machine.planned[rows].tolist(), strict=True)
    columns["state"] = [f"{state} (planned)" if planned else state for state, planned in states]
    shown = {k: v for k, v in columns.items() if k not in _OPTIONAL or any(v)}
    touched = ", ".join(counted(count, level) for level, count in spans(machine, rows).items())
    nodes = counted(len(rows), "node")
    summary = f"{nodes} of {machine.name or 'the machine'}; they touch {touched}"
    words = [k for k, column in enumerate(shown.values()) if not isinstance(column[0], int)]
    table = [list(shown), *zip(*shown.values(), strict=True)]
    return align_columns(table, left=words) + summary + "\n"
