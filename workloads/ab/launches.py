"""Several launches of the same A/B measurement, one after another, each a fresh mpiexec.

What one launch fixes (which processes sit where, how memory was laid out) is
part of every sample of it and of none of the others, so that only several
launches tell what an order does.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from placement.commands.common import say
from placement.errors import LaunchError, UsageError
from workloads.launched import Launches, mpiexec_words, parse_count, rank_environment
from workloads.world import interrupted

if TYPE_CHECKING:
    from workloads.results import Run

__all__ = ["run_launches", "this_launch"]

#: Tells a launch which one it is and where its samples go: ``2:/tmp/…/launch-2.jsonl``.
_LAUNCH = "NIDMAP_AB_LAUNCH"


def this_launch() -> tuple[int, str | None]:
    """Return which launch this is, and the file that `run_launches` wants of it."""
    number, _, path = os.environ.get(_LAUNCH, "").partition(":")
    if path:
        return int(number), path
    return parse_count(os.environ.get("SLURM_STEP_ID")) or 0, None


def run_launches(ranks: int | None, launches: int) -> tuple[list[Run], bool]:
    """Start the launches and return their samples, and whether they were interrupted.

    Where one fails or is interrupted, what there is until then is returned.

    Raises
    ------
    UsageError
        Without ``-n``.
    LaunchError
        Where not even the first one succeeds.
    NidmapError
        Interrupted before there are samples.
    """
    import tempfile

    if ranks is None:
        raise UsageError("--launches starts mpiexec: how many ranks?", "-n says it")
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(prefix="nidmap-ab-") as folder, Launches() as children:
        for number in range(launches):
            path = os.path.join(folder, f"launch-{number}.jsonl")
            run = _run_launch(children, ranks, number, path)
            runs += [run] if run is not None else []
            if run is None or children.stopped:
                break
    if not runs:
        raise interrupted() if children.stopped else LaunchError("the launch failed")
    return runs, children.stopped


def _run_launch(children: Launches, ranks: int, number: int, path: str) -> Run | None:
    """Run one launch and return its samples, None where it failed."""
    from workloads.results import read_run

    env = {**rank_environment(ranks), _LAUNCH: f"{number}:{path}"}
    command = [*mpiexec_words(ranks), sys.executable, *sys.orig_argv[1:]]
    code, _ = children.run(command, env)
    children.stopped |= code == interrupted().exit_code
    if code and not children.stopped:
        say(f"nidmap: launch {number + 1} failed (code {code})")
        return None
    kept = path if os.path.exists(path) else f"{path}.part"
    run = read_run(kept, f"launch {number + 1}") if os.path.exists(kept) else None
    return run if run and run.rows else None
