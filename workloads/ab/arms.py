"""What is compared, and in which turns: the command as it is, and with its ranks in order."""

from __future__ import annotations

import os
import random
import re
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from placement.errors import PlanError, UsageError, printable
from placement.support.lazy import lazy
from rankmap.launch import Launch
from rankmap.launch.process import discard_launch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rankmap.commands.model import RunRequest
    from rankmap.launch import job as launch_job
    from rankmap.launch.job import JobLaunch, Prepared
    from rankmap.placement import Placement
else:  # `ab --help` needs no machine
    launch_job = lazy("rankmap.launch.job")

#: What the arms are called that have no name of the user's.
DEFAULT, PLAN, ORDER = "default", "plan", "order"

#: What an arm may be called: a part of file names.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of a comparison.

    Attributes
    ----------
    name : str
    order : str
        ``default``, a strategy's name or a file.
    members : list of int
        Of each rank of the arm, the rank of the default launch that sits there.
    notes : list of str
        What a user should know of it.
    """

    name: str
    order: str
    members: list[int]
    notes: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return the arm as a header keeps it."""
        return {**asdict(self), "ranks": len(self.members)}


@dataclass(frozen=True, slots=True)
class ProgramArm:
    """One side of a comparison.

    Attributes
    ----------
    arm : Arm
        As the samples' header keeps it; `members` are the ranks of the
        default launch that sit where each rank of this one sits.
    launch : Launch
    expected : dict or None
        What the model expects of it: ``words``, and ``gain`` (None where
        nothing is known); None for the default.
    words : str
        Which order it is, as ``nidmap run`` says it; '' for the default.
    """

    arm: Arm
    launch: Launch
    expected: dict[str, Any] | None = None
    words: str = ""


def read_arm(text: str) -> tuple[str, str]:
    """Return name and order file of ``NAME=FILE``.

    Raises
    ------
    UsageError

    Examples
    --------
    >>> read_arm("hilbert=hilbert.slots")
    ('hilbert', 'hilbert.slots')
    """
    name, equals, path = text.partition("=")
    if not (equals and path and _NAME.fullmatch(name)):
        raise UsageError(
            f"--arm {printable(text, 60)} is not NAME=FILE", "a name of letters, digits, . _ -"
        )
    return name, path


class _Made(NamedTuple):
    """A launch that is prepared."""

    name: str
    job: JobLaunch
    prepared: Prepared

    @property
    def filled(self) -> Placement:
        """The order on the nodes as the launcher fills them by default: as listed, or its own."""
        return self.prepared.order if self.job.launcher.keeps_list else self.prepared.laid


@contextmanager
def prepared_arms(
    base: RunRequest, orders: Sequence[str]
) -> Iterator[tuple[list[ProgramArm], dict[str, Any]]]:
    """Prepare all launches; inside, their order files are there.

    Behind it, too, where it is dry and ``--order-dir`` names a place for them.

    Yields the arms, the default first, and what the samples' header says of
    them: of nodes those in the order in which the launcher fills them.

    Parameters
    ----------
    base : RunRequest
        ``nidmap run`` of the same command: its order (by ``--order`` or a
        pattern) is an arm.
    orders : sequence of str
        More arms: ``NAME=FILE``.

    Raises
    ------
    NidmapError
        Nothing to compare, an order that is none, a launcher that takes none.
    """
    wanted = _runs_wanted(base, orders)
    made: list[_Made] = []
    try:
        for name, request in wanted.items():
            job = launch_job.read_job(request, os.environ)
            made.append(_Made(name, job, job.prepared()))
        yield _compared_arms(base.command, made)
    finally:
        if not base.dry_run or base.order_dir is None:
            for arm in made:
                discard_launch(arm.prepared.path)


