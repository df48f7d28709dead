# SPDX-License-Identifier: Apache-2.0
"""Cray XC, XE and XK: nodes in cabinets on a floor, with NIDs by rule.

The floor is one array over (row, column, chassis, slot, node); a selector, a
cname with ranges in it, marks a part of it. Everything is filled by slices,
so 27,648 places cost no more than a few hundred.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.geometry.cray_nids import GROUP, xc_topology, xe_topology
from nidmap.placement.machine import Topology
from nidmap.placement.names import format_cnames
from nidmap.placement.names.numbering import GeminiNumbering, Xc
from nidmap.placement.records import NodeRecords
from nidmap.placement.sites.schema import Aries, Cabinets, Config, Gemini
from nidmap.placement.sites.shared import (
    ON_SLINGSHOT,
    SiteLayout,
    WrongFigure,
    expand_ranges,
    forbid_figure,
    inventory,
    node_names,
    refuse_different,
)
from nidmap.placement.support.array_types import Ints, Mask

Index = NDArray[np.intp]

#: The contents of a place of the floor.
VACANT, COMPUTE, SERVICE = 0, 1, 2

#: Where the numbers of a cname (column, row, cage, slot, node) are in the floor's axes.
_AXES = (1, 0, 2, 3, 4)

#: A floor of more cabinets is a typing error (the largest machines have some 300).
_MOST = 4096

_PART = r"(\*|\d{1,4}|\[[\d,-]{1,200}\])"
_CNAME = re.compile(rf"c{_PART}-{_PART}(?:c{_PART}(?:s{_PART}(?:n{_PART})?)?)?", re.ASCII)


def lay_out(config: Config, network: Aries | Gemini) -> SiteLayout:
    """Return the nodes on the floor of a Cray XC, XE or XK."""
    if config.cabinets is None:
        raise WrongFigure("cabinets", "missing: columns and rows of cabinets")
    forbid_figure(config, "a Cray with cabinets", ON_SLINGSHOT)
    places = floor(config.cabinets, 16 if isinstance(network, Aries) else 8)
    where = np.nonzero(places)
    parts = np.column_stack([where[axis] for axis in _AXES]).astype(np.int32)
    columns, rows = config.cabinets.columns.value, config.cabinets.rows.value
    rule = GeminiNumbering(columns, rows) if isinstance(network, Gemini) else Xc(columns)
    nid, service = rule.nid(parts), places[where] == SERVICE
    of = np.where(service, -1, _partition_numbers(config, places)[where])
    order = np.argsort(nid, kind="stable")
    nid, parts, service, of = nid[order], parts[order], service[order], of[order]
    coords = rule.coords(parts)
    name = config.nodes.name.value if config.nodes.name else "nid{nid:05}"
    nodes = NodeRecords(
        nid=nid,
        name=node_names("nodes.name", name, {"nid": nid}),
        cname=format_cnames(parts),
        role=np.where(service, "service", "compute"),
        position=coords,
        **inventory(config, of),
    )
    return SiteLayout(_cray_topology(config.cabinets, network, places, coords), nodes)


def _cray_topology(
    cabinets: Cabinets, network: Aries | Gemini, places: NDArray[np.int8], coords: NDArray[np.int32]
) -> Topology:
    filled = int((places != VACANT).any(axis=(2, 3, 4)).sum())
    refuse_different("cabinets.count", cabinets.count, filled, "the number on the floor")
    columns, rows = cabinets.columns.value, cabinets.rows.value
    if isinstance(network, Gemini):
        torus = xe_topology(columns, rows)
        what = "what columns, 2 x rows and 24 give"
        refuse_different("network.extents", network.extents, torus.extents[:3], what)
        return torus
    present = np.flatnonzero(np.bincount(coords[:, 0]))
    refuse_different(
        "network.groups", network.groups, len(present), "the number of groups on the floor"
    )
    for key, size in zip(("chassis", "blades", "nodes"), GROUP, strict=True):
        refuse_different(f"network.{key}", getattr(network, key), size, "what an XC has")
    wiring, links = network.wiring.value, network.links.value
    return xc_topology(int(present[-1]) + 1, columns, wiring, links)


def _partition_numbers(config: Config, places: NDArray[np.int8]) -> Ints:
    """Return the partition number of each position; -1 if it belongs to none."""
    of = np.full(places.shape, -1, np.int64)
    compute = places == COMPUTE
    left_over = [part for part in config.partition if part.where is None]
    for number, part in sorted(enumerate(config.partition), key=lambda item: item[1].where is None):
        if part.where is not None:
            key, what = f"partition.{part.name}.where", "what it selects"
            mask = select(key, part.where.value, places.shape) & compute
            if (of[mask] >= 0).any():
                raise WrongFigure(key, "some of these places belong to another partition already")
        elif len(left_over) == 1:
            mask, what = (of < 0) & compute, "what is left for it"
        else:
            continue
        of[mask] = number
        refuse_different(f"partition.{part.name}.count", part.count, int(mask.sum()), what)
    return of


def floor(cabinets: Cabinets, slots: int) -> NDArray[np.int8]:
    """Return the contents of every position on the floor.

    `slots`: blades of a chassis: 16 on XC, 8 on XE and XK. Returns (rows, columns, 3, slots, 4):
    0 vacant or absent, 1 compute, 2 service.
    """
    columns, rows = cabinets.columns.value, cabinets.rows.value
    if columns * rows > _MOST:
        text = f"{rows} rows of {columns} cabinets; more than {_MOST} are assumed to be a mistake"
        raise WrongFigure("cabinets.rows", text)
    places = np.full((rows, columns, 3, slots, 4), COMPUTE, np.int8)
    kinds: tuple[tuple[str, int, list[int]], ...] = (
        *(("service_blades", SERVICE, [1, 2]), ("service_blades", VACANT, [0, 3])),
        *(("service", SERVICE, []), ("vacant", VACANT, []), ("absent", VACANT, [])),
    )
    for key, value, nodes in kinds:
        figure = getattr(cabinets, key)
        for text in figure.value if figure else ():
            parts = _select_indices(f"cabinets.{key}", text, places.shape)
            parts[4] = np.array(nodes) if nodes else parts[4]
            places[np.ix_(*parts)] = value
    return places


def select(key: str, selectors: Sequence[str], shape: tuple[int, ...]) -> Mask:
    """Return the mask of the positions that match any of the selectors."""
    mask = np.zeros(shape, dtype=bool)
    for text in selectors:
        mask[np.ix_(*_select_indices(key, text, shape))] = True
    return mask


def _select_indices(key: str, text: str, shape: tuple[int, ...]) -> list[Index]:
    """Return the indices that a selector names on each axis of the floor."""
    match = _CNAME.fullmatch(text)
    if match is None:
        raise WrongFigure(key, f"'{text}' is not a cname such as c0-0 or c[0-3]-*c2s15n1")
    parts = [np.empty(0, np.intp)] * 5
    for axis, part in zip(_AXES, match.groups(), strict=True):
        parts[axis] = _selector_numbers(key, part or "*", shape[axis])
    return parts


def _selector_numbers(key: str, part: str, size: int) -> Index:
    """Return the numbers in one part of a selector, all less than `size`."""
    if part == "*":
        return np.arange(size)
    numbers = set(expand_ranges(key, part.strip("[]").split(","), size))
    return np.array(sorted(numbers))
