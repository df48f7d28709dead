"""``nidmap order`` and ``nidmap run``."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import (
    AdvancedCommand,
    advanced,
    among,
    quiet_option,
    say,
    write_output,
)
from placement.errors import LaunchError, UsageError
from rankmap.commands.model import JobArguments, job_options, launcher_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rankmap.launch.run_command import RunCommand
    from rankmap.pattern import Pattern
    from rankmap.placement import Placement

__all__ = ["launch_options", "order", "run", "run_command", "step_options"]

#: Seconds of a search that are said before it begins.
_LONG = 5.0

#: The deadline of auto where nobody states one, for more ranks than these.
_USUAL_DEADLINE, _MANY = 120.0, 1 << 17

#: Seconds that choosing an order may take while a launch of Slurm's filter waits.
_PATIENCE = "1"

_launcher_order_option = launcher_order(
    "The launcher's node order, for MPICH_RANK_ORDER; default: sorted, as in Slurm."
)

mapping_limit_option = advanced(
    "--mapping-limit",
    metavar="N|none",
    help="Longest rank map in bytes; default: the limit of the MPI library.",
)

_LAUNCH = (
    click.option(
        "--strategy",
        default="auto",
        show_default=True,
        shell_complete=among("order"),
        help="auto (predicted fastest) or an order by name.",
    ),
    click.option(
        "--order",
        "order_file",
        metavar="FILE",
        help="Order file to launch; its suffix gives the format (see nidmap order).",
    ),
    advanced("--bind", is_flag=True, help="Also place ranks inside the nodes, and bind them."),
    _launcher_order_option,
    advanced(
        "--mpi",
        type=click.Choice(["auto", "cray-mpich", "mpich", "intel", "openmpi", "other"]),
        default="auto",
        show_default=True,
        help="MPI library of the program; auto: ask mpiexec, else by network and modules.",
    ),
    advanced(
        "--order-dir",
        metavar="DIR",
        help="Keep the order file in DIR; default: here, until the job ends.",
    ),
)


def launch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the job, and in which order a launcher's ranks are started."""
    for option in reversed(_LAUNCH):
        command = option(command)
    return job_options(command)


def run_command(
    command: tuple[str, ...], job: JobArguments, options: Mapping[str, Any]
) -> RunCommand:
    """Return ``nidmap run`` of a command with `launch_options` and ``patience``."""
    from rankmap.launch.run_command import RunCommand

    return RunCommand(command, job, {"mapping_limit": None, **options})


@click.command(cls=AdvancedCommand)
@job_options
@click.option(
    "--strategy",
    default="auto",
    show_default=True,
    shell_complete=among("order"),
    help="auto (by predicted time or J, never worse than row-major), graph, boxes …",
)
@advanced(
    "--deadline",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    help="Processor seconds for auto and graph; default: none, or 120 from 131,072 ranks on.",
)
@_launcher_order_option
@mapping_limit_option
@click.option(
    "--format",
    "form",
    metavar="F",
    help="File format (listed above); default: by the name of -o.",
)
@click.option(
    "--bind",
    "binder",
    type=click.Choice(["srun", "hydra", "pals", "aprun", "openmpi"]),
    help="Also place ranks inside the nodes; print the options that bind them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE; complete or not at all.")
