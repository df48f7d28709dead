"""When a job would start: ``sbatch --test-only``, with a node list and without.

A list makes a job wait for exactly these nodes. What that costs is the
difference between two answers of Slurm, for the list and for the same job
without it. Both are Slurm's estimates: they hold while nothing is submitted,
and rest on the time limits of the jobs that run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from placement.errors import LaunchError, NidmapError, UsageError, printable
from placement.nodelist import NodeList
from placement.slurm.command import Deadline, ask

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ExpectedStart", "PlanCheck", "check_plan", "expected_start"]

_START = re.compile(r"Job \d+ to start at (\S+) .*?on nodes (\S+)(?: in partition (\S+))?")
_REFUSED = re.compile(r"(?:allocation failure|error: .*?submission failed|error): *(.*)")

#: A start within so many seconds of the question is "at once".
_AT_ONCE = 60.0


@dataclass(frozen=True, slots=True)
class ExpectedStart:
    """When Slurm expects a job to start.

    Attributes
    ----------
    start : datetime or None
        In UTC; None where Slurm refuses the job.
    seconds : float
        From the question to the start, 0 for at once; NaN where refused.
    nodes : NodeList
        The nodes that Slurm has in mind; in 22.05 it ignores node weights
        for this answer, so an allocation may get others.
    partition : str
    refused : str
        Slurm's reason, '' where it takes the job.
    """

    start: datetime | None
    seconds: float
    nodes: NodeList = NodeList()  # noqa: RUF009  # a tuple: it cannot be changed
    partition: str = ""
    refused: str = ""

    def words(self) -> str:
        """Return the answer for a person.

        Examples
        --------
        >>> from datetime import UTC, datetime
        >>> ExpectedStart(datetime(2026, 1, 2, 3, 4, tzinfo=UTC), 0.0).words()
        'would start at once'
        >>> ExpectedStart(None, float("nan"), refused="Invalid feature").words()
        'would never start: Slurm refuses it (Invalid feature)'
        """
        if self.start is None:
            return f"would never start: Slurm refuses it ({self.refused})"
        if self.seconds < _AT_ONCE:
            return "would start at once"
        local = self.start.astimezone()
        return f"would start in {_span(self.seconds)} ({local:%Y-%m-%d %H:%M})"

    def document(self) -> dict[str, Any]:
        """Return the answer for ``--json``."""
        return {
            "start": None if self.start is None else self.start.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "seconds": None if self.start is None else round(self.seconds),
            "nodelist": self.nodes.fold(),
            "partition": self.partition,
            "refused": self.refused,
        }


def _span(seconds: float) -> str:
    """Return a span of time in its two largest units.

    Examples
    --------
    >>> _span(90), _span(7260), _span(200000)
    ('2 min', '2 h 1 min', '2 d 7 h')
    """
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 1440:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """What pinning a job to a list costs.

    Attributes
    ----------
    pinned : ExpectedStart
        Of the job with the list.
    unpinned : ExpectedStart
        Of the same job without it.
    """

    pinned: ExpectedStart
    unpinned: ExpectedStart

    @property
    def delay(self) -> float:
        """Seconds that the list costs; NaN where one of the two is refused."""
        return self.pinned.seconds - self.unpinned.seconds

    def sentence(self) -> str:
        """Return both starts in one sentence."""
        return (
            f"sbatch --test-only: with this list the job {self.pinned.words()}; "
            f"without it, it {self.unpinned.words()}"
        )

    def document(self) -> dict[str, Any]:
        """Return both starts for ``--json``, with the sentence."""
        delay = self.delay
        return {
            "pinned": self.pinned.document(),
            "unpinned": self.unpinned.document(),
            "delay_seconds": None if delay != delay else round(delay),
            "sentence": self.sentence(),
        }


def check_plan(
    nodes: Iterable[str],
    count: int,
    *,
    partition: str | None = None,
    constraint: str | None = None,
    reservation: str | None = None,
) -> PlanCheck:
    """Ask Slurm when a job would start on exactly these nodes, and when without the list.

    Parameters
    ----------
    nodes : iterable of str
        The list; its order does not matter to Slurm.
    count : int
        Nodes of the job without the list.
    partition, constraint, reservation : str or None
        As of the job.

    Raises
    ------
    LaunchError
        Slurm is missing, down, slow, or its answer is not understood. A job
        that Slurm refuses is an answer.
    """
    deadline = Deadline()
    options = _options(partition, constraint, reservation)
    return PlanCheck(
        pinned=_asked(options, len(listed := NodeList(nodes)), listed, deadline),
        unpinned=_asked(options, count, None, deadline),
    )


def expected_start(
    count: int,
    nodes: Iterable[str] | None = None,
    *,
    partition: str | None = None,
    constraint: str | None = None,
    reservation: str | None = None,
) -> ExpectedStart:
    """Ask Slurm when a job of `count` whole nodes would start.

    Parameters
    ----------
    count : int
    nodes : iterable of str or None
        The nodes it is pinned to, all of them: Slurm refuses a list that is
        shorter than `count`.
    partition, constraint, reservation : str or None

    Raises
    ------
    LaunchError
        As `check_plan`.
    """
    listed = None if nodes is None else NodeList(nodes)
    return _asked(_options(partition, constraint, reservation), count, listed, Deadline())


def _options(partition: str | None, constraint: str | None, reservation: str | None) -> list[str]:
    given = {"partition": partition, "constraint": constraint, "reservation": reservation}
    for name, value in given.items():
        if value is not None and (not value or not value.isprintable()):
            raise UsageError(f"--{name} {printable(value)!r} is no name")
    return [f"--{name}={value}" for name, value in given.items() if value is not None]


def _asked(
    options: list[str], count: int, nodes: NodeList | None, deadline: Deadline
) -> ExpectedStart:
    """Run ``sbatch --test-only``; a long list goes into the script, where no limit cuts it."""
    pinned = f"#SBATCH --nodelist={nodes.fold(sort=True)}\n" if nodes else ""
    answer = ask(
        ["sbatch", "--test-only", f"--nodes={count}", "--exclusive", *options],
        script=f"#!/bin/sh\n{pinned}true\n",
        deadline=deadline,
        fails=True,
    )
    text = f"{answer.messages}\n{answer.output}"
    match = _START.search(text)
    if match and not answer.code:
        return _started(match)
    reason = _REFUSED.findall(text)
    if answer.code and reason:
        return ExpectedStart(None, float("nan"), refused=printable(reason[-1].strip(), 200))
    raise LaunchError(
        f"sbatch --test-only said {answer.complaint or 'nothing'!r}",
        "is it Slurm's own sbatch?",
    )


def _started(match: re.Match[str]) -> ExpectedStart:
    try:
        start = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
        nodes = NodeList.parse(match[2])
    except (ValueError, NidmapError):
        raise LaunchError(
            f"sbatch --test-only gave a start that cannot be read: {printable(match[0])}"
        ) from None
    seconds = (start - datetime.now(UTC)).total_seconds()
    return ExpectedStart(start, max(0.0, seconds), nodes, match[3] or "")
