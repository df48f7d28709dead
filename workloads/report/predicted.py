"""What the network model says of the arms of an A/B measurement, beside what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import NidmapError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from placement.machine import Machine

__all__ = ["beside", "slots_of_arm"]


def beside(
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
    pattern = header.get("pattern")
    if not pattern:
        return [], "who talks to whom is not known (--pattern of the measurement says it)"
    try:
        times = [_seconds(machine, header, arm, pattern) for arm in header["arms"]]
    except NidmapError as error:
        return [], str(error)
    measured = {
        entry["arm"]: entry for entry in found["comparisons"] if entry["phase"] == "communication"
    }
    rows = []
    for arm, seconds in zip(header["arms"], times, strict=True):
        entry = measured.get(arm["name"], {})
        ratio = times[0] / seconds if seconds else None
        rows.append(
            {
                "workload": header["workload"],
                "arm": arm["name"],
                "predicted_s": seconds if header.get("bytes") else None,
                "predicted_ratio": ratio,
                "measured_ratio": entry.get("ratio"),
                "low": entry.get("low"),
                "high": entry.get("high"),
                "inside": _inside(ratio, entry),
            }
        )
    return rows, ""


def _inside(ratio: float | None, entry: Mapping[str, Any]) -> bool | None:
    if ratio is None or entry.get("ratio") is None:
        return None
    low, high = entry.get("low") or 0.0, entry.get("high") or float("inf")
    return bool(low <= ratio <= high)


def _seconds(
    machine: Machine, header: Mapping[str, Any], arm: Mapping[str, Any], pattern: str
) -> float:
    """Return the predicted seconds of an arm."""
    from rankmap.predict import predict

    names, counts, slots = slots_of_arm(_rank_hosts(header), arm["members"])
    size = header.get("bytes")
    made = predict(machine, names, pattern, order=slots, ppn=counts, bytes=size)
    return float(made.time_s)


def _rank_hosts(header: Mapping[str, Any]) -> list[str]:
    """Return the node of each rank of the world."""
    given = header.get("rank_hosts")
    if given:
        return list(given)
    pairs = zip(header["hosts"], header["counts"], strict=True)
    return [host for host, count in pairs for _ in range(count)]


def slots_of_arm(
    hosts: Sequence[str], members: Sequence[int]
) -> tuple[list[str], list[int], NDArray[np.int64]]:
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
    node = np.array([number[hosts[rank]] for rank in by_rank])
    slot = np.empty(len(by_rank), dtype=np.int64)
    slot[np.argsort(node, kind="stable")] = np.arange(len(by_rank))
    at = np.searchsorted(np.array(by_rank), np.array(members))
    return names, np.bincount(node).tolist(), slot[at]