def _runs_wanted(base: RunRequest, orders: Sequence[str]) -> dict[str, RunRequest]:
    """Return by name the run whose order each arm has."""
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
    command: tuple[str, ...], made: Sequence[_Made]
) -> tuple[list[ProgramArm], dict[str, Any]]:
    """Return the arms of what was prepared, and what a header says of them."""
    job, placement = made[0].job, made[0].filled
    members = list(range(placement.ranks))
    plain = ProgramArm(Arm(DEFAULT, DEFAULT, members), Launch(command))
    plain.arm.notes.extend(job.asked_remarks())
    arms = [plain]
    for one in made:
        arms.append(_order_arm(one))
        if arms[-1].arm.members == members:
            arms[-1].arm.notes.append(f"the same ranks in the same order as {DEFAULT}")
    if all(each.arm.members == members for each in arms):
        raise PlanError(
            "the order is the launcher's own: there is nothing to compare",
            "--strategy or --order makes another order",
        )
    pattern = made[0].job.sent.pattern
    return arms, {
        "workload": " ".join(job.launcher.step.argv[job.launcher.step.program :]),
        "ranks": placement.ranks,
        "nodes": len(placement.names),
        "ppn": max(placement.counts.tolist()),
        "hosts": placement.names.tolist(),
        "counts": placement.counts.tolist(),
        "pattern": pattern,
        "arms": [one.arm.document() for one in arms],
        "expected": {one.arm.name: one.expected for one in arms if one.expected},
    }


def _order_arm(made: _Made) -> ProgramArm:
    prepared, order = made.prepared, made.prepared.order
    expected = made.job.expected(order)
    what = made.job.request.order_file or order.origin.strategy
    members = made.filled.slot_of_rank.tolist()
    return ProgramArm(
        Arm(made.name, what, members, notes=list(prepared.remarks)),
        prepared.launch,
        {"words": expected.words, "gain": expected.gain},
        made.job.words(order, expected.words),
    )


@dataclass(frozen=True, slots=True)
class Turn:
    """One launch.

    Attributes
    ----------
    block, arm : int
        Blocks count from 0 on, warm-up ones first; arms are numbered.
    warmup : bool
        Whether it does not count.
    last : bool
        Whether it is the last of its block.
    """

    block: int
    arm: int
    warmup: bool
    last: bool

    def output_files(self, folder: str, arm: str, retry: int = 0) -> list[str]:
        """Return the files of a launch's standard output and standard error.

        Examples
        --------
        >>> Turn(3, 1, False, True).output_files("out", "default again")
        ['out/block-003-default-again.out', 'out/block-003-default-again.err']
        """
        again = f"-retry-{retry}" if retry else ""
        name = f"block-{self.block:03d}-{arm.replace(' ', '-')}{again}"
        return [os.path.join(folder, f"{name}{suffix}") for suffix in (".out", ".err")]


def schedule_blocks(arms: int, blocks: int, seed: int | str) -> list[list[int]]:
    """Return the turns of each block: a random permutation of the arms.

    Parameters
    ----------
    arms : int
        How many are compared.
    blocks : int
    seed : int or str

    Examples
    --------
    >>> schedule_blocks(2, 3, seed=1)
    [[1, 0], [1, 0], [0, 1]]
    """
    rng = random.Random(f"blocks {seed}")  # noqa: S311  # an order of turns, no secret
    turns = [list(range(arms)) for _ in range(blocks)]
    for turn in turns:
        rng.shuffle(turn)
    return turns


def turns_of(arms: int, blocks: int, warmup: int, seed: int) -> list[Turn]:
    """Return all launches in their order: blocks that do not count, then those that do.

    Examples
    --------
    >>> [turn.arm for turn in turns_of(2, 2, 1, 1)]
    [1, 0, 1, 0, 0, 1]
    """
    return [
        Turn(block, arm, block < warmup, place == arms)
        for block, arms_in_turn in enumerate(schedule_blocks(arms, warmup + blocks, seed))
        for place, arm in enumerate(arms_in_turn, 1)
    ]
