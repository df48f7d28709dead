"""``nidmap run --inside``: nothing is planned, the running program is given its order.

The launcher, whichever it is, starts the ranks as it is told; a library before them asks
`rankmap.runtime.answer` for their order where the program lets MPI reorder them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from placement.commands.common import named_specs, write_output
from placement.errors import NidmapError, UsageError
from placement.support.lazy import lazy
from rankmap.launch import Launch
from rankmap.launch.process import become, job_environment
from rankmap.launch.run import REFUSED, consequence, report

if TYPE_CHECKING:
    from placement import load
    from rankmap.commands.model import RunRequest
    from rankmap.preload import build
    from rankmap.runtime import answer
    from rankmap.runtime.answer import Answerer
else:  # a launch has to be quick
    load = lazy("placement.load")
    answer, build = lazy("rankmap.runtime.answer"), lazy("rankmap.preload.build")

__all__ = ["start_inside"]


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
    libraries = build.libraries_for(request.command, env, mpicc)
    argv, more = build.preload(request.command, libraries, variables, env)
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
