"""Predict what a pattern takes on a job's nodes, and say what the answer rests on.

From a pattern, nodes and an order to a demand on the network, phase by phase
(`rankmap.predict.phases`), to the load of every link (`placement.network`),
to seconds and to what binds. Nothing here is fitted to a measurement:
docs/prediction.md lists every constant with its source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankmap.predict.prediction import Prediction
from rankmap.predict.predictor import Predictor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.machine import Machine
    from placement.nodelist import NodeList
    from placement.support.array_types import Ints
    from rankmap.order import Order
    from rankmap.pattern import Pattern
    from rankmap.predict.background import Other

__all__ = ["Prediction", "Predictor", "predict"]


def predict(
    machine: Machine,
    nodes: str | NodeList | Sequence[str] | Ints | None = None,
    pattern: str | Pattern = "alltoall",
    *,
    order: Order | Ints | None = None,
    ppn: str | int | Sequence[int] | None = None,
    bytes: float | None = None,  # noqa: A002 - the name of the command's option
    routing: str = "",
    algorithm: str = "library",
    latency: float | None = None,
    memory: float | None = None,
    background: Sequence[Other] = (),
    fair: bool = False,
    process: float | None = None,
    payload: float | None = None,
    first_contact: float | None = None,
) -> Prediction:
    """Predict the time of a pattern on a job's nodes.

    Parameters
    ----------
    machine : Machine
    nodes : str, NodeList, names, int64 rows (n,) or None
        The job's nodes in the order that numbers the slots; None: all free
        compute nodes (see `rankmap.slots.slots_of`).
    pattern : str or Pattern
        Who talks to whom (see `rankmap.pattern.parse_pattern`).
    order : Order, int64 (ranks,) or None
        Slot of each rank; None: rank r on slot r.
    ppn : str, int, sequence of int or None
        Ranks on each node; None: as often as the list names it.
    bytes : float or None
        Payload of one message: each ordered pair of an all-to-all, each
        directed neighbour of a stencil, a rank's whole local data for
        ``sort``; multiplies what ``graph:``, ``matrix:`` and ``training:``
        say. None: 1 MB, or 1 for these three.
    routing : str
        See `placement.network.routings`; '' is the machine's default.
    algorithm : str
        ``at-once``, ``pairwise`` … for an all-to-all, others for other collectives;
        ``library`` is what the machine's MPI does at that size.
    latency : float or None
        Latency of a short message in us; 0 switches off all that does not
        grow with the bytes; None: as the machine states, or its fabric has.
    memory : float or None
        GB/s inside a node; None: as the site states, else 20; inf: it costs nothing.
    background : sequence of rankmap.predict.background.Other
        Jobs beside this one.
    fair : bool
        Share links max-min fairly in time instead of taking the busiest
        link's load over bandwidth.
    process : float or None
        GB/s that one rank can send at most; None: as the site states, else
        only its node limits it; inf: only its node limits it.
    payload : float or None
        Share of the bandwidth between routers that carries payload; None: as
        the site states (0.64 was published for Aries), else all of it.
    first_contact : float or None
        Seconds that a rank takes to connect to each other one; None: nothing.

    Returns
    -------
    Prediction

    Raises
    ------
    UsageError
        A pattern whose ranks are not the slots, an unknown routing or
        algorithm, figures that make no sense.
    ParseError
        A node that the machine does not have, a pattern's file that cannot be read.

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("torus:8x8x8,bw=4.68")
    >>> found = predict(m, "0-63", "alltoall", bytes=1e6, latency=0)
    >>> found.bottleneck.kind, round(found.time_s * 1e3, 2)
    ('x', 17.09)
    """
    from rankmap.slots import slots_of

    slots = slots_of(machine, nodes, ppn)
    asked = Predictor(
        machine,
        pattern,
        slots.counts.tolist(),
        bytes,
        routing,
        algorithm=algorithm,
        latency=latency,
        memory=memory,
        background=background,
        fair=fair,
        process=process,
        payload=payload,
        first_contact=first_contact,
    )
    return asked.ranged(slots, order)