@quiet_option
def order(
    job: JobArguments,
    strategy: str,
    deadline: float | None,
    launcher_order: str | None,
    mapping_limit: str | None,
    form: str | None,
    binder: str | None,
    as_json: bool,
    output: str | None,
) -> None:
    """Order a job's ranks on its nodes.

    Slots are numbered node by node, in the order of --nodes (default: those of
    the job that this runs in, else all free compute nodes). auto is the search
    of nidmap plan on exactly these nodes: by predicted time where the machine
    states bandwidths, by J where it does not or a graph has millions of edges;
    stderr says which. The name of -o says the format: .slots (line r is the
    slot of rank r, the default), MPICH_RANK_ORDER, .hosts, .rankfile, .json …

    \b
    nidmap order -m shaheen2 --nodes 12-15 --ppn 32 --pattern fft:8x16 -o MPICH_RANK_ORDER
    nidmap plan -m shaheen2 -N 2 | nidmap order -m shaheen2 --nodes - --ppn 32 --pattern fft:8x8
    nidmap order -m polaris --nodes '#0-3' --ppn 4 --pattern stencil:4x4 --bind pals -o ranks.mpich
    \f
    \b
    slots      .slots            line r is the slot of rank r (the default)
    mpich      MPICH_RANK_ORDER  the rank at every slot, in the launcher's order of the nodes
    slurm      .hosts .hostfile  host file for SLURM_HOSTFILE
    openmpi    .rankfile         rank file of Open MPI
    seq        .seq              host file for Open MPI's sequential mapper
    hydra      .hydra            host file for Hydra's mpiexec -f
    intel      .machinefile      machine file of Intel MPI
    torchrun   .torchrun         node ranks for torchrun
    deepspeed                    host slots=N, one line per node
    --json     .json             slots, nodes and what they are for

    With --bind each rank gets cores of its node with the nearest GPU and NIC, as
    the site or hwloc's XML (-m node.xml) describes it. -o takes the order; stdout
    has the launcher's options, or nothing where a rankfile says it all.
    """
    from rankmap.binding import copies_inside
    from rankmap.emit import emit, find, format_of
    from rankmap.pattern import parse_pattern
    from rankmap.predict.job_pattern import size_of
    from rankmap.search.by_strategy import order_by_strategy
    from rankmap.short_orders import fit_format

    wanted, way = job.named_pattern(), launcher_order or "sorted"
    if form == "json":
        raise UsageError("no format json", "--json, or -o FILE.json, writes it")
    chosen = "json" if as_json else form or format_of(output)
    find(chosen)
    placement = job.placement(job.machine())
    wanted_strategy = strategy
    sent = job.job()
    seconds = _seconds_left(deadline, wanted_strategy, placement.ranks)
    if wanted_strategy == "graph" and deadline is not None:
        wanted_strategy = f"graph:seconds={seconds:g}"
    with _shown(placement.ranks, wanted_strategy, wanted, seconds):
        ordered = order_by_strategy(placement, sent, wanted_strategy, seconds)
    ordered, limit_words = fit_format(ordered, chosen, way, mapping_limit, sent)
    fitted = parse_pattern(wanted).on(ordered)
    if binder:
        _bind(ordered, fitted, binder, chosen, way, output)
    else:
        write_output(emit(ordered, chosen, way), output)
    _report(ordered, chosen, launcher_order)
    if (
        math.isfinite(seconds)
        and ordered.origin.optimised
        and not ordered.origin.optimised["finished"]
    ):
        say("nidmap: --deadline ended the search: more seconds may find a better order")
    copies = None if binder else copies_inside(ordered, fitted, size_of(fitted, sent.bytes)[0])
    if copies:
        say(f"nidmap: {copies.sentence()}")
    if limit_words:
        say(f"nidmap: {limit_words}")
    sending = job.sending()
    if sending and wanted_strategy != "auto":
        say(f"nidmap: --{next(iter(sending))} matters with --strategy auto only")


def _seconds_left(deadline: float | None, strategy: str, ranks: int) -> float:
    """Return the processor time that is left of a deadline after what was read until now."""
    if deadline is None and (strategy != "auto" or ranks <= _MANY):
        return math.inf
    deadline = _USUAL_DEADLINE if deadline is None else deadline
    if strategy not in ("auto", "graph"):
        raise UsageError("--deadline goes with --strategy auto or graph", "others do not search")
    return max(deadline - time.process_time(), 0.001)


