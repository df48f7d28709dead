"""``nidmap run`` behind its options: plan aside, check where asked, become the launcher.

With ``--inside`` nothing is planned: the launcher, whichever it is, starts the ranks as it is
told, and a library before them asks `rankmap.runtime.answer` for their order where the program
lets MPI reorder them.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import named_specs, say, to_json, write_output
from placement.errors import LaunchError, NidmapError, UsageError, error_text, printable
from placement.support.lazy import lazy
from rankmap.launch import Launch
from rankmap.launch.planning import PlannedLaunch, plan_aside
from rankmap.launch.process import become, discard_launch, job_environment, remove_at_end
from rankmap.launch.queries import plain_host, query_rank_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement import load
    from rankmap import preload
    from rankmap.commands.model import RunRequest
    from rankmap.launch import expectation as expectations
    from rankmap.launch import job as launch_job
    from rankmap.runtime import answer
    from rankmap.runtime.answer import Answerer
else:  # a launch has to be quick: numpy is loaded by the child that plans
    load, preload = lazy("placement.load"), lazy("rankmap.preload")
    expectations, launch_job = lazy("rankmap.launch.expectation"), lazy("rankmap.launch.job")
    answer = lazy("rankmap.runtime.answer")

SCHEMA = "nidmap.run/1"

#: Exit code of `run` for its own refusal under ``--strict``.
REFUSED = 125

#: Seconds that a step which only says where its ranks are may take where patience has no limit,
#: or where the job does not run without its answer.
VERIFYING = 60.0

#: What is said of the order file that a dry run's command names.
NO_FILE = "a dry run leaves no order file: --order-dir DIR keeps one"


def show(request: RunRequest, as_json: bool, strict: bool) -> int:
    """Print the command that a run would start; ``--order-dir`` alone leaves its order file."""
    launch, unclear, lines = Launch(request.command), "", []
    known: dict[str, Any] = dict.fromkeys(("order_file", "strategy", "optimised", "gain"))
    try:
        job = launch_job.read_job(request, os.environ)
        prepared = job.prepared()
        expected, order = job.expected(prepared.order), prepared.order
        kept = request.order_dir is not None
        where = f"the order file is {prepared.path}" if kept else NO_FILE
        lines = [job.words(order, expected.words), *prepared.remarks, *job.asked_remarks(), where]
        known.update(order_file=prepared.path if kept else None, strategy=order.origin.strategy)
        if not kept:
            discard_launch(prepared.path)
        known.update(optimised=order.origin.optimised, gain=expected.gain)
        launch = prepared.launch
    except (Exception, SystemExit) as error:
        unclear = error_text(error)
        report(f"{unclear}: {consequence(strict)}")
        if strict:
            return REFUSED
    shown = {"argv": list(launch.argv), "env": launch.env, "command": launch.line()}
    document = {"schema": SCHEMA, **shown, **known, "unclear": unclear}
    write_output(to_json(document) if as_json else launch.line() + "\n", None)
    for line in lines:
        say(f"nidmap: {line}")
    return 0


def start(request: RunRequest, strict: bool, verify: bool) -> int:
    """Become the launcher; come back only to say that it cannot be started."""
    result = plan_aside(lambda: _make_plans(request), request.patience)
    plan, unclear = result.plan, "" if result.plan else result.failure
    if result.interrupted:
        discard_launch(plan.path if plan else "")
        raise KeyboardInterrupt
    env = job_environment(os.environ)
    if plan and verify:
        seconds = request.patience
        seconds = max(seconds, VERIFYING) if strict or not seconds else seconds
        unclear = _verify_ranks(plan, env, strict, seconds)
    if plan is None or unclear:
        report(f"{unclear}: {consequence(strict)}")
        discard_launch(plan.path if plan else "")
        if strict:
            return REFUSED
        become(Launch(request.command), env)
    for line in (plan.words, *plan.remarks):
        report(line)
    if request.order_dir is None:
        remove_at_end(plan.path)
    try:
        become(plan.launch, env)
    except NidmapError:
        discard_launch(plan.path)
        raise


def _make_plans(request: RunRequest) -> Iterator[PlannedLaunch]:
    """Yield what could start, and then the same with what is expected of it; in the child."""
    job = launch_job.read_job(request, os.environ)
    prepared = job.prepared()
    yield prepared
    try:
        expected = job.expected(prepared.order).words
    except Exception as error:  # the order is there, whatever is expected of it
        expected = f"{expectations.UNKNOWN}: {error_text(error, 80)}"
    remarks = [*prepared.remarks, *job.asked_remarks()]
    yield replace(prepared, words=job.words(prepared.order, expected), remarks=remarks)


def _verify_ranks(plan: PlannedLaunch, env: dict[str, str], strict: bool, seconds: float) -> str:
    """Run a step that says where its ranks are and compare; return what is wrong, '' if nothing.

    That it says nothing in so many seconds is no reason to drop the order, unless `strict`.
    """
    planned = plan.rank_nodes
    try:
        hint = "--patience gives it longer"
        hosts = query_rank_nodes(plan.probe, env, len(planned), seconds, hint)
    except LaunchError as error:
        if strict:
            return f"cannot verify: {error}"
        report(f"cannot verify: {error}")
        return ""
    pairs = zip(hosts, planned, strict=True)
    wrong = [r for r, (host, node) in enumerate(pairs) if plain_host(host) != plain_host(node)]
    if wrong:
        first = wrong[0]
        return (
            f"{len(wrong)} of {len(planned)} ranks are not where the plan says, "
            f"first rank {first}: on {hosts[first]}, planned {planned[first]}"
        )
    nodes = len(set(planned))
    report(f"verified: all {len(planned)} ranks are where the plan says, on {nodes} nodes")
    return ""


def consequence(strict: bool) -> str:
    """Return what follows where it is unclear how a command can be started in order."""
    return "not started (--strict)" if strict else "default order"


def report(text: str) -> None:
    """Write one line on stderr; that it is closed must not cost the user their job."""
    with contextlib.suppress(OSError, ValueError):
        say(f"nidmap: {printable(text, 500)}")


def start_inside(request: RunRequest, world: bool, strict: bool, mpicc: str = "") -> int:
    """Become the launcher, with a library before its ranks that gives them their order.

    The ranks themselves say where they are.

    Parameters
    ----------
    request : RunRequest
    world : bool
        Whether MPI_COMM_WORLD itself is reordered.
    strict : bool
        Do not run what the library cannot be loaded before.
    mpicc : str
        The program's compiler, '' where it is not named.

    Returns
    -------
    int
        Only where nothing was started: 0 after a dry run, or `REFUSED`.

    Raises
    ------
    UsageError
        Nodes or ranks, or a world of which nothing says who talks to whom.
    LaunchError
        The command cannot be started.
    """
    answerer, env = _answer_maker(request, world), job_environment(os.environ)
    try:
        launch = _preload_command(request, answerer, world, mpicc, env)
    except (NidmapError, OSError) as error:
        report(f"{error}: {consequence(strict)}")
        if strict:
            return REFUSED
        launch = Launch(request.command)
    if not request.dry_run:
        become(launch, env)
    write_output(launch.line() + "\n", None)
    return 0


def _preload_command(
    request: RunRequest, answerer: Answerer, world: bool, mpicc: str, env: dict[str, str]
) -> Launch:
    """Return the command with the library before its ranks."""
    specs = answerer.machine.split()
    if "-" in specs:
        raise UsageError("--inside asks for the order later, and cannot read this -m - then")
    if specs:
        load.load_machine(*specs)  # what is wrong with it is said before the ranks start
    variables = {"NIDMAP_ASK": answer.asking_command(answerer)}
    variables |= {"NIDMAP_WORLD": "1"} if world else {}
    libraries = preload.libraries_for(request.command, env, mpicc)
    argv, more = preload.preload(request.command, libraries, variables, env)
    return Launch(tuple(argv), more)


def _answer_maker(request: RunRequest, world: bool) -> Answerer:
    """Return what the ranks are answered."""
    job, path = request.job, request.order_file
    if job.nodes or job.ppn:
        raise UsageError("--inside finds nodes and ranks itself: drop --nodes and --ppn")
    pattern = job.named_pattern(needed=False)
    if world and not (pattern or path):
        raise UsageError("--world needs --pattern or --order", "who talks to whom is not known yet")
    return answer.Answerer(
        " ".join(named_specs(job.specs)),
        "" if request.strategy == "auto" else request.strategy,
        os.path.abspath(path) if path else "",
        job={"pattern": pattern, **job.sending()},
        quiet=bool(click.get_current_context().meta.get("quiet")),
    )
