# SPDX-License-Identifier: Apache-2.0
"""SLS (HPE CSM): xnames, NIDs, roles and switches, as JSON.

``cray sls dumpstate list`` prints ``{"Hardware": {xname: {...}}, "Networks":
{...}}``, ``cray sls hardware list`` the hardware alone as a list; both are
read. A node has an xname, a NID, a role and aliases, of which the first is
its host name. Which dragonfly group an xname belongs to follows no universal
rule, so no group is given here: that is the site's to say.

Checked on an SLS input file of a Mountain cabinet with River nodes next to it
(34 nodes) and on one that describes networks only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct, field

from nidmap.placement.errors import ParseError, schema_sentence
from nidmap.placement.names import plain_xname
from nidmap.placement.names.hostlist import NAME, with_lines
from nidmap.placement.readers import count_lines, dump_format, split_lines
from nidmap.placement.readers.yaml_json import load_json
from nidmap.placement.records import Dump, Finding, NodeRecords

Kind = TypeVar("Kind", bound=Struct)

#: NIDs are 31 bits wide.
MAX_NID = 2**31 - 1

#: Types that name a node, and a switch with or without its controller.
NODE_XNAME = re.compile(r"x[0-9]{1,4}c[0-7]s[0-9]{1,3}b[0-9]{1,3}n[0-9]{1,3}")
SWITCH_XNAME = re.compile(r"(x[0-9]{1,4}c[0-7]r[0-9]{1,3})(?:b[0-9]+|e[0-9]+)?")
_NODE_TYPES = {"comptype_node", "node"}
_SWITCH_TYPES = {"comptype_rtr_bmc", "routerbmc", "comptype_rtmod", "comptype_rtrmod"}
_SWITCH_TYPES |= {"routermodule", "comptype_hsn_board", "hsnboard"}
_SLINGSHOT_CLASSES = ("mountain", "hill")
#: The name of a member of an object.
_MEMBER = re.compile(r'"([^"\\\n]*)"\s*:')


class SlsHardware(Struct, rename="pascal"):
    """A piece of hardware, as far as its kind is given; other fields depend on the kind."""

    type: str = ""
    type_string: str = ""
    class_: str = field(default="", name="Class")
    extra_properties: Any = None


class SlsNodeProperties(Struct, rename="pascal"):
    """A node's extra properties in SLS."""

    role: str | None = None
    nid: Annotated[int, Meta(ge=0, le=MAX_NID)] | None = field(default=None, name="NID")
    aliases: list[str] | str | None = None


class SlsNode(NamedTuple):
    """A node, and the line of its name."""

    line: int
    nid: int
    name: str
    cname: str
    role: str


def sniff(head: str) -> bool:
    """Tell whether the first characters look like an SLS file."""
    start = head.lstrip()[:1]
    if start == "{":
        return bool(re.search(r'"(?:Hardware|Networks)"\s*:', head))
    return start == "[" and '"Xname"' in head and '"Type' in head


@dump_format("sls", "inventory", sniff)
def read(text: str, source: str) -> Dump:
    """Read an SLS file.

    `nodes` with nid (-1 for none), name (the first alias, else the xname), cname (the xname) and
    role (``Compute`` is ``compute``, every other one ``service``); `routers` with the switches'
    xnames (``x1000c0r1``); `fabric` ``slingshot`` where a Mountain or Hill cabinet or a Slingshot
    network says so. Every line that is not blank counts as a row.
    """
    hardware, networks = _file_parts(load_json(text, source), source)
    lines: dict[str, int] = {}
    for match, line in with_lines(_MEMBER.finditer(text), text):
        lines.setdefault(match[1], line)
    nodes: list[SlsNode] = []
    switches: dict[str, None] = {}
    findings: list[Finding] = []
    classes = {str(n.get("Type")).lower() for n in networks.values() if isinstance(n, dict)}
    for key, entry in hardware:
        line, xname = lines.get(key, 0), plain_xname(key)
        component = _as_struct(entry, SlsHardware, key, source, line)
        classes.add(component.class_.lower())
        kinds = {component.type.lower(), component.type_string.lower()}
        if kinds & _NODE_TYPES:
            extra = component.extra_properties or {}
            properties = _as_struct(extra, SlsNodeProperties, key, source, line)
            nodes.append(_make_node(properties, xname, line))
            findings += _node_remarks(properties, key, line)
            good = NODE_XNAME.fullmatch(xname) is not None
        elif kinds & _SWITCH_TYPES:
            switch = SWITCH_XNAME.fullmatch(xname)
            switches |= {switch[1]: None} if switch else {}
            good = switch is not None
        else:
            continue
        if not good:
            text_of = f"{key} is not the xname of a {'node' if kinds & _NODE_TYPES else 'switch'}"
            findings.append(Finding(line, "cname", text_of))
    if not nodes:
        hint = "a file with a Hardware part is needed"
        findings.append(Finding(0, "no-nodes", "lists no nodes: SLS describes networks only", hint))
    slingshot = any(word.startswith(("slingshot", *_SLINGSHOT_CLASSES)) for word in classes)
    return Dump(
        count_lines(split_lines(text, source)),
        nodes=_node_columns(nodes) if nodes else None,
        routers=np.array(list(switches)) if switches else None,
        fabric="slingshot" if slingshot else "",
        findings=(*findings, *_find_repeats(nodes)),
    )


