"""Predicted beside counted: what ``nidmap predict --against NAME`` adds.

The front door names this module to the prediction's command, which stands in
an earlier room.

From a message's bytes to what a kernel's counter shows: the headers of TCP's
segments. Nothing is fitted. A full segment carries the link's MTU less 52 bytes (20 of
IPv4, 20 of TCP, 12 of its time stamps) and is a frame of 14 bytes more, so
66 of every MTU + 14 bytes are headers. Each is answered by an acknowledgement
of 66 bytes that goes back by its own route: one for each segment, as links
are so slow that a rank has read one before the next arrives, and not one for
every other (RFC 1122, 4.2.3.2). What MPI adds to a message is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from placement.errors import UsageError
from placement.machine import Machine
from placement.network import Demand, Loads, loads
from placement.support.array_types import Floats, Mask, Strs
from placement.support.quantities import time_text
from placement.support.tables import align_columns
from rankmap.predict import Prediction
from workloads.minicray import client
from workloads.minicray.net import stated

__all__ = [
    "CountedLinks",
    "defaults",
    "document",
    "expected_bytes",
    "side_by_side",
    "total_demand",
    "words",
]

#: Links with less of the busiest one's bytes are shown, not judged: barriers are as much.
_LEAST = 0.05

#: Bytes of Ethernet's, IPv4's and TCP's header with time stamps.
ETHERNET, INTERNET, TRANSPORT = 14, 20, 20 + 12
HEADER = ETHERNET + INTERNET + TRANSPORT

#: Links of a table.
_SHOWN = 24


@dataclass(frozen=True, slots=True)
class CountedLinks:
    """Links with what was predicted and counted.

    Attributes
    ----------
    names : str (m,)
        Channels, then each node's injection and ejection.
    payload, wire, counted : float64 (m,)
        Bytes: of messages, with headers and acknowledgements, by the kernel.
    seconds : float
        What one run takes on a mini-Cray's slower links, headers and all, latency apart.
    """

    names: Strs
    payload: Floats
    wire: Floats
    counted: Floats
    seconds: float = 0.0

    @property
    def judged(self) -> Mask:
        """The links that carry enough to be judged."""
        return np.asarray(self.wire >= _LEAST * self.wire.max(initial=1.0))

    @property
    def error(self) -> Floats:
        """How far the counts of these are off, as a part of what was predicted."""
        some = self.judged
        return np.asarray(self.counted[some] / self.wire[some] - 1)


def segment(mtu: int) -> int:
    """Return the bytes of a message that a full segment carries.

    Examples
    --------
    >>> segment(9000), segment(1500)
    (8948, 1448)
    """
    return mtu - INTERNET - TRANSPORT


def factor(mtu: int) -> float:
    """Return bytes on the wire over bytes of messages, both directions alike.

    Examples
    --------
    >>> round(factor(9000), 4), round(factor(1500), 4)
    (1.0148, 1.0912)
    """
    return 1 + 2 * HEADER / segment(mtu)


def wire_loads(machine: Machine, demand: Demand, routing: str, mtu: int) -> Loads:
    """Return the bytes on every channel when messages and acknowledgements travel.

    Parameters
    ----------
    machine : Machine
    demand : Demand
        Bytes of messages.
    routing : str
    mtu : int
        Of the links.

    Examples
    --------
    >>> import nidmap, numpy as np
    >>> from placement.network import Demand
    >>> from placement.traffic import Traffic
    >>> m = nidmap.load_machine("torus:3")
    >>> demand = Demand.of(m, Traffic.of(np.array([0]), np.array([1]), 8948.0))
    >>> there_and_back = wire_loads(m, demand, "single", 9000)
    >>> dict(zip(there_and_back.channels.names().tolist()[:4], there_and_back.load.tolist()))
    {'x0->x1 x': 9014.0, 'x1->x2 x': 0.0, 'x2->x0 x': 0.0, 'x0->x2 x': 0.0}
    >>> float(there_and_back.load.sum())
    9080.0
    """
    share = HEADER / segment(mtu)
    there = loads(machine, demand * (1 + share), routing)
    back = loads(machine, demand.reversed() * share, routing)
    return there + back


def defaults(name: str, specs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the machine to predict with: the mini-Cray's, and its routing, where none is given."""
    about = client.ask(name, {"do": "status"})
    return stated(specs or tuple(about["machine"]), routing=about["routing"])


