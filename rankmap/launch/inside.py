"""``nidmap run --inside``: the order is given to the running program, by any launcher."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from placement.commands.common import say, write_output
from placement.errors import NidmapError, UsageError
from placement.load import load_machine
from rankmap.launch import Launch
from rankmap.launch.process import become, job_environment
from rankmap.preload.loading import library_for, preload
from rankmap.runtime.answer import asking_command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rankmap.runtime.answer import Answerer

__all__ = ["REFUSED", "run_inside"]

#: Exit code where the library cannot be loaded, under ``--strict``.
REFUSED = 125


def run_inside(
    command: Sequence[str], how: Answerer, world: bool, strict: bool, dry_run: bool
) -> int:
    """Become the launcher, with a library before its ranks that gives them their order.

    Parameters
    ----------
    command : sequence of str
        Launcher, options, program.
    how : Answerer
        What the ranks are answered.
    world : bool
        Whether MPI_COMM_WORLD itself is reordered.
    strict : bool
        Do not run what the library cannot be loaded before.
    dry_run : bool
        Print the command instead.

    Returns
    -------
    int
        Only where nothing was started: 0, or `REFUSED`.

    Raises
    ------
    UsageError
        A world of which nothing says who talks to whom.
    LaunchError
        The command cannot be started.
    """
    if world and not (how.pattern or how.order):
        raise UsageError("--world needs --pattern or --order", "who talks to whom is not known yet")
    env = job_environment(os.environ)
    try:
        launch = _launch(command, how, world, env)
    except (NidmapError, OSError, subprocess.SubprocessError) as error:
        say(f"nidmap: {error}: " + ("not started (--strict)" if strict else "default order"))
        if strict:
            return REFUSED
        launch = Launch(tuple(command))
    if dry_run:
        write_output(launch.line() + "\n", None)
        return 0
    become(launch, env)
    return 0  # exec does not return


def _launch(command: Sequence[str], how: Answerer, world: bool, env: Mapping[str, str]) -> Launch:
    """Return the launch of a command whose ranks ask."""
    specs = how.machine.split()
    if "-" in specs:
        raise UsageError("--inside asks for the order later, and cannot read this -m - then")
    if specs:
        load_machine(*specs)  # what is wrong with it is said before the ranks start
    variables = {"NIDMAP_ASK": asking_command(how)}
    if world:
        variables["NIDMAP_WORLD"] = "1"
    argv, more = preload(command, library_for(command, env), variables, env)
    return Launch(tuple(argv), more)
