"""Which arm is launched when."""

from __future__ import annotations

from dataclasses import dataclass

from workloads.ab.running import schedule

__all__ = ["Turn", "turns_of"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One launch.

    Attributes
    ----------
    block, visit, arm : int
        Blocks count from 0 on, warm-up ones first; arms are numbered.
    warmup : bool
        Whether it does not count.
    last : bool
        Whether it is the last of its block.
    """

    block: int
    visit: int
    arm: int
    warmup: bool
    last: bool

    def file_name(self, arm: str) -> str:
        """Return what the files with its output are called, without their suffix.

        Examples
        --------
        >>> Turn(3, 1, 1, False, True).file_name("plan")
        'block-003-2-plan'
        """
        return f"block-{self.block:03d}-{self.visit + 1}-{arm}"


def turns_of(arms: int, blocks: int, warmup: int, seed: int, there_and_back: bool) -> list[Turn]:
    """Return all launches in their order: blocks that do not count, then those that do.

    Parameters
    ----------
    arms, blocks, warmup, seed : int
    there_and_back : bool
        True for ABBA (see `workloads.ab.running.schedule`); else each arm once a block.

    Examples
    --------
    >>> [turn.arm for turn in turns_of(2, 2, 1, 1, False)]
    [1, 0, 1, 0, 0, 1]
    """
    found = []
    for block, arms_in_turn in enumerate(schedule(arms, warmup + blocks, seed, there_and_back)):
        cold = block < warmup
        visits = [0] * arms
        for place, arm in enumerate(arms_in_turn, 1):
            found.append(Turn(block, visits[arm], arm, cold, place == len(arms_in_turn)))
            visits[arm] += 1
    return found
