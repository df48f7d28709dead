# SPDX-License-Identifier: Apache-2.0
"""The arms of a comparison and their launch order: the command unchanged, and reordered."""

from __future__ import annotations

import os
import random
import re
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nidmap.placement.errors import PlanError, UsageError, printable
from nidmap.rankmap.launch import Launch
from nidmap.rankmap.launch import job as launch_job
from nidmap.rankmap.launch.process import discard_launch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nidmap.placement.placement import Placement
    from nidmap.rankmap.launch.job import JobLaunch, Prepared
    from nidmap.rankmap.launch.request import RunRequest

#: Names of the arms that the user does not name.
DEFAULT, PLAN, ORDER = "default", "plan", "order"

#: Valid names of arms, which become parts of file names.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of a comparison."""

    name: str
    order: str  # ``default``, a strategy's name or a file
    members: list[int]  # of each rank of the arm, the rank of the default launch that sits there
    notes: list[str] = field(default_factory=list)  # remarks for the user
    launch: Launch = field(default_factory=lambda: Launch(()))
    # What the model expects of it: ``words``, and ``gain`` (None where nothing is known); None for
    # the default
    expected: dict[str, Any] | None = None
    words: str = ""  # description of its order, as in ``nidmap run``; '' for the default

    def document(self) -> dict[str, Any]:
        """Return the arm as the header of a samples file stores it."""
        kept = {name: getattr(self, name) for name in ("name", "order", "members", "notes")}
        return {**kept, "ranks": len(self.members)}


def read_arm(text: str) -> tuple[str, str]:
    """Parse ``NAME=FILE`` into a name and an order file."""
    name, equals, path = text.partition("=")
    if not (equals and path and _NAME.fullmatch(name)):
        raise UsageError(
            f"--arm {printable(text, 60)} is not NAME=FILE",
            "a name consists of letters, digits, . _ -",
        )
    return name, path


@contextmanager
def prepared_arms(
    base: RunRequest, orders: Sequence[str]
) -> Iterator[tuple[list[Arm], dict[str, Any]]]:
    """Prepare all launches; their order files exist within the context.

    After it, too, where it is dry and ``--order-dir`` names a place for them.

    Yields the arms, the default first, and what the samples' header says of
    them: of nodes those in the order in which the launcher fills them.

    `base`: ``nidmap run`` of the same command: its order (by ``--order`` or a pattern) is an arm.
    `orders`: more arms: ``NAME=FILE``.
    """
    wanted = _runs_wanted(base, orders)
    launches: dict[str, tuple[JobLaunch, Prepared]] = {}
    try:
        for name, request in wanted.items():
            job = launch_job.read_job(request, os.environ)
            launches[name] = job, job.prepared()
        yield _compared_arms(base.command, launches)
    finally:
        if not base.dry_run or base.order_dir is None:
            for _, prepared in launches.values():
                discard_launch(prepared.path)


def _runs_wanted(base: RunRequest, orders: Sequence[str]) -> dict[str, RunRequest]:
    """Return, by name, the run that determines each arm's order."""
    wanted: dict[str, RunRequest] = {}
    if base.order_file is not None:
        wanted[ORDER] = base
    elif base.job.named_pattern(needed=False) or not orders:
        wanted[PLAN] = base
    for name, path in map(read_arm, orders):
        if name in (*wanted, DEFAULT):
            raise UsageError(f"two arms are called {name}")
        wanted[name] = replace(base, order_file=path, strategy="auto")
    return wanted


def _compared_arms(
    command: tuple[str, ...], launches: dict[str, tuple[JobLaunch, Prepared]]
) -> tuple[list[Arm], dict[str, Any]]:
    """Return the prepared arms, and their description for a header."""
    job, prepared = next(iter(launches.values()))
    placement = _filled_placement(job, prepared)
    members = list(range(placement.ranks))
    arms = [Arm(DEFAULT, DEFAULT, members, [*job.asked_remarks()], Launch(command))]
    arms += [_order_arm(name, *launch, members) for name, launch in launches.items()]
    if all(arm.members == members for arm in arms):
        raise PlanError(
            "the order is the launcher's own: there is nothing to compare",
            "use another --strategy or --order",
        )
    return arms, {
        "workload": " ".join(job.launcher.parsed.argv[job.launcher.parsed.program :]),
        "ranks": placement.ranks,
        "nodes": len(placement.names),
        "ppn": max(placement.counts.tolist()),
        "hosts": placement.names.tolist(),
        "counts": placement.counts.tolist(),
        "pattern": job.job.pattern,
        "arms": [arm.document() for arm in arms],
        "expected": {arm.name: arm.expected for arm in arms if arm.expected},
    }


def _filled_placement(job: JobLaunch, prepared: Prepared) -> Placement:
    """Return the nodes as the launcher fills them by default: as listed, or in its own order."""
    return prepared.order if job.launcher.keeps_list else prepared.laid


def _order_arm(name: str, job: JobLaunch, prepared: Prepared, default: list[int]) -> Arm:
    """Return the arm of an order; `default`: the members of the launch without one."""
    order, expected = prepared.order, job.expected(prepared.order)
    members = _filled_placement(job, prepared).slot_of_rank.tolist()
    same = [f"the same ranks in the same order as {DEFAULT}"] if members == default else []
    return Arm(
        name,
        job.request.order_file or order.origin.strategy,
        members,
        [*prepared.remarks, *same],
        prepared.launch,
        {"words": expected.words, "gain": expected.gain},
        job.words(order, expected.words),
    )


@dataclass(frozen=True, slots=True)
class Turn:
    """One launch."""

    # block, arm: blocks count from 0 on, warm-up ones first; arms are numbered
    block: int
    arm: int
    warmup: bool  # whether it does not count
    last: bool  # whether it is the last of its block

    def output_files(self, folder: str, arm: str, retry: int = 0) -> list[str]:
        """Return the files for a launch's standard output and standard error."""
        again = f"-retry-{retry}" if retry else ""
        name = f"block-{self.block:03d}-{arm.replace(' ', '-')}{again}"
        return [os.path.join(folder, f"{name}{suffix}") for suffix in (".out", ".err")]


def schedule_blocks(arms: int, blocks: int, seed: int | str) -> list[list[int]]:
    """Return the launch order of each block: a random permutation of the arms.

    `arms`: how many are compared.
    """
    rng = random.Random(f"blocks {seed}")  # noqa: S311  # an order of turns, no secret
    turns = [list(range(arms)) for _ in range(blocks)]
    for turn in turns:
        rng.shuffle(turn)
    return turns


def list_launches(arms: int, blocks: int, warmup: int, seed: int) -> list[Turn]:
    """Return all launches in order: the warm-up blocks, then those that count."""
    return [
        Turn(block, arm, block < warmup, place == arms)
        for block, arms_in_turn in enumerate(schedule_blocks(arms, warmup + blocks, seed))
        for place, arm in enumerate(arms_in_turn, 1)
    ]
