"""What each part of a search takes, about, in us of one core of 2024.

No clock decides what is searched, so that the same question has the same
answer on any machine: these estimates stand in for one. They were fitted to
times of each part; where one is wrong by a half, the search only divides its
budget less well.
"""

from __future__ import annotations

from placement.support.array_types import Ints
from rankmap.predict import Predictor

__all__ = ["boxes", "every_step", "graph", "graph_by_node", "judging", "quick_order"]


def judging(asked: Predictor, rows: Ints) -> float:
    """Return the us that judging a job on some nodes takes, about.

    What looking at a phase and its channels takes, and its pairs of nodes;
    on tori all-to-alls in lines are looked at router by router, and routing
    `single` on dragonflies pair of routers by pair; a stepwise algorithm
    looks at every step twice, or follows its ranks packet by packet; `adaptive`
    takes some steps.

    Parameters
    ----------
    asked : Predictor
    rows : int64 (n,)
        Any nodes that the job could have.
    """
    on = asked.slots(rows)
    phases = list(asked.phases(on))
    us = 400 + 0.15 * len(on)
    for phase in phases:
        a_look = 200 + 0.12 * len(asked.channels)
        us += a_look + 0.1 * min(len(phase.total.source), 1 << 20)
        course = asked.course(phase)
        if course is not None:
            us += 25.0 * course.runs * float(course.packets.sum())
        elif phase.steps is not None:
            us += 2 * (a_look + 0.12 * len(on)) * sum(1 for _ in phase.steps())
        if asked.machine.topology.kind == "torus" and len(phase.total.within) > 1:
            us += 2 * len(on)
        if asked.machine.topology.kind.startswith("dragonfly") and asked.routing == "single":
            whole = 0.012 if len(phase.total.within) else 0.0
            us += (0.003 / len(phases) + whole) * phase.total.routers**2
        if asked.routing == "adaptive":
            us += 10_000
    return us


def quick_order(ranks: int) -> float:
    """Return the us of an order that is not searched for."""
    return 0.2 * ranks


def boxes(ranks: int, in_lines: bool, torus: bool) -> float:
    """Return the us of order boxes of so many ranks.

    Parameters
    ----------
    ranks : int
    in_lines : bool
        Whether the pattern is all-to-alls in lines of the grid.
    torus : bool
        Whether the machine is one.
    """
    if in_lines:
        return 20_000 + (25.0 if ranks <= 4096 else 110.0) * ranks
    return 30_000 + 100.0 * ranks if torus else min(15_000 + 40.0 * ranks, 500_000)


def graph(vertices: int, edges: int) -> float:
    """Return the us of mapping a graph: up to 256 vertices it is begun eight times."""
    if vertices > 256:
        return 20_000 + 60.0 * vertices + 8.0 * edges
    return 16_000 + 8 * (100.0 * vertices + 8.0 * edges)


def graph_by_node(nodes: int, edges: int) -> float:
    """Return the us of mapping what nodes exchange on nodes."""
    return 5_000 + 100.0 * nodes + 8.0 * edges


def every_step(looks: int, exchanges: int, gathered: int) -> float:
    """Return the us of looking at every step once.

    Parameters
    ----------
    looks : int
        Multiplications of arrays.
    exchanges : int
        What is sent at different times: each has its calls of numpy.
    gathered : int
        Figures that are looked up in the table of routes.
    """
    return (looks + 300_000 * exchanges + 8 * gathered) / 1200
