"""Planners: ``(Machine, Request) -> rows``, one file a strategy.

A planner is a pure function from a machine and a request to the rows of the
machine it chooses, in the order in which the job's slots should stand on
them. It is registered by the decorator `planner` and found by name with
`find`; other distributions add theirs under the entry point group
``nidmap.planners``. Rows, not names: at a hundred thousand nodes a planner
that handles strings spends its time on strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.hooks import STRATEGIES, load
from placement.support.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement.machine import Machine
    from placement.request import Choice, Request
    from placement.support.array_types import Ints

    Planner = Callable[[Machine, Request], Ints]
    Predicting = Callable[[Machine, Request], Choice]

__all__ = ["BASELINE", "PREDICTING", "find", "find_predicting", "names", "planner"]

#: What the planners ``slurm-…`` simulate; an output that compares with them says so.
BASELINE = "Slurm 22.05.8, select/cons_tres with CR_Core, whole nodes"

#: Where each bundled planner lives: imported only when it is asked for.
BUNDLED = {
    "blades": "blades",
    "blades-linked": "blades",
    "compact": "compact",
    "hilbert": "curve",
    "hilbert-groups": "curve",
    "level-spread": "spread",
    "morton": "curve",
    "morton-groups": "curve",
    "nid-order": "no_topology",
    "random": "no_topology",
    "slurm-block": "slurm_blocks",
    "slurm-dragonfly": "slurm_switches",
    "slurm-none": "slurm_job",
    "slurm-tree": "slurm_switches",
    "spread": "spread",
}

#: Strategies that predict what a job's traffic takes: the front door says where they live.
PREDICTING = STRATEGIES

_planners: Registry[Planner] = Registry(
    "strategy", "nidmap.planners", __name__, BUNDLED, PREDICTING
)


def planner(name: str) -> Callable[[Planner], Planner]:
    """Register the decorated function as the planner `name`."""
    return _planners.register(name)


def names() -> list[str]:
    """Return the names of all planners, those of other distributions included."""
    return _planners.names()


def find_predicting(name: str) -> Predicting:
    """Return the strategy called `name` that predicts: it answers a `Choice`, with its figures."""
    found: Predicting = load(PREDICTING[name])
    return found


def find(name: str) -> Planner:
    """Return the planner called `name`.

    Raises
    ------
    UsageError
        Where there is none; the message names those there are.
    """
    if name in PREDICTING:
        predicting = find_predicting(name)
        return lambda machine, request: predicting(machine, request).rows
    return _planners.find(name)
