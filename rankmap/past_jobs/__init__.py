# SPDX-License-Identifier: Apache-2.0
"""How jobs were placed, compared with the best of the nodes that were free at their start.

The best is the best of what a few planners choose that take a millisecond (`PLANNERS`), by
`nidmap.rankmap.past_jobs.quick_cost`; a job that sits as well as any of them would on an empty
machine is compared with nothing else.

What jobs send is said by a small TOML file, by the names of jobs or users::

    [[application]]
    name = "lammps*"          # of jobs; or user = "ada"; * and ? stand for anything
    pattern = "stencil:auto"
    communication = 0.3       # share of its time; or [0.2, 0.4]
    ppn = 32

The first that fits a job counts. Nothing is known of a job that none fits: it is compared with
a stencil and an all-to-all.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from typing import Annotated

import msgspec
import numpy as np

from nidmap.placement.errors import NidmapError, ParseError, UsageError, schema_sentence
from nidmap.placement.job_nodes import JobNodes, free_at_starts
from nidmap.placement.machine import Machine
from nidmap.placement.network.connected import connected_nodes
from nidmap.placement.planners import Request, find, spans
from nidmap.placement.records import JobRecord
from nidmap.placement.scheduler.kinds import kinds_of, offered
from nidmap.placement.sites.loading import read_tables
from nidmap.placement.support.array_types import Ints, Mask
from nidmap.rankmap.past_jobs.quick_cost import QuickCost, Span
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.tasks import ranks_here, run_tasks

#: Planners of which the best result is used.
PLANNERS = ("level-spread", "spread", "compact")

#: A job that is slower by no larger share than this sits as well as it could.
ALIKE = 0.01

#: Jobs that one worker is given at a time, and from how many on there are workers.
_CHUNK, _FEW = 250, 1000


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one job."""

    job: int  # its place among the `nidmap.placement.job_nodes.JobNodes`
    nodes: int
    touches: dict[str, int]  # groups, chassis, leaves … that it had nodes in
    spread: float  # share of its pairs of nodes that are in different outermost units, 0 to 1
    free: int  # nodes that it could have had, its own among them
    slowdown: Span  # how many times as long its communication takes as on the best of these
    patterns: tuple[str, ...]  # the assumed patterns; several if the pattern is not known
    best: str  # the strategy that chose the best nodes; '' where its own are
    share: Span  # share of its time that it communicates
    ppn: int = 1  # ranks per node that it was judged with

    @property
    def saved(self) -> Span:
        """Share of the job's run time that the best placement would have saved."""
        parts = zip(self.share, self.slowdown, strict=True)
        return Span(*(share * (1 - 1 / slow) for share, slow in parts))


