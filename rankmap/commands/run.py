# SPDX-License-Identifier: Apache-2.0
"""``nidmap run``: plan in a child process, check if requested, become the launcher.

What other commands that launch take of it is here, too.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from nidmap.placement.commands.common import (
    AdvancedCommand,
    ByteCount,
    advanced,
    among,
    quiet_option,
)
from nidmap.placement.errors import LaunchError, NidmapError, UsageError, error_text
from nidmap.placement.support.hosts import same_host
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import say
from nidmap.rankmap.commands.job_options import (
    gather_options,
    job_options,
    launcher_order_option,
    mapping_limit_option,
    strategy_option,
)
from nidmap.rankmap.launch import CRAY, INTEL, LAUNCH, MPICH, OPENMPI, OTHER, Launch
from nidmap.rankmap.launch.planning import PlannedLaunch, plan_aside
from nidmap.rankmap.launch.process import (
    REFUSED,
    become,
    discard_launch,
    job_environment,
    remove_at_end,
    report,
    report_unclear,
)
from nidmap.rankmap.launch.queries import query_rank_nodes
from nidmap.rankmap.launch.request import JobArguments, RunRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nidmap.rankmap.launch.job import Prepared

SCHEMA = "nidmap.run/1"

#: Time limit in seconds of a step that only reports where its ranks are, if patience has no limit,
#: or if the job cannot run without the answer.
_VERIFYING = 60.0

#: Seconds that choosing an order may take while a launch of Slurm's filter waits.
_PATIENCE = 1.0

#: Options that need another one, and options that exclude each other.
_NEEDS = (("json", "dry-run"), ("world", "inside"), ("mpicc", "inside"))
_APART = (("verify", "dry-run"), ("bind", "inside"), ("verify", "inside"), ("json", "inside"))

_LAUNCH = (
    strategy_option("auto (predicted fastest) or an order by name."),
    click.option(
        "--order",
        "order_file",
        metavar="FILE",
        help="Order file to launch; its suffix gives the format (see nidmap order).",
    ),
    advanced(
        "--bind", is_flag=True, help="Also choose each rank's cores and GPUs, and bind it to them."
    ),
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
    """Add options of the job and of its rank order, received as one ``request``."""
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
@click.option("--strict", is_flag=True, help="Refuse to start in any other order (exit code 125).")
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
    """Run a launcher (srun, mpiexec, aprun, flux run …) with its ranks reordered.

    Nodes and ranks come from the allocation and the command. One line says
    which order was taken and what gain to expect. If anything is unclear, the
    command starts unchanged, in its default order, and one line on stderr says
    why (--strict refuses instead). --dry-run prints the command for a shell.

    \b
    nidmap run --pattern stencil:24x24x16 -- srun -n 9216 ./app
    nidmap run -m shaheen2 --pattern fft:8x8 --strategy morton --dry-run -- srun -n 64 ./app
    nidmap run --inside -m shaheen2 -- srun -n 9216 ./app
    \f
    Where the machine's bandwidths are known the order has the least predicted time,
    else the least J; --order FILE takes what nidmap order or plan --order-out wrote.
    With --order-dir the order file that a dry run's command names is kept. --verify
    first runs a step whose ranks only report where they are, and compares that with the
    plan. --bind also arranges ranks inside the nodes, where a site or hwloc's XML (-m
    node.xml) says what is in them, and gives each its cores, as nidmap order --bind
    does.

    --inside leaves the launcher alone: a library preloaded into the unmodified program
    makes MPI_Cart_create and the graph topologies use the order where the program lets
    MPI reorder them; the pattern is known from the call. With --world MPI_COMM_WORLD
    itself is reordered, from MPI_Init on.
    """
    values = {"json": as_json, "dry-run": request.dry_run, "verify": verify, "inside": inside}
    values |= {"world": world, "mpicc": bool(mpicc), "bind": request.bind}
    for option, other in (*_NEEDS, *_APART):
        needed = (option, other) in _NEEDS
        if values[option] and values[other] != needed:
            raise UsageError(f"--{option} {'goes' if needed else 'does not go'} with --{other}")
    if inside:
        from nidmap.rankmap.runtime import inside as reordering

        return reordering.start_inside(request, world, strict, mpicc)
    if request.dry_run:
        return _show_launch(request, as_json, strict)
    return _start(request, strict, verify)


def _show_launch(request: RunRequest, as_json: bool, strict: bool) -> int:
    """Print the command that a run would start; with ``--order-dir`` keep its order file."""
    launch, unclear, lines = Launch(request.command), "", []
    known: dict[str, Any] = dict.fromkeys(("order_file", "strategy", "optimised", "gain"))
    try:
        *_, plan = _make_plans(request)
        kept = plan.path if request.order_dir is not None else None
        if kept is None:
            discard_launch(plan.path)
        where = f"the order file is {kept}" if kept else (
            "a dry run leaves no order file: --order-dir DIR keeps one"
        )  # fmt: skip
        launch, origin = plan.launch, plan.order.origin
        lines = [plan.words, *plan.remarks, where]
        known = {"order_file": kept, "strategy": origin.strategy}
        known |= {"optimised": origin.optimised, "gain": plan.gain}
    except (Exception, SystemExit) as error:
        unclear = error_text(error)
        if report_unclear(unclear, strict):
            return REFUSED
    shown = {"argv": list(launch.argv), "env": launch.env, "command": launch.line()}
    document = {"schema": SCHEMA, **shown, **known, "unclear": unclear}
    write_output(to_json(document) if as_json else launch.line() + "\n")
    for line in lines:
        say(f"nidmap: {line}")
    return 0


def _start(request: RunRequest, strict: bool, verify: bool) -> int:
    """Replace this process with the launcher; return only if it cannot be started."""
    result = plan_aside(lambda: _make_plans(request), request.patience)
    plan, unclear = result.plan, "" if result.plan else result.failure
    path = plan.path if plan else ""
    env = job_environment(os.environ)
    if plan and verify:
        seconds = request.patience
        seconds = max(seconds, _VERIFYING) if strict or not seconds else seconds
        unclear = _verify_ranks(plan, env, strict, seconds)
    if plan is None or unclear:
        discard_launch(path)
        if report_unclear(unclear, strict):
            return REFUSED
        become(Launch(request.command), env)
    for line in (plan.words, *plan.remarks):
        report(line)
    if request.order_dir is None:
        remove_at_end(path)
    try:
        become(plan.launch, env)
    except NidmapError:
        discard_launch(path)
        raise


def _make_plans(request: RunRequest) -> Iterator[Prepared]:
    """Yield, in the child, a launch that could start, and then the same with its expected gain."""
    from nidmap.rankmap.launch import job as launch_job

    job = launch_job.read_job(request, os.environ)
    prepared = job.prepared()
    yield prepared
    try:
        expected = job.expected(prepared.order)
    except Exception as error:  # the order can be used even if its gain cannot be computed
        from nidmap.rankmap.launch import expectation as expectations

        expected = expectations.Expectation(f"{expectations.UNKNOWN}: {error_text(error, 80)}")
    words = job.words(prepared.order, expected.words)
    remarks = [*prepared.remarks, *job.asked_remarks()]
    yield replace(prepared, words=words, remarks=remarks, gain=expected.gain)


def _verify_ranks(plan: PlannedLaunch, env: dict[str, str], strict: bool, seconds: float) -> str:
    """Run a job step that reports where its ranks are; return what is wrong, '' if nothing.

    That it says nothing in this many seconds is no reason to drop the order, unless `strict`.
    """
    planned = plan.rank_nodes
    try:
        hint = "--patience allows more time"
        hosts = query_rank_nodes(plan.probe, env, len(planned), seconds, hint)
    except LaunchError as error:
        unclear = f"cannot verify: {error}"
        if not strict:
            report(unclear)
        return unclear if strict else ""
    pairs = zip(hosts, planned, strict=True)
    wrong = [r for r, (host, node) in enumerate(pairs) if not same_host(host, node)]
    if wrong:
        first = wrong[0]
        return (
            f"{len(wrong)} of {len(planned)} ranks are not where the plan says, "
            f"first rank {first}: on {hosts[first]}, planned {planned[first]}"
        )
    nodes = len(set(planned))
    report(f"verified: all {len(planned)} ranks are where the plan says, on {nodes} nodes")
    return ""


def job_step_options(
    command: Sequence[str], words: Mapping[str, str], process: int
) -> tuple[dict[str, str], str]:
    """Return the srun options that start a step's ranks in order, and a description.

    For a filter that may only set options (``nidmap slurm launch``).

    `command`: srun as the user has written it. `words`: what the job's comment says: ``pattern``,
    ``bytes``. `process`: id of srun: the order file is removed when it has ended.
    """
    from nidmap.rankmap.launch import job as launch_job

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
            raise LaunchError(
                "srun --export does not pass on the variables that Cray MPICH's order needs"
            )
        options["export"] = ",".join(["ALL", *(f"{k}={v}" for k, v in variables.items())])
    return options, launch.words(prepared.order, expected.words)