@contextmanager
def _shown(ranks: int, strategy: str, pattern: str, seconds: float) -> Iterator[None]:
    """Say what is expected of a long search, and show on a terminal how far it is."""
    from placement.commands.plan import AFTER, bar
    from rankmap.pattern import parse_pattern
    from rankmap.pattern.graph import Graph
    from rankmap.progress import listen
    from rankmap.refine.budget import seconds_for

    searched = strategy.partition(":")[0] in ("auto", "graph")
    usual = seconds_for(ranks) * (2 if strategy == "auto" else 1)
    expected = min(usual, seconds) if searched else 1.0
    with bar(0 if expected >= _LONG else AFTER) as show:
        begun, doing = time.process_time(), strategy

        def tell(text: str) -> None:
            nonlocal doing
            doing = text or doing
            if show is not None:
                show(min((time.process_time() - begun) / expected, 0.99), doing)

        listen(tell)
        try:
            if expected >= _LONG and isinstance(parse_pattern(pattern), Graph):
                ends = "" if math.isfinite(seconds) else "; --deadline S ends it sooner"
                say(f"nidmap: a graph of {ranks:,} ranks takes about {expected:.0f} s{ends}")
            yield
        finally:
            listen(None)


def _bind(
    order: Placement,
    pattern: Pattern,
    binder: str,
    form: str,
    launcher_order: str,
    output: str | None,
) -> None:
    """Write an order arranged inside its nodes, and print what binds its ranks."""
    from rankmap.binding import bind
    from rankmap.emit import document, emit, openmpi

    if form not in ("json", "openmpi") and (output is None or output == "-"):
        raise UsageError(
            "--bind prints the launcher's options, so the order needs a file", "-o FILE"
        )
    bound = bind(order, pattern, binder, form)
    if form == "json":
        write_output(document.write(bound.order, binding=bound.document()), output)
    elif form == "openmpi":
        write_output(openmpi.write(bound.order, places=bound.cores()), output)
    else:
        write_output(emit(bound.order, form, launcher_order), output)
        write_output(bound.lines(), None)
    say(f"nidmap: {bound.remark}")


@click.command(cls=AdvancedCommand, context_settings={"allow_interspersed_args": False})
@launch_options
@mapping_limit_option
@click.option("--dry-run", is_flag=True, help="Print the command instead of running it.")
@advanced(
    "--patience",
    type=click.FloatRange(0),
    default=15.0,
    show_default=True,
    help="Seconds of processor time for planning; then the default order is used. 0: no limit.",
)
@advanced("--verify", is_flag=True, help="First run a step that checks where the ranks are.")
@click.option("--strict", is_flag=True, help="Refuse (code 125) to start in another order.")
@click.option("--json", "as_json", is_flag=True, help="With --dry-run: print JSON.")
@quiet_option
@click.option("--inside", is_flag=True, help="Reorder the program's own topologies.")
@advanced("--world", is_flag=True, help="With --inside: reorder MPI_COMM_WORLD itself.")
@advanced("--mpicc", default="", metavar="CC", help="With --inside: the program's compiler.")
@click.argument(
    "command", nargs=-1, type=click.UNPROCESSED, required=True, shell_complete=among("launcher")
)
def run(
    job: JobArguments,
    dry_run: bool,
    verify: bool,
    strict: bool,
    as_json: bool,
    inside: bool,
    world: bool,
    mpicc: str,
    command: tuple[str, ...],
    **options: Any,
) -> int:
    """Run a launcher (srun, mpiexec, aprun, flux run …) with its ranks in order.

    Nodes and ranks come from the allocation and the command. One line says
    which order was taken and what gain to expect. If anything is unclear, the
    command starts unchanged, in its default order, and one line on stderr says
    why (--strict refuses instead). --dry-run prints the command for a shell.

    \b
    nidmap run --pattern stencil:24x24x16 -- srun -n 9216 ./app
    nidmap run -m shaheen2 --pattern fft:8x8 --strategy morton --dry-run -- srun -n 64 ./app
    nidmap run --inside -m shaheen2 -- srun -n 9216 ./app
    \f
    With a machine whose bandwidths are known the order is the one with the least
    predicted time, else by J; --order FILE takes what nidmap order or plan
    --order-out wrote. With --order-dir the order file that a dry run's command
    names is kept. --verify first runs a step whose ranks only say where they are,
    and compares that with the plan. --bind also arranges ranks inside the nodes,
    where a site or hwloc's XML (-m node.xml) says what is in them, and gives
    each its cores, as nidmap order --bind does.

    --inside leaves the launcher alone, whichever it is: a library before the
    unmodified program gives MPI_Cart_create and the graph topologies the order
    where the program lets MPI reorder them; their pattern is known from the
    call. With --world it is MPI_COMM_WORLD that has the order, from MPI_Init on.
    """
    if as_json and not dry_run:
        raise UsageError("--json goes with --dry-run")
    if verify and dry_run:
        raise UsageError("--verify starts a step: not with --dry-run")
    if (world or mpicc) and not inside:
        raise UsageError(f"{'--world' if world else '--mpicc'} goes with --inside")
    if inside and options["bind"]:
        raise UsageError("--bind does not go with --inside")
    if inside and (verify or as_json):
        raise UsageError("--verify and --json do not go with --inside")
    launch_run = run_command(command, job, options)
    if inside:
        return launch_run.start_inside(world, strict, dry_run, mpicc)
    return launch_run.show(as_json, strict) if dry_run else launch_run.start(strict, verify)


