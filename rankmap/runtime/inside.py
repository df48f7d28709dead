# SPDX-License-Identifier: Apache-2.0
"""``nidmap run --inside``: answers a running program that asks for its order.

The launcher, whichever it is, starts the ranks as it is told. The library before the program
(`nidmap.rankmap.preload`) has a child process of rank 0 answer: its question on standard input is
who talks to whom and which host each process is on, the answer on standard output is the old rank
of each new one, or ``no:`` and why; a line on standard error says what the order was chosen by.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

from nidmap.placement.errors import NidmapError, UsageError, error_text
from nidmap.placement.machine_option import named_specs
from nidmap.placement.support.writing import write_output
from nidmap.placement.ui import is_quiet
from nidmap.rankmap.launch import Launch
from nidmap.rankmap.launch.process import REFUSED, become, job_environment, report_unclear

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nidmap.rankmap.launch.request import RunRequest


def start_inside(request: RunRequest, world: bool, strict: bool, mpicc: str = "") -> int:
    """Replace this process with the launcher and a preloaded library that orders its ranks.

    The ranks themselves say where they are.

    `world`: whether MPI_COMM_WORLD itself is reordered. `strict`: do not run what the library
    cannot be loaded before. `mpicc`: the program's compiler, '' where it is not named. Only where
    nothing was started: 0 after a dry run, or `REFUSED`.
    """
    from nidmap.placement import load
    from nidmap.rankmap import preload

    options, env = _answer_options(request, world), job_environment(os.environ)
    command, specs = request.command, options["machine"].split()
    try:
        if "-" in specs:
            raise UsageError("-m - cannot be read later, when --inside needs it", "use -m FILE")
        if specs:
            load.load_machine(*specs)  # faults in it are reported before the ranks start
        variables = {"NIDMAP_ASK": asking_command(options)}
        variables |= {"NIDMAP_WORLD": "1"} if world else {}
        libraries = preload.libraries_for(command, env, mpicc)
        argv, more = preload.preload(command, libraries, variables, env)
        launch = Launch(tuple(argv), more)
    except (NidmapError, OSError) as error:
        if report_unclear(str(error), strict):
            return REFUSED
        launch = Launch(command)
    if not request.dry_run:
        become(launch, env)
    write_output(launch.line() + "\n")
    return 0


def _answer_options(request: RunRequest, world: bool) -> dict[str, Any]:
    """Return the options for answering ranks (`rerank.answer`), and whether ``quiet`` is set."""
    job, path = request.job, request.order_file
    if job.nodes or job.ppn:
        raise UsageError("--inside finds nodes and ranks itself: drop --nodes and --ppn")
    pattern = job.named_pattern(needed=False)
    if world and not (pattern or path):
        raise UsageError("--world needs --pattern or --order", "who talks to whom is not known yet")
    return {
        "machine": " ".join(named_specs(job.specs)),
        "strategy": "" if request.strategy == "auto" else request.strategy,
        "order_file": os.path.abspath(path) if path else "",
        "job": {"pattern": pattern, **job.sending()},
        "quiet": is_quiet(),
    }


def asking_command(options: Mapping[str, Any]) -> str:
    """Return the shell command that answers, for ``$NIDMAP_ASK``.

    It looks for nothing in the program's working directory.
    """
    code = "import sys; sys.path[:] = [p for p in sys.path if p]; "
    code += "from nidmap.rankmap.runtime.inside import main; main()"
    return "exec " + shlex.join([sys.executable, "-c", code, json.dumps(options)])


def main() -> None:
    """Answer the request on standard input; errors go into the answer's own line."""
    from nidmap.rankmap.runtime import rerank

    try:
        question = sys.stdin.buffer.read().decode("utf-8", "replace")
        options = json.loads(sys.argv[1])
        quiet = options.pop("quiet")
        reranked = rerank.answer(question, **options)
        text = "\n".join(map(str, reranked.ranks.tolist()))
        if reranked.remark and not quiet:
            remark = "; ".join(filter(None, [reranked.warning, reranked.remark]))
            print(f"nidmap: order of {len(reranked.ranks)} ranks {remark}", file=sys.stderr)
    except Exception as error:
        text = f"no: {error_text(error)}"
    print(text, flush=True)
