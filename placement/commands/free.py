"""``nidmap nodes free``: the nodes that Slurm or a dump says are free."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import machine_option, report_options, say, to_json, write_output
from placement.errors import ParseError, UsageError, printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.nodelist import NodeList

__all__ = ["free"]


@dataclass(frozen=True, slots=True)
class _Found:
    """What is free.

    Attributes
    ----------
    nodes : NodeList
    states : dict of str to int
        How many nodes of what was looked at are in each state.
    source : str
        ``slurm``, or the name of the dump.
    notes : tuple of str
    """

    nodes: NodeList
    states: dict[str, int]
    source: str
    notes: tuple[str, ...] = ()


@click.command()
@machine_option
@click.option("--from", "source", metavar="idle|FILE|-", help="Ask Slurm, or read a dump or list.")
@click.option("--partition", "-p", help="Only what Slurm has in this partition.")
@click.option("--constraint", "-C", help="Only nodes with these Slurm features, as gpu&a100.")
@click.option("--reservation", help="Only nodes of this Slurm reservation.")
@report_options
def free(
    specs: tuple[str, ...], source: str | None, as_json: bool, output: str | None, **slurm: Any
) -> None:
    """List the nodes that Slurm or a dump says are free.

    The folded list goes to stdout, how many nodes are in which state to
    stderr; the exit code is 1 where none is free. Slurm is asked unless -m
    or a file says it: with -m alone the machine's own states count, with
    --from as well only nodes that are free in both are listed. A list of jobs
    (squeue) takes its nodes from the machine's. Nodes that backfill has
    planned for another job, or that a reservation holds which was not asked
    for, are not free.

    \b
    nidmap nodes free
    nidmap nodes free -p workq -C "gpu&a100" --json
    nidmap nodes free -m daint.xtprocadmin
    sinfo -N | nidmap nodes free -m shaheen2 --from -
    pbsnodes -a -F json | nidmap nodes free --from -
    squeue | nidmap nodes free -m shaheen2 --from -
    """
    machine = _machine(specs, source)
    asked = {name: value for name, value in slurm.items() if value is not None}
    if source == "idle" or (source is None and (not specs or asked)):
        found = _of_slurm(machine, slurm)
    elif asked:
        raise UsageError(
            "--partition, --constraint and --reservation ask Slurm", "use them with --from idle"
        )
    else:
        found = _of_dump(machine, source)
    text = to_json(_document(found, slurm)) if as_json else _folded(found.nodes)
    write_output(text, output)
    _talk(found)
    if not found.nodes:
        click.get_current_context().exit(1)


def _machine(specs: tuple[str, ...], source: str | None) -> Machine | None:
    """Return the machine that was asked for; None where there is none."""
    given = specs or tuple(os.environ.get("NIDMAP_MACHINE", "").split())
    if not given:
        return None
    if source == "-" and "-" in given:
        raise UsageError("standard input can be read only once")
    from placement.load import load_machine

    return load_machine(*given)


def _of_slurm(machine: Machine | None, options: dict[str, Any]) -> _Found:
    import numpy as np

    from placement.nodelist import NodeList
    from placement.slurm import free_nodes

    nodes = free_nodes(**options)
    if machine is None:
        return _Found(nodes.free_names(), nodes.counts(), "slurm", nodes.notes)
    ours = np.isin(nodes.names, machine.names)
    if not ours.any():
        raise ParseError(
            "slurm",
            0,
            f"shares no node name with {printable(machine.name)}",
            f"Slurm has {nodes.names[:1].tolist()}, the machine {machine.names[:1].tolist()}",
        )
    names = NodeList(nodes.names[ours & nodes.free].tolist())
    other = int((~ours).sum())
    notes = (f"{other} of Slurm's nodes are not in {printable(machine.name)}",) if other else ()
    return _Found(names, _counts(nodes.state[ours]), "slurm", (*nodes.notes, *notes))


def _of_dump(machine: Machine | None, source: str | None) -> _Found:
    """Return what is free in a dump, or in a machine, or in both."""
    from placement.lookup import nodes_of

    if source is None:
        assert machine is not None  # without both, Slurm is asked
        return _Found(
            nodes_of(machine, machine.free.nonzero()[0]), _counts(_words(machine)), machine.name
        )
    return _of_text(machine, source)


def _of_text(machine: Machine | None, source: str) -> _Found:
    """Return what is free in a file or standard input: states, jobs or a plain list."""
    import numpy as np

    from placement.availability import availability
    from placement.lists.pasted import read_list
    from placement.lookup import nodes_of
    from placement.nodelist import NodeList

    text, name = read_list(source, "--from")
    if name == "--from":
        raise ParseError("--from", 0, f"no such file: {printable(source)}", "use idle, a file or -")
    found = availability(text, name)
    if found is None:
        return _of_list(machine, text, name)
    if machine is None and found.jobs:
        raise ParseError(
            name, 0, "says which nodes have jobs, not which are free", "name the machine with -m"
        )
    if machine is None:
        return _Found(NodeList(found.names[found.free].tolist()), _counts(found.state), found.name)
    rows = np.flatnonzero(found.free_in(machine))
    if found.jobs:
        busy = machine.free & np.isin(machine.names, found.names)
        return _Found(nodes_of(machine, rows), _counts(_words(machine, busy)), name)
    inside = np.isin(found.names, machine.names)
    return _Found(nodes_of(machine, rows), _counts(found.state[inside]), found.name)


def _of_list(machine: Machine | None, text: str, name: str) -> _Found:
    """Return the nodes of a plain list that the machine says are free."""
    from placement.lookup import nodes_of, rows_of

    if machine is None:
        raise ParseError(name, 0, "says nothing of states", "name the machine with -m")
    rows = rows_of(machine, text, source=name)
    chosen = rows[machine.free[rows]]
    return _Found(nodes_of(machine, chosen), _counts(machine.state[rows]), name)


def _words(machine: Machine, busy: NDArray[np.bool_] | None = None) -> NDArray[np.str_]:
    """Return the state of a machine's compute nodes, of its service nodes ``service``."""
    import numpy as np

    words = np.where(machine.compute, machine.state, machine.role)
    words = np.where(machine.compute & machine.planned, "planned", words)
    return words if busy is None else np.where(busy, "allocated", words)


def _counts(words: NDArray[np.str_]) -> dict[str, int]:
    import numpy as np

    found, many = np.unique(words, return_counts=True)
    return dict(zip(found.tolist(), many.tolist(), strict=True))


def _folded(nodes: NodeList) -> str:
    return f"{nodes.fold()}\n" if nodes else ""


def _document(found: _Found, slurm: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": "nidmap.free/1",
        "source": found.source,
        **slurm,
        "count": len(found.nodes),
        "nodelist": found.nodes.fold(),
        "nodes": list(found.nodes),
        "states": found.states,
        "notes": list(found.notes),
    }


def _talk(found: _Found) -> None:
    """Say how many nodes are in which state."""
    states = ", ".join(f"{many} {printable(word)}" for word, many in sorted(found.states.items()))
    say(f"{len(found.nodes)} free of {sum(found.states.values())} nodes ({states})")
    for note in found.notes:
        say(f"nidmap: {note}")