class Judge:
    """Judges jobs on one machine, one after another.

    `applications`: the first that fits a job says what it sends. Ranks per node that it does not
    state are the job's own where its record tells them, else one.
    """

    def __init__(self, machine: Machine, applications: tuple[Application, ...] = ()) -> None:
        self.machine = machine
        self.applications = applications
        self._costs: dict[tuple[str, int, float | None], QuickCost] = {}
        self._ideal: dict[tuple[QuickCost, int, bytes], Span] = {}

    def verdict(self, job_nodes: JobNodes, job: int, free: Mask) -> Verdict:
        """Return how one job was placed, given the nodes that were free besides its own."""
        rows = job_nodes.of(job)
        record = job_nodes.jobs[job]
        application = application_of(record, self.applications)
        ppn = application.ppn or record.ppn or 1
        application = msgspec.structs.replace(application, ppn=ppn)
        usable = self.usable(rows, free)
        try:
            slowdown, best = self._slowdown(rows, usable, application)
        except UsageError:  # the pattern is for another number of ranks: it is not known
            application = msgspec.structs.replace(application, pattern="", bytes=None)
            slowdown, best = self._slowdown(rows, usable, application)
        return Verdict(
            job,
            len(rows),
            spans(self.machine, rows),
            _spread_share(self.machine, rows),
            int(usable.sum()),
            slowdown,
            application.patterns,
            best,
            application.share,
            ppn,
        )

    def usable(self, rows: Ints, free: Mask) -> Mask:
        """Return the nodes that a job could have had: of its kinds, free or its own, connected."""
        return connected_nodes(self.machine, offered(self.machine, free, rows), rows)[0]

    def _slowdown(self, rows: Ints, usable: Mask, application: Application) -> tuple[Span, str]:
        """Return the slowdown of a job's communication, over all patterns it may have."""
        patterns = application.patterns if len(rows) > 1 else ()
        costs = [self._cost(pattern, application) for pattern in patterns]
        if all(self._is_ideal(cost, rows) for cost in costs):
            return Span(1.0, 1.0, 1.0), ""
        choices = list(quick_choices(self.machine, usable, len(rows)))
        ratios, best = [], ""
        for cost in costs:
            cost_here = cost.of(rows)
            others = [(cost.of(nodes), name) for name, nodes in choices]
            ratios.append(_cost_ratio(cost_here, [other for other, _ in others]))
            fastest, name = min(others, key=lambda pair: pair[0].likely, default=(cost_here, ""))
            best = name if fastest.likely < cost_here.likely * (1 - ALIKE) else best
        low, high = min(r.low for r in ratios), max(r.high for r in ratios)
        likely = math.exp(sum(math.log(r.likely) for r in ratios) / len(ratios))
        return Span(min(low, likely), likely, max(high, likely)), best

    def _cost(self, pattern: str, application: Application) -> QuickCost:
        key = pattern, application.ppn or 1, application.bytes
        if key not in self._costs:
            self._costs[key] = QuickCost(Predictor(self.machine, Job(*key)))
        return self._costs[key]

    def _is_ideal(self, cost: QuickCost, rows: Ints) -> bool:
        """Tell whether a job is placed as well as it would be on an empty machine."""
        kinds = np.unique(kinds_of(self.machine).of[rows]).tobytes()
        key = cost, len(rows), kinds
        if key not in self._ideal:
            empty = self.usable(rows, self.machine.compute)
            spanned = [cost.of(nodes) for _, nodes in quick_choices(self.machine, empty, len(rows))]
            self._ideal[key] = Span(*map(min, zip(*spanned, strict=True)))
        span = cost.of(rows)
        return all(a <= b * (1 + ALIKE) for a, b in zip(span, self._ideal[key], strict=True))


def quick_choices(machine: Machine, usable: Mask, count: int) -> Iterator[tuple[str, Ints]]:
    """Yield the nodes chosen by quick planners, with the planners' names."""
    request = Request(count=count, free=usable)
    for name in PLANNERS:
        with contextlib.suppress(NidmapError):  # not for this network
            yield name, find(name)(machine, request)


def _cost_ratio(span: Span, others: Sequence[Span]) -> Span:
    """Return the job's own cost over the least of all; 1 if nothing costs anything."""
    least = [min((o[k] for o in others), default=span[k]) for k in range(3)]
    return Span(*(max(1.0, a / b) if b > 0 else 1.0 for a, b in zip(span, least, strict=True)))


def _spread_share(machine: Machine, rows: Ints) -> float:
    """Return the share of node pairs that span different outermost units."""
    held = np.unique(machine.coords[rows, 0], return_counts=True)[1]
    pairs = len(rows) * (len(rows) - 1)
    return round(1 - float((held * (held - 1)).sum()) / pairs, 4) if pairs else 0.0


# --- many of them ---------------------------------------------------------------------


