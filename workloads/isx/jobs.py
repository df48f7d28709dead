"""The paper's first protocol: several jobs of their own, and the minimum over them.

A job is a launch: what a launch draws at random (nodes, links, memory) is
drawn anew for each.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from placement.errors import LaunchError, NidmapError, printable
from workloads.launched import Launches, mpiexec_words, rank_environment
from workloads.world import interrupted

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["pooled", "run_jobs"]


def run_jobs(jobs: int, ranks: int, output: str | None) -> tuple[list[dict[str, Any]], bool]:
    """Launch this command so many times, one after another.

    Returns each job's document, and whether they were interrupted: then only
    those of the jobs that were finished by then.

    Parameters
    ----------
    jobs : int
    ranks : int
        Ranks of each.
    output : str or None
        File for the raw samples: job k writes ``name.k.suffix``.

    Raises
    ------
    LaunchError
        Where a job cannot be started or prints no result.
    NidmapError
        What a job has said itself, with its exit code; or interrupted before
        one was finished.
    """
    documents: list[dict[str, Any]] = []
    with Launches() as children:
        for job in range(jobs):
            words = [*mpiexec_words(ranks), sys.executable, *sys.orig_argv[1:], "--json"]
            if output is not None:
                stem, suffix = os.path.splitext(output)
                words += ["-o", f"{stem}.{job}{suffix}"]
            code, out = children.run(words, rank_environment(ranks), heard=True)
            if children.stopped or code == interrupted().exit_code:
                if not documents:
                    raise interrupted()
                return documents, True
            documents.append(_document(code, out, job))
    return documents, False


def _document(code: int, out: bytes, job: int) -> dict[str, Any]:
    if code:
        error = NidmapError(f"job {job} ended with code {code}")
        error.exit_code = code if 0 < code < 126 else 4
        raise error
    try:
        document: dict[str, Any] = json.loads(out)
    except ValueError:
        shown = printable(out[:60].decode("utf-8", "replace"))
        raise LaunchError(f"job {job} printed no result but {shown!r}") from None
    return document


def pooled(documents: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each case the exchange's seconds of every job, and their minimum.

    A job's figure is that of its best repetition: the slowest rank's seconds,
    and the sum over all ranks (the paper's "total time across all PEs").

    Examples
    --------
    >>> def job(best, mean):
    ...     seconds = {"KeyExchange": {"best": best, "best_mean": mean}}
    ...     case = {"exchange": "random", "sided": "two", "seconds": seconds}
    ...     return {"ranks": 4, "cases": [case]}
    >>> pooled([job(0.3, 0.2), job(0.2, 0.1)])
    [{'exchange': 'random', 'sided': 'two', 'slowest': 0.2, 'all_ranks': 0.4, 'jobs': [0.3, 0.2]}]
    """
    rows = []
    for k, case in enumerate(documents[0]["cases"]):
        entries = [d["cases"][k]["seconds"]["KeyExchange"] for d in documents]
        ranks = documents[0]["ranks"]
        rows.append(
            {
                "exchange": case["exchange"],
                "sided": case["sided"],
                "slowest": min(e["best"] for e in entries),
                "all_ranks": min(e["best_mean"] for e in entries) * ranks,
                "jobs": [e["best"] for e in entries],
            }
        )
    return rows