def step_options(
    command: Sequence[str], words: Mapping[str, str], process: int
) -> tuple[dict[str, str], str]:
    """Return the options of srun that start a step's ranks in order, and what is said of the order.

    For a filter that may only set options (``nidmap slurm launch``).

    Parameters
    ----------
    command : sequence of str
        srun as the user has written it.
    words : mapping of str to str
        What the job's comment says: ``pattern``, ``bytes``.
    process : int
        Id of srun: the order file is removed when it has ended.

    Raises
    ------
    NidmapError
        Where the order is unclear, or cannot be told by options.
    """
    from rankmap.launch import LAUNCH
    from rankmap.launch.launch_folder import remove_at_end

    options_given = [f"--{name}={words[name]}" for name in ("pattern", "bytes") if words.get(name)]
    line = [*options_given, "--patience", _PATIENCE, "--", *command]
    options = run.make_context("run", line).params
    job = JobArguments(*(options[field.name] for field in fields(JobArguments)))
    launch_run = run_command(options["command"], job, options)
    _, prepared, expected = launch_run.prepare()
    remove_at_end(prepared.path, process)
    before = set(command)
    new = [word for word in prepared.launch.argv if word not in before and word.startswith("--")]
    step_words = dict(word[2:].partition("=")[::2] for word in new)
    variables = {name: v for name, v in prepared.launch.env.items() if name != LAUNCH}
    if variables:
        if any(word.startswith("--export") for word in command):
            raise LaunchError("srun --export keeps out the variables of Cray MPICH's order")
        step_words["export"] = ",".join(["ALL", *(f"{k}={v}" for k, v in variables.items())])
    return step_words, launch_run.order_words(prepared.order, expected.words)


def _report(order: Placement, form: str, launcher_order: str | None) -> None:
    """Say what was made, and what would surprise: nodes that are not for jobs, or too full."""
    import numpy as np

    from placement.plan import overfull

    machine = order.machine
    say(f"{order.origin.strategy} order of {order.origin.pattern} on {order.words()}")
    if order.origin.remark:
        say(f"nidmap: {order.origin.remark}")
    if form == "mpich" and launcher_order is None and (np.diff(order.sorting()) < 0).any():
        say(
            "nidmap: the file is for the nodes in Slurm's order, not as listed; "
            "--launcher-order given writes that"
        )
    if machine is None:
        return
    service = order.names[~machine.compute[order.rows]]
    if len(service):
        say(f"nidmap: {len(service)} of the nodes are service nodes, first {service[0]}")
    full = overfull(machine, order.rows, order.counts)
    if full:
        say(f"nidmap: {full}")
