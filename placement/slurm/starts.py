# SPDX-License-Identifier: Apache-2.0
"""When a job would start: ``sbatch --test-only``, with a node list and without.

A list makes a job wait for exactly these nodes. What that costs is the
difference between two answers of Slurm, for the list and for the same job
without it. Both are Slurm's estimates: they hold while nothing is submitted,
and rest on the time limits of the jobs that run.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, NamedTuple

from nidmap.placement.emit import HeaderJob, slurm_options
from nidmap.placement.errors import LaunchError, NidmapError, printable
from nidmap.placement.nodelist import NodeList
from nidmap.placement.slurm.command import ask_slurm, slurm_deadline
from nidmap.placement.support.child import Deadline

_START = re.compile(r"Job \d+ to start at (\S+) .*?on nodes (\S+)(?: in partition (\S+))?")
_REFUSED = re.compile(r"(?:allocation failure|error: .*?submission failed|error): *(.*)")

#: A start within this many seconds of the question is "at once".
_AT_ONCE = 60.0

#: Slurm counts a job without a time limit as one of a year: what waits for its end has no start.
_NO_END = 364 * 86400.0


class ExpectedStart(NamedTuple):
    """When Slurm expects a job to start."""

    start: datetime | None  # in UTC; None where Slurm refuses the job
    seconds: float  # from the question to the start, 0 for at once; NaN where refused
    # The nodes that Slurm has in mind; in 22.05 it ignores node weights for this answer, so an
    # allocation may get others
    nodes: NodeList = NodeList()
    partition: str = ""
    refused: str = ""  # Slurm's reason, '' where it takes the job

    @property
    def never(self) -> bool:
        """True if Slurm refuses the job, or it waits for something that may never end."""
        return self.start is None or self.seconds >= _NO_END

    def words(self) -> str:
        """Return the answer as text."""
        if self.start is None:
            return f"would never start: Slurm refuses it ({self.refused})"
        if self.never:
            return (
                "would wait for a job without a time limit, or a reservation, which may never end"
            )
        if self.seconds < _AT_ONCE:
            return "would start at once"
        local = self.start.astimezone()
        return f"would start in {_span_text(self.seconds)} ({local:%Y-%m-%d %H:%M})"

    def document(self) -> dict[str, Any]:
        """Return the answer for ``--json``."""
        return {
            "start": None if self.start is None else self.start.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "seconds": None if self.start is None else round(self.seconds),
            "nodelist": self.nodes.fold(),
            "partition": self.partition,
            "refused": self.refused,
        }


def _span_text(seconds: float) -> str:
    """Format a time span with its two largest units."""
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 1440:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


class PlanCheck(NamedTuple):
    """The cost of pinning a job to a node list."""

    # Of the job with its nodes (or with what a softer header asks for instead)
    pinned: ExpectedStart
    unpinned: ExpectedStart  # of the same job on any nodes
    # The nodes that a plan was compared with as Slurm's own choice; empty where it was not
    simulated: NodeList = NodeList()  # a tuple: it cannot be changed

    @property
    def differs(self) -> bool:
        """Whether Slurm, asked now, names other nodes than the simulation of its choice did."""
        now = self.unpinned.start is not None and self.unpinned.seconds < _AT_ONCE
        return bool(self.simulated) and now and set(self.simulated) != set(self.unpinned.nodes)

    @property
    def delay(self) -> float:
        """Seconds by which the list delays the job; NaN if either variant is refused."""
        return self.pinned.seconds - self.unpinned.seconds

    def sentence(self) -> str:
        """Return both starts in one sentence."""
        pinned = f"on these nodes the job {self.pinned.words()}"
        starts = f"sbatch --test-only: {pinned}; on any nodes it {self.unpinned.words()}"
        if not self.differs:
            return starts
        both = self.unpinned.nodes, self.simulated
        theirs, ours = (nodes.unique.fold(sort=True) for nodes in both)
        return f"{starts}, where it names {theirs}: the gain is against {ours}"

    def document(self) -> dict[str, Any]:
        """Return both starts for ``--json``, with the sentence."""
        delay = self.delay
        return {
            "pinned": self.pinned.document(),
            "unpinned": self.unpinned.document(),
            "simulated": self.simulated.fold(sort=True),
            "as_simulated": not self.differs,
            "delay_seconds": None if delay != delay else round(delay),
            "sentence": self.sentence(),
        }


def check_plan(job: HeaderJob, simulated: NodeList | None = None) -> PlanCheck:
    """Ask Slurm when a job would start with its header, and when on any nodes.

    `job`: the very job that the header is made from. `simulated`: what the plan was compared with
    as Slurm's own choice.
    """
    deadline = slurm_deadline()
    anywhere = replace(job, nodelist=NodeList(), exclude=NodeList())
    pinned, unpinned = (expected_start(variant, deadline) for variant in (job, anywhere))
    return PlanCheck(pinned, unpinned, simulated or NodeList())


def expected_start(job: HeaderJob, deadline: Deadline | None = None) -> ExpectedStart:
    """Ask Slurm when a job would start.

    Its options go into a script, where no limit cuts a long list.
    """
    options = "".join(f"#SBATCH {option}\n" for option in slurm_options(job))
    script = f"#!/bin/sh\n{options}true\n"
    answer = ask_slurm(["sbatch", "--test-only"], script=script, deadline=deadline, fails=True)
    text = f"{answer.messages}\n{answer.output}"
    match = _START.search(text)
    if match and not answer.code:
        return _parse_start(match)
    reason = _REFUSED.findall(text)
    if answer.code and reason:
        return ExpectedStart(None, float("nan"), refused=printable(reason[-1].strip(), 200))
    what = f"sbatch --test-only said {answer.complaint or 'nothing'!r}"
    raise LaunchError(what, "is it Slurm's own sbatch?")


def _parse_start(match: re.Match[str]) -> ExpectedStart:
    try:
        start = datetime.fromisoformat(match[1]).replace(tzinfo=timezone.utc)
        nodes = NodeList.parse(match[2])
    except (ValueError, NidmapError):
        what = "sbatch --test-only gave a start that cannot be read"
        raise LaunchError(f"{what}: {match[0]}") from None
    seconds = (start - datetime.now(timezone.utc)).total_seconds()
    return ExpectedStart(start, max(0.0, seconds), nodes, match[3] or "")