def _file_parts(root: Any, source: str) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
    """Return the hardware as pairs of name and object, and the networks by name."""
    if isinstance(root, list):
        if not all(isinstance(e, dict) and isinstance(e.get("Xname"), str) for e in root):
            raise ParseError(source, 0, "an entry of Hardware has no Xname")
        return [(entry["Xname"], entry) for entry in root], {}
    if not isinstance(root, dict) or not ({"Hardware", "Networks"} & set(root)):
        raise ParseError(source, 0, "JSON, but with neither Hardware nor Networks")
    hardware, networks = root.get("Hardware") or {}, root.get("Networks") or {}
    if not isinstance(hardware, dict) or not isinstance(networks, dict):
        raise ParseError(source, 0, "Hardware and Networks must be objects")
    return list(hardware.items()), networks


def _as_struct(entry: Any, kind: type[Kind], key: str, source: str, line: int) -> Kind:
    """Convert an object of the file to its Struct."""
    try:
        return msgspec.convert(entry, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ParseError(source, line, f"{key}: {schema_sentence(error)}") from None


def _make_node(properties: SlsNodeProperties, xname: str, line: int) -> SlsNode:
    """Return a node, named after its first alias if that is a host name."""
    aliases = properties.aliases or ""
    alias = aliases if isinstance(aliases, str) else aliases[0]
    role = "compute" if (properties.role or "").lower() == "compute" else "service"
    nid = -1 if properties.nid is None else properties.nid
    return SlsNode(line, nid, alias if NAME.fullmatch(alias) else xname, xname, role)


def _node_remarks(properties: SlsNodeProperties, key: str, line: int) -> Iterator[Finding]:
    """Yield remarks on properties missing from a node."""
    if not properties.role:
        text, hint = f"{key} has no role", "taken as a service node"
        yield Finding(line, "no-role", text, hint, fault=False)
    elif properties.role.lower() == "compute" and properties.nid is None:
        text, hint = f"compute node {key} has no NID", "SLS gives it one when it is discovered"
        yield Finding(line, "no-nid", text, hint, fault=False)


def _node_columns(nodes: Iterable[SlsNode]) -> NodeRecords:
    """Return the nodes as columns."""
    line, nid, name, cname, role = map(np.array, zip(*nodes, strict=True))
    return NodeRecords(
        line.astype(np.int32), nid=nid.astype(np.int64), name=name, cname=cname, role=role
    )


def _find_repeats(nodes: Iterable[SlsNode]) -> Iterator[Finding]:
    """Yield a fault for each xname, name or NID already used by an earlier node."""
    first: dict[tuple[str, object], SlsNode] = {}
    for node in nodes:
        for kind, word in (("cname", "xname"), ("name", "name"), ("nid", "NID")):
            value = getattr(node, kind)
            other = first.setdefault((kind, value), node)
            if other is not node and value != -1:
                text = f"{node.cname} has the {word} {value} of {other.cname}"
                yield Finding(node.line, f"duplicate-{kind}", text)
