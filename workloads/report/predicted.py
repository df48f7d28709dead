"""What the network model says of the arms of an A/B measurement, beside what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import NidmapError
from workloads.ab.analysis import credited_phase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from placement.machine import Machine
    from placement.support.array_types import Ints

__all__ = ["predict_arms", "slots_of_arm"]


def predict_arms(
    machine: Machine, header: Mapping[str, Any], found: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], str]:
    """Return predicted and measured ratios of each arm to the first.

    Returns
    -------
    list of dict
        ``arm``, ``predicted_s``, ``predicted_ratio``, ``measured_ratio``,
        ``low``, ``high``, ``inside`` (whether the interval holds the
        prediction).
    str
        Why there is none, '' where there is.
    """
    from rankmap.predict import predict

    size, times = header.get("bytes"), []
    if not header.get("pattern"):
        return [], "who talks to whom is not known (--pattern of the measurement says it)"
    try:
        for arm in header["arms"]:
            nodes, ppn, slots = slots_of_arm(_rank_hosts(header), arm["members"])
            expected = predict(machine, nodes, header["pattern"], order=slots, ppn=ppn, bytes=size)
            times.append(float(expected.time_s))
    except NidmapError as error:
        return [], str(error)
    phase = credited_phase(found)
    measured = {c["arm"]: c for c in found["comparisons"] if c["phase"] == phase}
    rows = []
    for arm, seconds in zip(header["arms"], times, strict=True):
        entry = measured.get(arm["name"], {})
        ratio = times[0] / seconds if seconds else None
        low, high = entry.get("low"), entry.get("high")
        inside = None
        if ratio is not None and entry.get("ratio") is not None:
            inside = (low or 0.0) <= ratio <= (high or np.inf)
        rows.append({
            "workload": header["workload"],
            "arm": arm["name"],
            "predicted_s": seconds if size else None,
            "predicted_ratio": ratio,
            "measured_ratio": entry.get("ratio"),
            "low": low,
            "high": high,
            "inside": inside,
        })  # fmt: skip
    return rows, ""


def _rank_hosts(header: Mapping[str, Any]) -> list[str]:
    """Return the node of each rank of the world."""
    pairs = zip(header["hosts"], header["counts"], strict=True)
    return header.get("rank_hosts") or [host for host, count in pairs for _ in range(count)]


def slots_of_arm(hosts: Sequence[str], members: Sequence[int]) -> tuple[list[str], list[int], Ints]:
    """Return an arm's nodes, the ranks on each, and the slot of each of its ranks.

    Nodes stand in the order of the world's lowest rank on each; so do the
    slots of a node.

    Examples
    --------
    >>> slots_of_arm(["a", "b", "a", "b"], [3, 0, 1, 2])
    (['a', 'b'], [2, 2], array([3, 0, 2, 1]))
    """
    by_rank = sorted(members)
    names = list(dict.fromkeys(hosts[rank] for rank in by_rank))
    number = {name: k for k, name in enumerate(names)}
    node = {rank: number[hosts[rank]] for rank in by_rank}
    slot = {rank: k for k, rank in enumerate(sorted(by_rank, key=node.__getitem__))}
    counts: list[int] = np.bincount(list(node.values())).tolist()
    return names, counts, np.array([slot[rank] for rank in members], dtype=np.int64)