def judge_jobs(
    machine: Machine,
    job_nodes: JobNodes,
    wanted: Sequence[int] | Ints,
    applications: tuple[Application, ...] = (),
    usable: Mask | None = None,
    told: Callable[[float, str], None] | None = None,
) -> list[Verdict]:
    """Judge jobs, using all cores if there are many.

    `job_nodes`: all jobs that had nodes: those not asked about say what was taken. `wanted`: the
    jobs to judge. `usable` (n,): nodes that could be had at all; None means the compute nodes.
    `told`: is called with how much is done (0 to 1), and what. In the order of the jobs' starts.
    """
    there = machine.compute if usable is None else usable
    sweep = free_at_starts(job_nodes, there, wanted)
    judge = Judge(machine, applications)
    chunks: dict[int, list[Verdict]] = {}
    judged = 0
    for number, verdicts in _judge_chunks(judge, job_nodes, sweep, len(wanted)):
        chunks[number] = verdicts
        judged += len(verdicts)
        if told is not None:
            told(judged / len(wanted), f"{judged} of {len(wanted)} jobs")
    return [verdict for number in sorted(chunks) for verdict in chunks[number]]


def _judge_chunks(
    judge: Judge, job_nodes: JobNodes, sweep: Iterator[tuple[int, Mask]], count: int
) -> Iterator[tuple[int, list[Verdict]]]:
    """Yield the verdicts of each chunk of jobs as it is finished, with its number."""
    if count <= _FEW and ranks_here() == 1:
        one_by_one = ([judge.verdict(job_nodes, job, free)] for job, free in sweep)
        return enumerate(one_by_one)
    pieces = iter(lambda: list(islice(sweep, _CHUNK)), [])
    results = run_tasks(_judge_chunk, pieces, (judge, job_nodes))
    return iter(()) if results is None else results


def _judge_chunk(shared: tuple[Judge, JobNodes], chunk: list[tuple[int, Mask]]) -> list[Verdict]:
    judge, job_nodes = shared
    return [judge.verdict(job_nodes, job, free) for job, free in chunk]


#: Assumed lower and upper limit of a job's share of communication, if it is not stated.
ASSUMED_SHARE = Span(0.05, 0.2, 0.5)

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

#: At least and at most. No tuple: msgspec 0.22 ends in a fault of memory at one next to a number.
Ends = Annotated[list[Share], msgspec.Meta(min_length=2, max_length=2)]


class Application(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The communication of an application's jobs."""

    # name, user: patterns of the jobs, with wildcards ``*`` and ``?``
    name: str = "*"
    user: str = "*"
    pattern: str = ""  # as for ``--pattern``; '' if unknown
    # Share of a job's time that it communicates, or at least and at most; None means
    # `ASSUMED_SHARE`
    communication: Share | Ends | None = None
    # Ranks on each node; None means the job's own
    ppn: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    bytes: Annotated[float, msgspec.Meta(gt=0)] | None = None  # payload of a message

    @property
    def share(self) -> Span:
        """Share of its time that a job spends communicating."""
        if self.communication is None:
            return ASSUMED_SHARE
        if isinstance(self.communication, float):
            return Span(*[self.communication] * 3)
        low, high = sorted(self.communication)
        return Span(low, (low + high) / 2, high)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns its jobs are judged by: the given one, or both defaults."""
        return (self.pattern,) if self.pattern else ("stencil:auto", "alltoall")


UNKNOWN = Application()


class _File(msgspec.Struct, forbid_unknown_fields=True):
    application: list[Application]


def read_applications(source: str) -> tuple[Application, ...]:
    """Read a file of applications."""
    try:
        applications = msgspec.convert(read_tables(source), _File).application
    except msgspec.ValidationError as error:
        hint = 'as in: [[application]] name = "lammps*" pattern = "stencil:auto"'
        raise ParseError(source, 0, schema_sentence(error), hint) from None
    for application in applications:
        try:
            Job(application.pattern)
        except NidmapError as error:
            raise ParseError(source, 0, error.message, error.hint) from None
    return tuple(applications)


def application_of(job: JobRecord, applications: tuple[Application, ...]) -> Application:
    """Return a job's application, by its name and user; `UNKNOWN` if none matches."""
    fits = (
        application
        for application in applications
        if fnmatchcase(job.name, application.name) and fnmatchcase(job.user, application.user)
    )
    return next(fits, UNKNOWN)