def expected_bytes(
    machine: Machine, demand: Demand, routing: str, mtu: int
) -> tuple[Strs, Floats, Floats]:
    """Return link names, bytes of messages, and bytes with headers and acknowledgements."""
    plain, wire = loads(machine, demand, routing), wire_loads(machine, demand, routing, mtu)
    names = machine.names.tolist()
    own = [f"{name} {kind}" for kind in ("injection", "ejection") for name in names]
    every = np.array([*plain.channels.names().tolist(), *own], dtype=np.str_)
    both = [np.concatenate([x.load, x.injection, x.ejection]) for x in (plain, wire)]
    return every, both[0], both[1]


def total_demand(prediction: Prediction) -> Demand:
    """Return what all phases of a prediction send together."""
    first, *others = (phase.demand for phase in prediction.phases)
    return reduce(add, others, first)


def side_by_side(prediction: Prediction, name: str, times: float = 1.0) -> CountedLinks:
    """Return predicted and counted loads of a mini-Cray's links.

    Parameters
    ----------
    prediction : Prediction
    name : str
        Of the mini-Cray.
    times : float
        How often the pattern has run since the counters were set to zero.

    Raises
    ------
    UsageError
        A prediction for another machine.
    LaunchError
        No such mini-Cray.
    """
    about = client.ask(name, {"do": "status"})
    whole = total_demand(prediction)
    machine, routing = prediction.loads.channels.machine, prediction.loads.routing
    names, payload, wire = expected_bytes(machine, whole * times, routing, int(about["mtu"]))
    there = client.link_bytes(name)
    known = np.array([text in there for text in names.tolist()])
    if not known[wire > 0].all():
        raise UsageError(
            f"the prediction is for {machine.name}, and mini-Cray {name} is another machine",
            f"leave -m out: it is {' '.join(about['machine'])}",
        )
    counts = np.array([there.get(text, 0) for text in names.tolist()], dtype=np.float64)
    seconds = sum(phase.bandwidth_s for phase in prediction.phases) * float(about["scale"])
    seconds *= factor(int(about["mtu"]))
    return CountedLinks(names[known], payload[known], wire[known], counts[known], seconds)


def document(prediction: Prediction, name: str, times: float) -> dict[str, Any]:
    """Return the comparison as ``--json`` has it."""
    side = side_by_side(prediction, name, times)
    columns = [x.tolist() for x in (side.names, side.payload, side.wire, side.counted)]
    heads = ("link", "payload", "wire", "counted")
    error = np.abs(side.error)
    return {
        "minicray": name,
        "times": times,
        "seconds_here": side.seconds,
        "links": [dict(zip(heads, row, strict=True)) for row in zip(*columns, strict=True)],
        "judged": int(side.judged.sum()),
        "median_error": float(np.median(error)) if len(error) else None,
        "worst_error": float(error.max()) if len(error) else None,
    }


def words(prediction: Prediction, name: str, times: float) -> str:
    """Return the comparison for a person: the busiest links, and how far counts are off."""
    side = side_by_side(prediction, name, times)
    order = np.argsort(-np.maximum(side.wire, side.counted), kind="stable")[:_SHOWN]
    rows: list[tuple[str, ...]] = [("link", "predicted", "with headers", "counted", "ratio")]
    for k in order.tolist():
        ratio = f"{side.counted[k] / side.wire[k]:.3f}" if side.wire[k] else "-"
        figures = (side.payload[k], side.wire[k], side.counted[k])
        rows.append((str(side.names[k]), *(f"{x:,.0f}" for x in figures), ratio))
    slow = f"on these links one run takes {time_text(side.seconds)}, latency apart"
    return f"{align_columns(rows)}\n{_sentence(side, times)}\n{slow}\n"


def _sentence(side: CountedLinks, times: float) -> str:
    if not side.wire.any():
        return "nothing is predicted to leave a node"
    if not side.counted.any():
        return "nothing has been counted: run it, then ask again"
    error = np.abs(side.error)
    sentence = f"{len(error)} links: counts are off by {np.median(error):.1%} in the median"
    sentence += f", {error.max():.1%} at most"
    stray = float(side.counted[side.wire == 0].max(initial=0))
    if stray > _LEAST * side.wire.max():
        idle = f"links that should be idle have carried {stray:,.0f} bytes"
        return f"{sentence}; {idle}: other nodes ran"
    if error.max() > 0.25:
        runs = times * float(np.median(side.error) + 1)
        sentence += f"; they would be those of {runs:.3g} runs (--times)"
    return sentence
