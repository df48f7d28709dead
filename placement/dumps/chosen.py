# SPDX-License-Identifier: Apache-2.0
"""The selected part of a dump: rails of a fabric, one topology of a file with several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nidmap.placement.errors import ParseError, UsageError
from nidmap.placement.names import hostlist
from nidmap.placement.names.hostlist import TextPiece
from nidmap.placement.nodelist import NodeList
from nidmap.placement.records import Dump, LinkRecords, NodeRecords
from nidmap.placement.support.array_types import Mask, Strs

#: Options that may follow a file's name, and the dumps that they apply to.
CHOICES = {"rails": "lists of cables (ibnetdiscover, LLDP)", "topology": "topology.yaml"}


def choose_parts(dump: Dump, chosen: Mapping[str, str]) -> Dump:
    """Return the parts of a dump selected by the options after a file's name."""
    if "rails" in chosen:
        dump = choose_rails(dump, chosen["rails"])
    return choose_topology(dump, chosen["topology"]) if "topology" in chosen else dump


def choose_topology(dump: Dump, name: str) -> Dump:
    """Return the named topology of a ``topology.yaml``."""
    topologies = dump.parameters.get("topologies")
    if not isinstance(topologies, dict):
        raise _no_choice(dump, "topology", name)
    if name not in topologies:
        there = f"choose from {', '.join(topologies)}"
        raise ParseError(dump.source, 0, f"unknown topology {name!r}", there)
    topology = topologies[name]
    if isinstance(topology, ParseError):
        raise topology
    assert isinstance(topology, Dump)
    return replace(topology, source=dump.source, format=dump.format, kind=dump.kind,
                   scheduler=dump.scheduler)  # fmt: skip


def choose_rails(dump: Dump, words: str) -> Dump:
    """Return a list of cables restricted to the given adapters.

    `words`: ``mlx5_[0-3]``, several between colons; an adapter means all its ports. The first one
    that a node has says where it is.
    """
    listed = dump.links
    if dump.kind != "cables" or listed is None or listed.adapter is None:
        raise _no_choice(dump, "rails", words)
    names = _adapter_names(words, dump.source)
    known = np.unique(listed.adapter[listed.adapter != ""])
    taken = [name for name in known.tolist() if {name, name.rpartition("/")[0]} & {*names}]
    if not taken:
        there = NodeList(known.tolist()).fold(sort=True) if _are_names(known) else ", ".join(known)
        hint = f"choose from {there}" if len(known) else "none of its hosts names an adapter"
        raise ParseError(dump.source, 0, f"no host has an adapter {words!r}", hint)
    switches = ~listed.host_ends()
    links = _some_links(listed, switches | np.isin(listed.adapter, taken))
    parameters = {**dump.parameters, "rails": names}
    return replace(dump, links=links, nodes=_cabled_nodes(dump, links), parameters=parameters)


def _no_choice(dump: Dump, key: str, value: str) -> UsageError:
    what = f"{dump.source},{key}={value}: there is nothing to choose from"
    return UsageError(what, f"{key}= goes with {CHOICES[key]}")


def _adapter_names(words: str, source: str) -> tuple[str, ...]:
    """Return the adapters in a list of cables, in its order."""
    pieces = [TextPiece(word, 0) for word in words.split(":")]
    try:
        return tuple(dict.fromkeys(hostlist.expand(pieces, source)))
    except ParseError as error:
        raise UsageError(f"rails={words}: {error.text}", error.hint or "as in mlx5_[0-3]") from None


def _are_names(words: Strs) -> bool:
    return not any("/" in word for word in words.tolist())


def _some_links(links: LinkRecords, kept: Mask) -> LinkRecords:
    """Return the selected rows of a list of links."""
    columns: dict[str, Any] = {name: getattr(links, name) for name in LinkRecords.__slots__}
    columns = {k: None if c is None else c[kept] for k, c in columns.items()}
    return LinkRecords(**columns)


def _cabled_nodes(dump: Dump, links: LinkRecords) -> NodeRecords | None:
    """Return the hosts that still have cables, with their number."""
    nodes = dump.nodes
    if nodes is None or nodes.name is None:
        return nodes
    cables = Counter(host for host, *_ in links.host_cables().values())
    kept = np.isin(nodes.name, [*cables])
    columns: dict[str, Any] = {name: getattr(nodes, name) for name in NodeRecords.__slots__}
    columns = {k: None if c is None else c[kept] for k, c in columns.items()}
    nics = np.array([cables[name] for name in nodes.name[kept].tolist()], dtype=np.int32)
    return NodeRecords(**columns | {"nics": nics})
