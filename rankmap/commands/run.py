"""``nidmap run``, and what other commands that launch take of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import AdvancedCommand, ByteCount, advanced, among, quiet_option
from placement.errors import LaunchError, UsageError
from placement.support.lazy import lazy
from rankmap.commands.model import (
    JobArguments,
    RunRequest,
    gather_options,
    job_options,
    launcher_order_option,
    mapping_limit_option,
)
from rankmap.launch import CRAY, INTEL, LAUNCH, MPICH, OPENMPI, OTHER
from rankmap.launch.process import remove_at_end
from rankmap.launch.run import show, start, start_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rankmap.launch import job as launch_job
else:  # a launch has to be quick
    launch_job = lazy("rankmap.launch.job")

#: Seconds that choosing an order may take while a launch of Slurm's filter waits.
_PATIENCE = 1.0

#: Options that need another one, and options that exclude each other.
_NEEDS = (("json", "dry-run"), ("world", "inside"), ("mpicc", "inside"))
_APART = (("verify", "dry-run"), ("bind", "inside"), ("verify", "inside"), ("json", "inside"))

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
    launcher_order_option,
    advanced(
        "--mpi",
        type=click.Choice(["auto", CRAY, MPICH, INTEL, OPENMPI, OTHER]),
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
    """Add the job, and in which order a launcher's ranks are started, as one ``request``."""
    return job_options(gather_options(RunRequest, "request", _LAUNCH, command))


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
    request: RunRequest,
    verify: bool,
    strict: bool,
    as_json: bool,
    inside: bool,
    world: bool,
    mpicc: str,
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
    values = {"json": as_json, "dry-run": request.dry_run, "verify": verify, "inside": inside}
    values |= {"world": world, "mpicc": bool(mpicc), "bind": request.bind}
    for option, needed in _NEEDS:
        if values[option] and not values[needed]:
            raise UsageError(f"--{option} goes with --{needed}")
    for option, other in _APART:
        if values[option] and values[other]:
            raise UsageError(f"--{option} does not go with --{other}")
    if inside:
        return start_inside(request, world, strict, mpicc)
    if request.dry_run:
        return show(request, as_json, strict)
    return start(request, strict, verify)


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
    size = ByteCount().convert(words["bytes"], None, None) if words.get("bytes") else None
    job = JobArguments(pattern=words.get("pattern"), bytes=size)
    launch = launch_job.read_job(RunRequest(tuple(command), job, patience=_PATIENCE), os.environ)
    prepared = launch.prepared()
    remove_at_end(prepared.path, process)
    expected = launch.expected(prepared.order)
    before = set(command)
    new = [word for word in prepared.launch.argv if word not in before and word.startswith("--")]
    options = dict(word[2:].partition("=")[::2] for word in new)
    variables = {name: v for name, v in prepared.launch.env.items() if name != LAUNCH}
    if variables:
        if any(word.startswith("--export") for word in command):
            raise LaunchError("srun --export keeps out the variables of Cray MPICH's order")
        options["export"] = ",".join(["ALL", *(f"{k}={v}" for k, v in variables.items())])
    return options, launch.words(prepared.order, expected.words)
