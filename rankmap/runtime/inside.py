"""``nidmap run --inside``: a running program asks for its order, and is answered.

The launcher, whichever it is, starts the ranks as it is told. The library before the program
(`rankmap.preload`) has a child process of rank 0 answer: its question on standard input is who
talks to whom and which host each process is on, the answer on standard output is the old rank of
each new one, or ``no:`` and why; a line on standard error says what the order was chosen by.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import named_specs, write_output
from placement.errors import NidmapError, UsageError, error_text
from placement.support.lazy import lazy
from rankmap.launch import Launch
from rankmap.launch.process import REFUSED, become, is_refused, job_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from placement import load
    from rankmap import predict, preload
    from rankmap.commands.model import RunRequest
    from rankmap.pattern import Pattern, graph
    from rankmap.runtime import rerank
    from rankmap.runtime.rerank import Reranked

    #: Of each process: its host, and Slurm's name for it, '' for none.
    Hosts = list[tuple[str, str]]
else:  # a launch starts without numpy
    np, predict = lazy("numpy"), lazy("rankmap.predict")
    load, preload = lazy("placement.load"), lazy("rankmap.preload")
    graph, rerank = lazy("rankmap.pattern.graph"), lazy("rankmap.runtime.rerank")

#: First line of a question.
_HEAD = "nidmap 1"

#: Words for what a question's second line says besides a pattern.
_GRAPH, _WORLD = "graph", "world"


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
    question, env = _question_for(request, world), job_environment(os.environ)
    command, specs = request.command, question["machine"].split()
    try:
        if "-" in specs:
            raise UsageError("--inside asks for the order later, and cannot read this -m - then")
        if specs:
            load.load_machine(*specs)  # what is wrong with it is said before the ranks start
        variables = {"NIDMAP_ASK": asking_command(question)}
        variables |= {"NIDMAP_WORLD": "1"} if world else {}
        libraries = preload.libraries_for(command, env, mpicc)
        argv, more = preload.preload(command, libraries, variables, env)
        launch = Launch(tuple(argv), more)
    except (NidmapError, OSError) as error:
        if is_refused(str(error), strict):
            return REFUSED
        launch = Launch(command)
    if not request.dry_run:
        become(launch, env)
    write_output(launch.line() + "\n")
    return 0


def _question_for(request: RunRequest, world: bool) -> dict[str, Any]:
    """Return how the ranks are to be answered, as `answer` takes it, and whether ``quiet``ly."""
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
        "quiet": bool(click.get_current_context().meta.get("quiet")),
    }


def asking_command(question: Mapping[str, Any]) -> str:
    """Return the shell line that answers, for ``$NIDMAP_ASK``.

    It looks for nothing in the program's working directory.
    """
    code = "import sys; sys.path[:] = [p for p in sys.path if p]; "
    code += "from rankmap.runtime.inside import main; main()"
    return "exec " + shlex.join([sys.executable, "-c", code, json.dumps(question)])


def main() -> None:
    """Answer the question on standard input; whatever fails is said in the answer's own line."""
    try:
        question = sys.stdin.buffer.read().decode("utf-8", "replace")
        how = json.loads(sys.argv[1])
        quiet = how.pop("quiet")
        reranked = answer(question, **how)
        text = "\n".join(map(str, reranked.ranks.tolist()))
        if reranked.remark and not quiet:
            remark = "; ".join(filter(None, [reranked.warning, reranked.remark]))
            print(f"nidmap: order of {len(reranked.ranks)} ranks {remark}", file=sys.stderr)
    except Exception as error:
        text = f"no: {error_text(error)}"
    print(text, flush=True)


def answer(
    question: str,
    job: Mapping[str, Any] | None = None,
    machine: str = "",
    strategy: str = "",
    order_file: str = "",
) -> Reranked:
    """Return the processes in their new order.

    Parameters
    ----------
    question : str
    job : mapping or None
        What a `Job` takes; without a ``pattern`` the question says who talks to whom.
    machine : str
        Specs as ``-m`` takes them, '' for ``$NIDMAP_MACHINE``.
    strategy, order_file : str
        See `rankmap.runtime.rerank.rerank`.

    Raises
    ------
    UsageError
        A question of another nidmap's library, or one about no pattern.
    NidmapError
        A pattern or an order file that does not fit the processes.

    Examples
    --------
    >>> text = "nidmap 1\\nstencil:2x2\\n4 4\\na -\\nb -\\na -\\nb -\\n"
    >>> answer(text, strategy="row-major").ranks.tolist()
    [0, 2, 1, 3]
    """
    pattern, hosts, edges = _parse_request(question)
    words = dict(job or {})
    if not (words.get("pattern") or order_file):
        words["pattern"] = _named_pattern(pattern, hosts, edges)
    return rerank.rerank(hosts, predict.Job(**words), machine or None, strategy, order_file)


def _parse_request(text: str) -> tuple[str, Hosts, str]:
    """Return who asks: its pattern, the hosts of its processes, the edges of its graph."""
    head, pattern, sizes, *rest = text.split("\n", 3) if text.count("\n") > 3 else [""] * 3
    if head != _HEAD:
        raise UsageError("the library before the program is of another nidmap version")
    cells, size = map(int, sizes.split())
    lines = rest[0].split("\n", size)
    named = [line.split() for line in lines[:cells]]
    hosts = [(host, "" if node == "-" else node) for host, node in named]
    return pattern, hosts, lines[size]


def _named_pattern(pattern: str, hosts: Hosts, edges: str) -> str | Pattern:
    """Return the pattern of a question; that of a graph has a name where it is a grid."""
    if pattern == _WORLD:
        raise UsageError("no pattern is known of MPI_COMM_WORLD", "give --pattern")
    if pattern != _GRAPH:
        return pattern
    a, b, weight = np.array(edges.split(), dtype=np.int64).reshape(-1, 3).T
    edges_graph = graph.from_edges(len(hosts), a, b, weight.astype(float))
    grid = graph.stencil_of(edges_graph)
    return grid.spec if grid else edges_graph
