"""Several cases side by side in one job: every repetition runs all of them, in turn.

What disturbs a machine for a while then disturbs all cases alike. The case
that comes first changes with the repetition.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workloads.phases import reduced
from workloads.progress import Progress
from workloads.session import Result, quiet_barrier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpi4py import MPI

    from workloads.session import Session

__all__ = ["Case", "interleave"]


@dataclass(frozen=True, slots=True)
class Case:
    """One of the cases.

    Attributes
    ----------
    labels : mapping
        What it is: columns of the samples.
    run : callable or None
        One repetition, returning this rank's seconds; None on ranks that do
        not take part.
    verify : callable or None
        Called after the last repetition.
    comm : mpi4py.MPI.Intracomm
        The ranks that take part, rank 0 of the world among them.
    """

    labels: Mapping[str, Any]
    run: Callable[[], Mapping[str, float]] | None
    verify: Callable[[], None] | None
    comm: MPI.Intracomm


def interleave(session: Session, cases: Sequence[Case]) -> list[Result]:
    """Measure all cases, interleaved, and return the result of each. Collective.

    Ends early where the session must: what is finished is kept.
    """
    results = [Result(dict(case.labels)) for case in cases]
    session.results.extend(results)
    warmup, total = session.common.warmup, session.common.warmup + session.common.repeat
    last = [0.0] * len(cases)
    with Progress(session.workload, total * len(cases), shown=session.root) as progress:
        for step in range(total * len(cases)):
            done, turn = divmod(step, len(cases))
            k = (turn + done) % len(cases)
            if session.over(last[k]):
                break
            began = time.monotonic()
            seconds = _one(session, cases[k])
            if seconds:
                labels = {"warmup": int(done < warmup), "repetition": done, **cases[k].labels}
                session.sample(seconds, **labels)
                if done >= warmup:
                    results[k].add(seconds)
            verify = cases[k].verify
            if done == total - 1 and verify is not None:
                verify()
            last[k] = time.monotonic() - began
            progress.at(step + 1)
    return results


def _one(session: Session, case: Case) -> dict[str, dict[str, float]] | None:
    """Run one repetition of one case; who does not take part sleeps."""
    seconds = None
    if case.run is not None:
        case.comm.Barrier()
        seconds = reduced(case.comm, case.run())
    if case.comm is not session.comm:
        quiet_barrier(session.comm, asleep=case.run is None)
    return seconds
