# SPDX-License-Identifier: Apache-2.0
"""``nidmap nodes``: fold, expand and look up node lists, and list the free nodes.

``nidmap nodes sort`` needs distances and comes from a later room (`nidmap.placement.hooks.NODES`).
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import click

from nidmap.placement.commands.candidates import refuse_slurm_options
from nidmap.placement.commands.common import (
    AdvancedCommand,
    LazyGroup,
    json_option,
    machine_option,
    slurm_options,
)
from nidmap.placement.errors import ParseError, UsageError
from nidmap.placement.hooks import NODES, SERVICES, load
from nidmap.placement.machine import Machine
from nidmap.placement.machine_option import machine_from, named_specs
from nidmap.placement.names import hostlist, name_numbers
from nidmap.placement.names.hostlist import TextPiece
from nidmap.placement.names.pasted import read_list
from nidmap.placement.nodelist import NodeList
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.quantities import counted
from nidmap.placement.support.tables import align_columns
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import say, warn

_NID = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)

#: Columns of `nodes info` that are left out where the machine knows nothing of them.
_OPTIONAL = ("cname", "mode", "sockets", "cores", "memory_mb", "nics", "gpus", "features")


class _Nodes(LazyGroup):
    """The command group ``nodes``, with the commands that later rooms add."""

    lazy = NODES


@click.group(cls=_Nodes)
def nodes() -> None:
    """Fold, expand, sort and look up node lists.

    A LIST is a folded list, names, NIDs, or the output of squeue, sinfo,
    scontrol or PBS, or a host file; '-' is standard input, @FILE or the path of a file is
    read. A word that is also the name of a file here means the file. Without a
    LIST, and with nothing on standard input, the nodes are those of the current job.

    \b
    nidmap nodes fold nid00045 nid00012 nid00013
    squeue -h -j 4711 -o %N | nidmap nodes expand -
    nidmap nodes info -m shaheen2 nid[00012-00015]
    """


#: The argument that names lists.
_lists = click.argument("lists", nargs=-1, metavar="[LIST|FILE|-]...")


def _make_command(text_of: Callable[..., str]) -> Callable[..., None]:
    """Return a command that rearranges node lists and writes them as JSON or text."""

    def write_names(
        lists: tuple[str, ...], specs: tuple[str, ...], in_order: bool, unique: bool,
        as_json: bool, **options: Any,
    ) -> None:  # fmt: skip
        machine = machine_from(specs) if specs else None
        names = _read_lists(lists, machine)
        names = names.unique if unique else names
        names = names.sorted() if in_order else names
        text = to_json(_list_document(names)) if as_json else text_of(names, machine, **options)
        write_output(text)

    by_number = click.option(
        "--sort", "in_order", is_flag=True, help="Sort, with numbers by value."
    )
    once = click.option("--unique", is_flag=True, help="Drop repeated nodes.")
    shared = functools.update_wrapper(write_names, text_of)
    return _lists(machine_option(by_number(once(json_option(shared)))))


@nodes.command()
@_make_command
def fold(names: NodeList, machine: Machine | None) -> str:
    """Fold node lists into a single list in Slurm's notation, keeping the order.

    Without a LIST, standard input is read. Bare integers are NIDs: 45-47 is
    nid[00045-00047], or with -m the machine's own names; with -m cnames, whole
    cabinets, chassis and blades (c0-0c1) and indices (#0-63) are resolved too.

    \b
    nidmap nodes fold nid00045 nid00012 nid00013        # nid[00045,00012-00013]
    nidmap nodes fold --sort --unique hosts.txt
    nidmap nodes fold -m shaheen2 c0-0c1
    """
    return f"{names.fold()}\n"


@nodes.command()
@_make_command
@click.option(
    "--format",
    "form",
    type=click.Choice(["lines", "comma", "nids", "cnames"]),
    default="lines",
    show_default=True,
    help="lines, nids, cnames: one per line; commas: on one line.",
)
def expand(names: NodeList, machine: Machine | None, form: str) -> str:
    """Write every node of the node lists, keeping order and duplicates.

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
    words = list(names) if form in ("lines", "comma") else _numbers_or_cnames(names, form, machine)
    return ",".join(words) + "\n" if form == "comma" else "".join(f"{word}\n" for word in words)


def _numbers_or_cnames(names: NodeList, form: str, machine: Machine | None) -> list[str]:
    """Return each node's NID or cname; without a machine, the number ending its name."""
    import numpy as np

    if machine is not None:
        from nidmap.placement import lookup

        rows = lookup.rows_of(machine, names, repeats=True)
        words: list[str] = (
            (machine.nid if form == "nids" else machine.cname)[rows].astype(str).tolist()
        )
        if not all(words):
            raise UsageError(f"{machine.name or 'this machine'} has no cnames for these nodes")
        return words
    numbers = name_numbers(np.array(names, dtype=np.str_))[1]
    if (numbers < 0).any():
        first = names[int(np.argmin(numbers))]
        raise UsageError(
            f"'{first}' does not end in a number", "give the machine with -m for its NIDs"
        )
    return [str(number) for number in numbers.tolist()]


def _read_lists(lists: tuple[str, ...], machine: Machine | None) -> NodeList:
    """Read all lists, and resolve them on the machine if one is given."""
    from nidmap.placement import lookup

    texts = _fetch_texts(lists)
    if machine is None:
        return sum((_without_machine(*text) for text in texts), NodeList())
    rows = (lookup.rows_of(machine, *text, repeats=True) for text in texts)
    return sum((lookup.nodes_of(machine, some) for some in rows), NodeList())


def _fetch_texts(lists: tuple[str, ...]) -> list[tuple[str, str]]:
    """Fetch the texts that the arguments refer to; several literal ones form one list."""
    fetched = [read_list(argument) for argument in lists] or [_piped_or_allocated()]
    if all(not source for _, source in fetched):
        return [(" ".join(text for text, _ in fetched), "")]
    return fetched


def piped_text() -> tuple[str, str]:
    """Return the text of standard input and its name; nothing if it is a terminal."""
    typed = sys.stdin is not None and sys.stdin.isatty()
    text, source = ("", "-") if typed else read_list("-")
    if typed and load(SERVICES["job here"])(os.environ) is None:
        raise click.UsageError("no node list given: name one, or '-' for standard input")
    return text, source


def _piped_or_allocated() -> tuple[str, str]:
    """Return the text of standard input, else the nodes of the surrounding job."""
    text, source = piped_text()
    job = None if text.strip() else load(SERVICES["job here"])(os.environ)
    if job is None:
        return text, source
    say(f"nidmap: {job.words}")
    return ",".join(job.nodes), ""


def _without_machine(text: str, source: str) -> NodeList:
    """Read a list without a machine; bare integers are NIDs."""
    names = NodeList.parse(text, source)
    if not names:
        raise ParseError(source or "node list", 0, "names no nodes", "the list is empty")
    index = next((name for name in names if name[0] == "#"), None)
    if index is not None:
        raise UsageError(
            f"'{index}' is an index into a machine's nodes", "give the machine with -m"
        )
    if not any(name[0].isdigit() and _NID.fullmatch(name) for name in names):
        return names
    number = next(filter(str.isdigit, names), None)
    if number and not all(_NID.fullmatch(name) for name in names):
        what = f"'{number}' is a bare number among names"
        raise ParseError(source or "node list", 0, what, "give the machine with -m for its NIDs")
    words = [_NID.sub(_name_nids, name) if _NID.fullmatch(name) else name for name in names]
    return NodeList(hostlist.expand([TextPiece(",".join(words))], source))


def _name_nids(match: re.Match[str]) -> str:
    """Return Slurm's node names on a Cray for a NID or a range of NIDs."""
    low, high = (f"{int(nid or match[1]):05d}" for nid in match.groups())
    return f"nid[{low}-{high}]" if match[2] else f"nid{low}"


def _list_document(names: NodeList) -> dict[str, Any]:
    return {
        "schema": "nidmap.nodelist/1",
        "count": len(names),
        "nodelist": names.fold(),
        "nodes": list(names),
    }


@nodes.command()
@machine_option
@_lists
@json_option
def info(specs: tuple[str, ...], lists: tuple[str, ...], as_json: bool) -> None:
    """Show where nodes are and what hardware they have.

    One row per node, in the order given and each once, then how many groups,
    chassis and blades they touch. Without a LIST, standard input is read.

    \b
    nidmap nodes info -m shaheen2 nid[00012-00015]
    nidmap nodes info -m shaheen2 "#0-3" --json
    nidmap nodes info -m daint.xtprocadmin c0-0c1s3 --json
    """
    import numpy as np

    from nidmap.placement import lookup
    from nidmap.placement.support import arrays

    machine = machine_from(specs)
    texts = _fetch_texts(lists)
    parts = [lookup.rows_of(machine, text, source, repeats=True) for text, source in texts]
    rows = arrays.each_once(np.concatenate(parts))
    text = to_json(nodes_document(machine, rows)) if as_json else _format_table(machine, rows)
    write_output(text)


def _node_columns(machine: Machine, rows: Ints) -> dict[str, list[Any]]:
    """Return the node table, column by column."""
    table = {"nid": machine.nid[rows], "name": machine.names[rows], "cname": machine.cname[rows]}
    for k, level in enumerate(machine.topology.levels):
        table[level] = machine.coords[rows, k]
    for label in ("role", "state", "mode", *_OPTIONAL[2:]):
        table[label] = getattr(machine, label)[rows]
    return {label: column.tolist() for label, column in table.items()}


def nodes_document(machine: Machine, rows: Ints) -> dict[str, Any]:
    """Return nodes as the document ``nidmap.nodes/1``.

    `rows` (k,): each once, in the order in which they are listed.
    """
    from nidmap.placement import lookup, planners

    columns = _node_columns(machine, rows) | {"planned": machine.planned[rows].tolist()}
    return {
        "schema": "nidmap.nodes/1",
        "machine": machine.name,
        "topology": machine.topology.kind,
        "levels": list(machine.topology.levels),
        "sources": list(machine.sources),
        "count": len(rows),
        "nodelist": lookup.nodes_of(machine, rows).fold(),
        "touches": planners.spans(machine, rows),
        "nodes": [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ],
    }


def _format_table(machine: Machine, rows: Ints) -> str:
    """Return the table and the summary as text."""
    from nidmap.placement import planners

    columns = _node_columns(machine, rows)
    states = zip(columns["state"], machine.planned[rows].tolist(), strict=True)
    columns["state"] = [f"{state} (planned)" if planned else state for state, planned in states]
    shown = {k: v for k, v in columns.items() if k not in _OPTIONAL or any(v)}
    touched = ", ".join(
        counted(count, level) for level, count in planners.spans(machine, rows).items()
    )
    nodes = counted(len(rows), "node")
    summary = f"{nodes} of {machine.name or 'the machine'}; they touch {touched}"
    words = [k for k, column in enumerate(shown.values()) if not isinstance(column[0], int)]
    table = [list(shown), *zip(*shown.values(), strict=True)]
    return align_columns(table, left=words) + summary + "\n"


@nodes.command(cls=AdvancedCommand)
@machine_option
@click.option(
    "--from",
    "source",
    metavar="idle|FILE|-",
    help="Where states come from: Slurm, a dump or a list.",
)
@slurm_options
@json_option
def free(specs: tuple[str, ...], source: str | None, as_json: bool, **slurm: Any) -> None:
    """List the nodes that are free according to Slurm or a dump.

    The folded list goes to stdout, the number of nodes in each state to stderr; the
    exit code is 1 where none is free. Slurm is asked unless -m or a file says it: with
    -m alone the machine's own states count, with --from as well only nodes that are
    free in both are listed. A list of jobs (squeue) takes its nodes from the machine's.
    Nodes that backfill has planned for another job, that a pending job names, or that
    belong to a reservation other than --reservation, are not free.

    \b
    nidmap nodes free
    nidmap nodes free -p workq -C "gpu&a100" --json
    nidmap nodes free -m daint.xtprocadmin
    sinfo -N | nidmap nodes free -m shaheen2 --from -
    pbsnodes -a -F json | nidmap nodes free -m polaris --from -
    squeue | nidmap nodes free -m shaheen2 --from -
    """
    from nidmap.placement.scheduler import availability

    named = named_specs(specs)
    if source == "-" and "-" in named:
        raise UsageError("standard input can be read only once")
    refuse_slurm_options(source, slurm.values())
    machine = machine_from(named) if named else None
    answer = availability.ask_availability(machine, source if specs else source or "idle", **slurm)
    free_nodes, states = answer.nodes(), answer.counts()
    document = {
        **_list_document(free_nodes),
        "schema": "nidmap.free/1",
        "source": answer.source,
        **slurm,
        "states": states,
        "notes": list(answer.notes),
    }
    folded = f"{free_nodes.fold()}\n" if free_nodes else ""
    write_output(to_json(document) if as_json else folded)
    words = ", ".join(f"{count} {word}" for word, count in states.items())
    tell = say if free_nodes else warn
    tell(f"{len(free_nodes)} free of {counted(sum(states.values()), 'node')} ({words})")
    for note in answer.notes:
        say(f"nidmap: {note}")
    if not free_nodes:
        click.get_current_context().exit(1)
