"""``nidmap nodes free``: the nodes that Slurm or a dump says are free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from placement.commands.common import (
    machine_from,
    machine_option,
    machine_specs,
    report_options,
    say,
    slurm_options,
    to_json,
    write_output,
)
from placement.errors import ParseError, UsageError, printable
from placement.support.quantities import counted

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.nodelist import NodeList

__all__ = ["free"]


class _Free(NamedTuple):
    """The free nodes, how many nodes are in each state, and who says so: Slurm or a dump."""

    nodes: NodeList
    states: dict[str, int]
    source: str
    notes: tuple[str, ...] = ()


@click.command()
@machine_option
@click.option("--from", "source", metavar="idle|FILE|-", help="Ask Slurm, or read a dump or list.")
@slurm_options
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
    given = machine_specs(specs, needed=False)
    if source == "-" and "-" in given:
        raise UsageError("standard input can be read only once")
    machine = machine_from(given) if given else None
    asked = any(value is not None for value in slurm.values())
    if source == "idle" or (source is None and (not specs or asked)):
        found = _in_slurm(machine, slurm)
    elif asked:
        raise UsageError(
            "--partition, --constraint and --reservation ask Slurm", "use them with --from idle"
        )
    elif source is None:
        assert machine is not None  # without both, Slurm is asked
        found = _in_machine(machine)
    else:
        found = _in_text(machine, source)
    folded = f"{found.nodes.fold()}\n" if found.nodes else ""
    write_output(to_json(_document(found, slurm)) if as_json else folded, output)
    states = ", ".join(f"{many} {printable(word)}" for word, many in sorted(found.states.items()))
    say(f"{len(found.nodes)} free of {counted(sum(found.states.values()), 'node')} ({states})")
    for note in found.notes:
        say(f"nidmap: {note}")
    if not found.nodes:
        click.get_current_context().exit(1)


def _in_slurm(machine: Machine | None, options: dict[str, Any]) -> _Free:
    import numpy as np

    from placement.nodelist import NodeList
    from placement.scheduler.availability import counts_of
    from placement.slurm.nodes import free_nodes

    nodes = free_nodes(**options)
    if machine is None:
        return _Free(nodes.free_names(), nodes.counts(), "slurm", nodes.notes)
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
    return _Free(names, counts_of(nodes.state[ours]), "slurm", (*nodes.notes, *notes))


def _in_machine(machine: Machine) -> _Free:
    from placement.lookup import nodes_of
    from placement.scheduler.availability import counts_of, states_of

    free = nodes_of(machine, machine.free.nonzero()[0])
    return _Free(free, counts_of(states_of(machine)), machine.name)


def _in_text(machine: Machine | None, source: str) -> _Free:
    """Return what is free in a file or standard input: states, jobs or a plain list."""
    import numpy as np

    from placement.lists.pasted import read_list
    from placement.lookup import nodes_of, rows_of
    from placement.nodelist import NodeList
    from placement.scheduler.availability import availability, counts_of, states_of

    text, name = read_list(source, "--from")
    if name == "--from":
        raise ParseError("--from", 0, f"no such file: {printable(source)}", "use idle, a file or -")
    found = availability(text, name)
    if machine is None:
        if found is None or found.jobs:
            of_jobs = "says which nodes have jobs, not which are free"
            what = of_jobs if found else "says nothing of states"
            raise ParseError(name, 0, what, "name the machine with -m")
        return _Free(NodeList(found.names[found.free].tolist()), counts_of(found.state), found.name)
    if found is None:
        listed = rows_of(machine, text, source=name)
        rows, states = listed[machine.free[listed]], machine.state[listed]
    else:
        rows, states = np.flatnonzero(found.free_in(machine)), states_of(machine)
        if found.jobs:
            states = np.where(
                machine.free & np.isin(machine.names, found.names), "allocated", states
            )
        else:
            states = found.state[np.isin(found.names, machine.names)]
    return _Free(nodes_of(machine, rows), counts_of(states), name)


def _document(found: _Free, slurm: dict[str, Any]) -> dict[str, Any]:
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
