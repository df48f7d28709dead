"""The places on a node: as many sets of cores as it has ranks, each with its GPU and NIC.

Every rank has as many cores as the others, but for one. Cores are dealt from the
outside in: to sockets, in each to its NUMA domains, in each to its caches, so that
no rank lies across two of them where equal shares allow that. On a node with GPUs
whose ranks can share them evenly, each rank gets cores beside its GPU instead: on
Frontier the ranks that stand on cores 1-7, 9-15, … get the GPUs 4, 5, 2, 3, 6, 7, 0, 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

import numpy as np

from placement.errors import UsageError
from placement.hardware.model import LEVELS, Device, NodeHardware
from placement.support.array_types import Floats

T = TypeVar("T")

__all__ = ["Place", "costs_between", "costs_to_nics", "places_on"]


class Place(NamedTuple):
    """Where one rank of a node runs.

    Attributes
    ----------
    cores : tuple of int
        As indices of `NodeHardware.cores`, ascending.
    pus : tuple of int
        The hardware threads to bind to, by the operating system's numbers: the
        first of each core, or some of one core where ranks outnumber the cores.
    gpus : tuple of int
        Numbers of the GPUs that are its own; () where the node has none, or ranks cannot
        share them evenly.
    nic : int
        Number of the NIC that it uses; -1 where the node's are not known.
    """

    cores: tuple[int, ...]
    pus: tuple[int, ...]
    gpus: tuple[int, ...] = ()
    nic: int = -1


def places_on(hardware: NodeHardware, ranks: int) -> list[Place]:
    """Return the places of a node, in the order of their cores.

    Parameters
    ----------
    hardware : NodeHardware
    ranks : int
        Ranks on the node, at least 1.

    Raises
    ------
    UsageError
        More ranks than the node has hardware threads for them.

    Examples
    --------
    >>> from placement.hardware.model import Core, Device, NodeHardware
    >>> cores = tuple(Core((k,), k // 2, k // 4, 0) for k in range(8))
    >>> gpus = Device("gpu0", (4, 5, 6, 7)), Device("gpu1", (0, 1, 2, 3))
    >>> node = NodeHardware(cores, gpus)
    >>> [(place.pus, place.gpus) for place in places_on(node, 2)]
    [((0, 1, 2, 3), (1,)), ((4, 5, 6, 7), (0,))]
    >>> [place.pus for place in places_on(node, 3)]
    [(0, 1), (2, 3, 4), (5, 6, 7)]
    """
    usable = [k for k in range(len(hardware.cores)) if k not in hardware.reserved]
    threads = _threads(hardware, usable)
    if ranks > threads:
        kept = f", {len(hardware.reserved)} cores kept by the system" if hardware.reserved else ""
        raise UsageError(
            f"{ranks} ranks for the {threads} hardware threads of a node{kept} ({hardware.source})"
        )
    places = _beside_gpus(hardware, usable, ranks) or _on_cores(hardware, usable, ranks)
    return _with_nics(sorted(places), hardware)


def costs_between(places: Sequence[Place], hardware: NodeHardware) -> Floats:
    """Return what a GB between two places costs, seconds, float64 (k, k); 0 on the diagonal.

    The reciprocal of the bandwidth of the level at which their cores meet, or
    of the link between their GPUs where there is one.
    """
    nested = np.array([hardware.cores[place.cores[0]].nested for place in places])
    meet = (nested[:, None, :] != nested[None, :, :]).sum(axis=2)
    costs = 1 / np.array(hardware.bandwidth)[np.minimum(meet, len(LEVELS) - 1)]
    links = {(a, b): gbs for a, b, gbs in hardware.gpu_links}
    for a, place in enumerate(places):
        for b, partner in enumerate(places):
            pairs = [(min(g, h), max(g, h)) for g in place.gpus for h in partner.gpus]
            best = max((links.get(pair, 0.0) for pair in pairs), default=0.0)
            if best:
                costs[a, b] = 1 / best
    np.fill_diagonal(costs, 0)
    return np.asarray(costs)


def costs_to_nics(places: Sequence[Place], hardware: NodeHardware) -> Floats:
    """Return what a GB from each place to its NIC costs, seconds, float64 (k,); 0 without NICs."""
    costs = np.zeros(len(places))
    for k, place in enumerate(places):
        if place.nic >= 0:
            costs[k] = 1 / hardware.bandwidth[_level(hardware, place, hardware.nics[place.nic])]
    return costs


def _level(hardware: NodeHardware, place: Place, device: Device) -> int:
    """Return the level of `LEVELS` at which a place and a device meet."""
    place_nested = hardware.cores[place.cores[0]].nested
    near = [hardware.cores[core].nested for core in device.near]
    return next(
        k for k in range(len(LEVELS)) if any(nested[k] == place_nested[k] for nested in near)
    )


def _deal(
    hardware: NodeHardware, cores: Sequence[int], ranks: int, level: int
) -> list[tuple[int, ...]]:
    """Return the cores of each of some ranks, dealt at a level of `LEVELS` and below.

    There are at least as many cores as ranks.
    """
    if ranks == 1 or level == 0:
        return _slices([*cores], ranks)
    groups: dict[int, list[int]] = {}
    for core in cores:
        groups.setdefault(hardware.cores[core].nested[level - 1], []).append(core)
    parts = [*groups.values()]
    if ranks < len(parts):
        dealt_parts = [tuple(sorted(chain.from_iterable(run))) for run in _slices(parts, ranks)]
        sizes = [len(cores_of_rank) for cores_of_rank in dealt_parts]
        return dealt_parts if max(sizes) - min(sizes) <= 1 else _slices([*cores], ranks)
    shares: list[int] = []
    before = 0
    for part in parts:  # as many ranks as its share of the cores, to the nearest
        before += len(part)
        shares.append((2 * before * ranks + len(cores)) // (2 * len(cores)) - sum(shares))
    least, most = len(cores) // ranks, -(-len(cores) // ranks)
    even = (least * n <= len(part) <= most * n for part, n in zip(parts, shares, strict=True))
    if not all(even):
        return _slices([*cores], ranks)
    dealt = (_deal(hardware, *pair, level - 1) for pair in zip(parts, shares, strict=True))
    return [*chain.from_iterable(dealt)]


def _slices(things: Sequence[T], parts: int) -> list[tuple[T, ...]]:
    """Cut a list into so many runs, as equal in length as can be."""
    n = len(things)
    return [tuple(things[k * n // parts : (k + 1) * n // parts]) for k in range(parts)]


def _on_cores(hardware: NodeHardware, cores: Sequence[int], ranks: int) -> list[Place]:
    """Return places on some cores: the first thread of each, or threads where cores are too few."""
    if ranks <= len(cores):
        dealt = _deal(hardware, cores, ranks, len(LEVELS) - 1)
        return [
            Place(rank_cores, tuple(hardware.cores[k].pus[0] for k in rank_cores))
            for rank_cores in dealt
        ]
    spare = [core for core in cores for _ in hardware.cores[core].pus[1:]]
    beyond = ranks - len(cores)
    more = Counter(spare[k * len(spare) // beyond] for k in range(beyond))
    return [
        Place((core,), pus)
        for core in cores
        for pus in _slices(hardware.cores[core].pus, 1 + more[core])
    ]


def _beside_gpus(hardware: NodeHardware, usable: Sequence[int], ranks: int) -> list[Place]:
    """Return places beside GPUs; none where ranks and GPUs do not share evenly.

    Where the cores beside the GPUs are too few, or lie across those of others, the GPUs
    are dealt over all cores.
    """
    count = len(hardware.gpus)
    if not count or (ranks % count and count % ranks):
        return []
    beside = [tuple(k for k in gpu.near if k in set(usable)) for gpu in hardware.gpus]
    ranks_a_gpu = max(1, ranks // count)
    for near in (beside, [tuple(usable)] * count):
        by_core = sorted(range(count), key=lambda gpu: (near[gpu], gpu))
        sharing: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for bundle in _slices(by_core, min(ranks, count)):
            cores = tuple(sorted({core for gpu in bundle for core in near[gpu]}))
            sharing.setdefault(cores, []).append(bundle)
        apart = len(set(chain(*sharing))) == len([*chain(*sharing)])
        if apart and all(_threads(hardware, c) >= len(b) * ranks_a_gpu for c, b in sharing.items()):
            break
    return [
        place._replace(gpus=bundles[k // ranks_a_gpu])
        for cores, bundles in sharing.items()
        for k, place in enumerate(_on_cores(hardware, cores, len(bundles) * ranks_a_gpu))
    ]


def _threads(hardware: NodeHardware, cores: Sequence[int]) -> int:
    """Return how many hardware threads some cores have."""
    return sum(len(hardware.cores[k].pus) for k in cores)


def _with_nics(places: Sequence[Place], hardware: NodeHardware) -> list[Place]:
    """Return the places with the nearest NICs, each NIC for as many of them as the others."""
    everywhere = all(len(nic.near) == len(hardware.cores) for nic in hardware.nics)
    if everywhere and len(hardware.nics) > 1:
        return [*places]  # which one is near what is not known
    used = [0] * len(hardware.nics)
    with_nics = []
    for place in places:
        ways = [(_level(hardware, place, nic), used[k], k) for k, nic in enumerate(hardware.nics)]
        best = min(ways, default=(0, 0, -1))[2]
        if best >= 0:
            used[best] += 1
        with_nics.append(place._replace(nic=best))
    return with_nics
