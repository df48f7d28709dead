# SPDX-License-Identifier: Apache-2.0
"""`cray hsm state components list` (HPE CSM): xnames, NIDs, roles, states and switches, as JSON.

``{"Components": [{"ID": "x1000c0s0b0n0", "Type": "Node", "State": "Ready", "Flag": "OK",
"Enabled": true, "Role": "Compute", "NID": 1000, …}]}``, as HSM's REST interface and ``sat`` print
it too. A node is up that is Ready and enabled (HSM's documentation: its operating system sends
heartbeats); ``On`` is a node that boots, ``Standby`` one whose heartbeats are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta, Struct, field

from nidmap.placement.errors import ParseError, schema_sentence
from nidmap.placement.names import plain_xname
from nidmap.placement.readers import count_lines, dump_format, split_lines
from nidmap.placement.readers.sls import MAX_NID, NODE_XNAME, SWITCH_XNAME
from nidmap.placement.readers.yaml_json import load_json
from nidmap.placement.records import Dump, Finding, NodeRecords

_COMPONENTS = re.compile(r'"Components"\s*:\s*\[', re.IGNORECASE)
_SWITCH_TYPES = {"routerbmc", "routermodule", "hsnboard"}
#: A flag on a Ready node that has problems.
_ALERT = "alert"


class HsmComponent(Struct, rename="pascal"):
    """A component's kind and state, where given."""

    id: str = field(name="ID")
    type: str = ""
    state: str = ""
    flag: str = ""
    enabled: bool = True
    role: str = ""
    nid: Annotated[int, Meta(le=MAX_NID)] = field(default=-1, name="NID")

    def word(self) -> str:
        """Return its state in one word: ``up``, or why it is unavailable to jobs."""
        if not self.enabled:
            return "disabled"
        if self.state.lower() == "ready":
            return _ALERT if self.flag.lower() == _ALERT else "up"
        return self.state.lower() or "unknown"


class HsmComponents(Struct, rename="pascal"):
    """The API's answer."""

    components: list[HsmComponent]


def sniff(head: str) -> bool:
    """Tell whether the first characters look like HSM's components."""
    return bool(_COMPONENTS.search(head)) and '"State"' in head and '"ID"' in head


@dump_format("hsm-components", "inventory", sniff)
def read(text: str, source: str) -> Dump:
    """Read HSM's list of components.

    `nodes` with nid (-1 for none), cname (the xname), role and state; `routers` with the
    switches' xnames.
    """
    try:
        listed = msgspec.convert(load_json(text, source), HsmComponents, strict=False).components
    except msgspec.ValidationError as error:
        raise ParseError(source, 0, f"not a list from HSM: {schema_sentence(error)}") from None
    nodes = [part for part in listed if part.type.lower() == "node"]
    names = [plain_xname(part.id) for part in listed if part.type.lower() in _SWITCH_TYPES]
    switches = [match[1] for name in names if (match := SWITCH_XNAME.fullmatch(name))]
    findings = list(_find_faults(nodes))
    if not nodes:
        findings.append(Finding(0, "no-nodes", "lists no components of type Node"))
    return Dump(
        count_lines(split_lines(text, source)),
        nodes=_node_columns(nodes) if nodes else None,
        routers=np.array(list(dict.fromkeys(switches))) if switches else None,
        fabric="slingshot",
        findings=findings,
    )


def _node_columns(nodes: list[HsmComponent]) -> NodeRecords:
    """Return the nodes as columns, without line numbers."""
    roles = ["compute" if node.role.lower() == "compute" else "service" for node in nodes]
    return NodeRecords(
        line=np.zeros(len(nodes), dtype=np.int32),
        nid=np.array([max(-1, node.nid) for node in nodes], dtype=np.int64),
        cname=np.array([plain_xname(node.id) for node in nodes]),
        role=np.array(roles),
        state=np.array([node.word() for node in nodes]),
    )


def _find_faults(nodes: list[HsmComponent]) -> Iterator[Finding]:
    """Yield faults for invalid xnames and duplicates."""
    seen: set[str] = set()
    for node in nodes:
        name = plain_xname(node.id)
        if not NODE_XNAME.fullmatch(name):
            yield Finding(0, "cname", f"{node.id} is not the xname of a node")
        keys = {f"xname {name}", *([f"NID {node.nid}"] if node.nid >= 0 else [])}
        for key in sorted(keys & seen):
            yield Finding(0, "duplicate", f"{key} is listed twice")
        seen |= keys
