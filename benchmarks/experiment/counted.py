# SPDX-License-Identifier: Apache-2.0
"""Predicted against counted bytes on a mini-Cray's links, including headers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.network import Demand, Loads, loads
from nidmap.placement.support.array_types import Floats, Mask, Strs
from nidmap.rankmap.predict import Prediction
from nidmap.workloads.minicray.net import HEADER, segment_bytes

#: Links with less of the busiest one's bytes are shown, not judged: barriers are as much.
_LEAST = 0.05


@dataclass(frozen=True, slots=True)
class CountedLinks:
    """Links with predicted and counted bytes.

    Attributes
    ----------
    names : str (m,)
        Channels, then each node's injection and ejection.
    payload, wire, counted : float64 (m,)
        Bytes: of messages, with headers and acknowledgements, by the kernel.
    """

    names: Strs
    payload: Floats
    wire: Floats
    counted: Floats

    @property
    def judged(self) -> Mask:
        """The links that carry enough to be evaluated."""
        return np.asarray(self.wire >= _LEAST * self.wire.max(initial=1.0))

    @property
    def error(self) -> Floats:
        """The relative error of the predictions for these links."""
        some = self.judged
        return np.asarray(self.counted[some] / self.wire[some] - 1)


def wire_loads(machine: Machine, demand: Demand, routing: str, mtu: int) -> Loads:
    """Return the bytes on every channel for messages and acknowledgements.

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
    >>> from nidmap.placement.network import Demand
    >>> from nidmap.placement.traffic import Traffic
    >>> m = nidmap.load_machine("torus:3")
    >>> demand = Demand.of(m, Traffic.of(np.array([0]), np.array([1]), 8948.0))
    >>> there_and_back = wire_loads(m, demand, "single", 9000)
    >>> dict(zip(there_and_back.channels.names().tolist()[:4], there_and_back.load.tolist()))
    {'x0->x1 x': 9014.0, 'x1->x2 x': 0.0, 'x2->x0 x': 0.0, 'x0->x2 x': 0.0}
    >>> float(there_and_back.load.sum())
    9080.0
    """
    share = HEADER / segment_bytes(mtu)
    there, back = (loads(machine, way, routing) for way in (demand, demand.reversed()))
    amounts = {
        name: (1 + share) * getattr(there, name) + share * getattr(back, name)
        for name in ("load", "injection", "ejection")
    }
    load = amounts.pop("load")
    used = np.flatnonzero(load)
    return replace(there, used=used, carried=load[used], **amounts)


def expected_bytes(
    machine: Machine, demand: Demand, routing: str, mtu: int
) -> tuple[Strs, Floats, Floats]:
    """Return link names, bytes of messages, and bytes with headers and acknowledgements."""
    plain, wire = loads(machine, demand, routing), wire_loads(machine, demand, routing, mtu)
    names = machine.names.tolist()
    node_links = [f"{name} {kind}" for kind in ("injection", "ejection") for name in names]
    link_names = np.array([*plain.channels.names().tolist(), *node_links], dtype=np.str_)
    payload, with_headers = (
        np.concatenate([carried.load, carried.injection, carried.ejection])
        for carried in (plain, wire)
    )
    return link_names, payload, with_headers


def total_demand(prediction: Prediction) -> Demand:
    """Return what all phases of a prediction send in total."""
    first, *others = (phase.demand for phase in prediction.phases)
    return reduce(add, others, first)
