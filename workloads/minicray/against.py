"""Predicted beside counted: what ``nidmap predict --against NAME`` adds.

The front door names this module to the prediction's command, which stands in
an earlier room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import UsageError
from workloads.minicray import client
from workloads.minicray.wire import factor, wire_loads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network import Demand
    from rankmap.predict import Prediction

__all__ = ["Side", "counted", "defaults", "document", "expected", "side_by_side", "words"]

#: Links with less of the busiest one's bytes are shown, not judged: barriers are as much.
_LEAST = 0.05

#: Links of a table.
_SHOWN = 24


@dataclass(frozen=True, slots=True)
class Side:
    """Links with what was predicted and counted.

    Attributes
    ----------
    names : str (m,)
        Channels, then each node's injection and ejection.
    payload, wire, counted : float64 (m,)
        Bytes: of messages, with headers and acknowledgements, by the kernel.
    """

    names: NDArray[np.str_]
    payload: NDArray[np.float64]
    wire: NDArray[np.float64]
    counted: NDArray[np.float64]

    @property
    def judged(self) -> NDArray[np.bool_]:
        """The links that carry enough to be judged."""
        return np.asarray(self.wire >= _LEAST * self.wire.max(initial=1.0))

    @property
    def error(self) -> NDArray[np.float64]:
        """How far the counts of these are off, as a part of what was predicted."""
        some = self.judged
        return np.asarray(self.counted[some] / self.wire[some] - 1)


def defaults(name: str, specs: tuple[str, ...], routing: str) -> tuple[tuple[str, ...], str]:
    """Return machine and routing to predict with: those of the mini-Cray where none is given."""
    about = client.ask(name, {"do": "status"})
    specs = specs or tuple(about["machine"])
    return specs, routing or _routing(specs, about["routing"])


def _routing(specs: tuple[str, ...], built: str) -> str:
    """Return the predictor's routing that is nearest to a mini-Cray's."""
    if built == "single":
        return built
    from placement.load import load_machine
    from placement.network import routings

    return "shortest" if "shortest" in routings(load_machine(*specs)) else "single"


def expected(
    machine: Machine, demand: Demand, routing: str, mtu: int
) -> tuple[NDArray[np.str_], NDArray[np.float64], NDArray[np.float64]]:
    """Return link names, bytes of messages, and bytes with headers and acknowledgements."""
    from placement.network import loads

    plain, wire = loads(machine, demand, routing), wire_loads(machine, demand, routing, mtu)
    names = machine.names.tolist()
    own = [f"{name} {kind}" for kind in ("injection", "ejection") for name in names]
    every = np.array([*plain.channels.names().tolist(), *own], dtype=np.str_)
    both = [np.concatenate([x.load, x.injection, x.ejection]) for x in (plain, wire)]
    return every, both[0], both[1]


def counted(name: str, zero: bool = False) -> dict[str, float]:
    """Return the bytes that each link of a mini-Cray has carried since the last zero."""
    found = client.ask(name, {"do": "links", "zero": zero})["links"]
    return {link: float(row["bytes"]) for link, row in found.items()}


def side_by_side(found: Prediction, name: str, times: float = 1.0) -> Side:
    """Return predicted and counted loads of a mini-Cray's links.

    Parameters
    ----------
    found : Prediction
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
    whole = found.phases[0].demand
    for phase in found.phases[1:]:
        whole = whole + phase.demand
    machine, routing = found.loads.channels.machine, found.loads.routing
    names, payload, wire = expected(machine, whole * times, routing, int(about["mtu"]))
    there = counted(name)
    known = np.array([text in there for text in names.tolist()])
    if not known[wire > 0].all():
        raise UsageError(
            f"the prediction is for {machine.name}, and mini-Cray {name} is another machine",
            f"leave -m out: it is {' '.join(about['machine'])}",
        )
    counts = np.array([there.get(text, 0.0) for text in names.tolist()])
    return Side(names[known], payload[known], wire[known], counts[known])


def seconds_here(found: Prediction, name: str) -> float:
    """Return what one run takes on a mini-Cray's slower links, headers and all, latency apart."""
    about = client.ask(name, {"do": "status"})
    bandwidth = sum(phase.bandwidth_s for phase in found.phases)
    return bandwidth * float(about["scale"]) * factor(int(about["mtu"]))


def document(found: Prediction, name: str, times: float) -> dict[str, Any]:
    """Return the comparison as ``--json`` has it."""
    side = side_by_side(found, name, times)
    columns = (
        side.names.tolist(),
        side.payload.tolist(),
        side.wire.tolist(),
        side.counted.tolist(),
    )
    return {
        "minicray": name,
        "times": times,
        "seconds_here": seconds_here(found, name),
        "links": [
            {"link": link, "payload": payload, "wire": wire, "counted": count}
            for link, payload, wire, count in zip(*columns, strict=True)
        ],
        "judged": int(side.judged.sum()),
        "median_error": float(np.median(np.abs(side.error))) if len(side.error) else None,
        "worst_error": float(np.abs(side.error).max()) if len(side.error) else None,
    }


def words(found: Prediction, name: str, times: float) -> str:
    """Return the comparison for a person: the busiest links, and how far counts are off."""
    from placement.commands.tables import aligned
    from placement.quantities import time_text

    side = side_by_side(found, name, times)
    order = np.argsort(-np.maximum(side.wire, side.counted), kind="stable")[:_SHOWN]
    rows: list[tuple[str, ...]] = [("link", "predicted", "with headers", "counted", "ratio")]
    for k in order.tolist():
        ratio = f"{side.counted[k] / side.wire[k]:.3f}" if side.wire[k] else "-"
        figures = (side.payload[k], side.wire[k], side.counted[k])
        rows.append((str(side.names[k]), *(f"{x:,.0f}" for x in figures), ratio))
    slow = f"on these links one run takes {time_text(seconds_here(found, name))}, latency apart"
    return f"{aligned(rows)}\n{_sentence(side, times)}\n{slow}\n"


def _sentence(side: Side, times: float) -> str:
    if not side.wire.any():
        return "nothing is predicted to leave a node"
    if not side.counted.any():
        return "nothing has been counted: run it, then ask again"
    error = np.abs(side.error)
    said = f"{len(error)} links: counts are off by {np.median(error):.1%} in the median"
    said += f", {error.max():.1%} at most"
    stray = float(side.counted[side.wire == 0].max(initial=0))
    if stray > _LEAST * side.wire.max():
        return f"{said}; links that should be idle have carried {stray:,.0f} bytes: other nodes ran"
    if error.max() > 0.25:
        runs = times * float(np.median(side.error) + 1)
        said += f"; they would be those of {runs:.3g} runs (--times)"
    return said
