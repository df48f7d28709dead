"""Several launches of the same A/B measurement, one after another, each a fresh mpiexec.

What one launch fixes (which processes sit where, how memory was laid out) is
part of every sample of it and of none of the others, so that only several
launches tell what an order does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from placement.commands.common import say
from placement.errors import LaunchError, UsageError
from workloads.launched import mpiexec_words, rank_environment

if TYPE_CHECKING:
    from workloads.ab.analysis import Run
    from workloads.options import Common

__all__ = ["LAUNCH", "many"]

#: Tells a launch which one it is and where its samples go: ``2:/tmp/…/launch-2.jsonl``.
LAUNCH = "NIDMAP_AB_LAUNCH"


def many(common: Common, launches: int) -> list[Run]:
    """Start the launches and return their samples.

    Where one fails, those before it are returned, with a word about it.

    Raises
    ------
    UsageError
        Without ``-n``.
    LaunchError
        Where not even the first one succeeds.
    """
    if common.ranks is None:
        raise UsageError("--launches starts mpiexec: how many ranks?", "-n says it")
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(prefix="nidmap-ab-") as folder:
        for number in range(launches):
            run = _launch(common.ranks, number, os.path.join(folder, f"launch-{number}.jsonl"))
            if run is None:
                break
            runs.append(run)
    if not runs:
        raise LaunchError("the launch failed")
    return runs


def _launch(ranks: int, number: int, path: str) -> Run | None:
    """Run one launch and return its samples, None where it failed."""
    from workloads.ab.analysis import Run
    from workloads.results import load, records

    env = {**rank_environment(ranks), LAUNCH: f"{number}:{path}"}
    command = [*mpiexec_words(ranks), sys.executable, *sys.orig_argv[1:]]
    try:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        raise LaunchError(f"cannot start {command[0]}: {error.strerror or error}") from None
    if done.returncode:
        say(f"nidmap: launch {number + 1} failed (code {done.returncode})")
    kept = path if os.path.exists(path) else f"{path}.part"
    if not os.path.exists(kept) or done.returncode not in (0, 130):
        return None
    header, frame = load(kept)
    return Run(f"launch {number + 1}", header, records(frame)) if len(frame) else None
