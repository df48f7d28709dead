"""SLS (HPE CSM): xnames, NIDs, roles and switches, as JSON.

``cray sls dumpstate list`` prints ``{"Hardware": {xname: {...}}, "Networks":
{...}}``, ``cray sls hardware list`` the hardware alone as a list; both are
read. A node has an xname, a NID, a role and aliases, of which the first is
its host name. Which dragonfly group an xname belongs to follows no universal
rule, so no group is given here: that is the site's to say.

Checked on an SLS input file of a Mountain cabinet with River nodes beside it
(34 nodes) and on one that describes networks only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from placement.errors import ParseError
from placement.readers import dump_format
from placement.readers.trees import count_json_lines, load_json
from placement.records import Dump, Finding, NodeRecords
from placement.support.regex import with_lines

__all__ = ["normalise_xname", "read", "sniff"]

#: NIDs are 31 bits wide.
MAX_NID = 2**31 - 1

_NODE_XNAME = re.compile(r"x[0-9]{1,4}c[0-7]s[0-9]{1,3}b[0-9]{1,3}n[0-9]{1,3}")
_SWITCH_XNAME = re.compile(r"(x[0-9]{1,4}c[0-7]r[0-9]{1,3})(?:b[0-9]+|e[0-9]+)?")
_NODE_TYPES = {"comptype_node", "node"}
_SWITCH_TYPES = {"comptype_rtr_bmc", "routerbmc", "comptype_rtmod", "comptype_rtrmod"}
_SWITCH_TYPES |= {"routermodule", "comptype_hsn_board", "hsnboard"}
_SLINGSHOT_CLASSES = ("mountain", "hill")


def sniff(head: str) -> bool:
    """Say whether the first characters look like a file of SLS.

    Examples
    --------
    >>> sniff('{"Hardware": {"x1000": {"Xname": "x1000"}}}')
    True
    """
    start = head.lstrip()[:1]
    if start == "{":
        return bool(re.search(r'"(?:Hardware|Networks)"\s*:', head))
    return start == "[" and '"Xname"' in head and '"Type' in head


def normalise_xname(text: str) -> str:
    """Return an xname in lower case without leading zeros.

    Examples
    --------
    >>> normalise_xname("X1000C0S07B0N1")
    'x1000c0s7b0n1'
    """
    return re.sub(r"(?<![0-9])0+(?=[0-9])", "", text.lower())


@dump_format("sls", "inventory", sniff)
def read(text: str, source: str) -> Dump:
    """Read a file of SLS.

    Parameters
    ----------
    text : str
    source : str
        File name, for errors.

    Returns
    -------
    Dump
        `nodes` with nid (-1 for none), name (the first alias, else the
        xname), cname (the xname) and role (``Compute`` is ``compute``, every
        other one ``service``); `routers` with the switches' xnames
        (``x1000c0r1``); `fabric` ``slingshot`` where a Mountain or Hill
        cabinet or a Slingshot network says so. Every line that is not blank
        counts as a row.

    Raises
    ------
    ParseError
        Where it is not JSON (with the line) or not of SLS's form. Nodes that
        contradict one another are faults.

    Examples
    --------
    >>> import json
    >>> extra = {"NID": 1, "Role": "Compute", "Aliases": ["nid000001"]}
    >>> node = {"Type": "comptype_node", "Class": "Mountain", "ExtraProperties": extra}
    >>> dump = read(json.dumps({"Hardware": {"x1000c0s0b0n0": node}}), "sls.json")
    >>> dump.fabric, dump.nodes.nid.tolist(), dump.nodes.name.tolist(), dump.nodes.role.tolist()
    ('slingshot', [1], ['nid000001'], ['compute'])
    """
    reader = _SlsReader(text, source)
    hardware, networks = _parts(reader.root, source)
    for key, entry in hardware:
        reader.take(key, entry)
    kinds = (_word(n.get("Type")) for n in networks.values() if isinstance(n, dict))
    slingshot = reader.mountain or any(kind.startswith("slingshot") for kind in kinds)
    return Dump(
        count_json_lines(text),
        nodes=reader.records(),
        routers=np.array(list(reader.switches)) if reader.switches else None,
        fabric="slingshot" if slingshot else "",
        findings=tuple(reader.judged()),
    )


class _SlsNode(NamedTuple):
    key: str
    xname: str
    name: str
    role: str
    nid: int


class _SlsReader:
    """Collects the nodes and switches of one file, and what is wrong with them."""

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.text = text
        self.doubles: list[str] = []
        self.places: dict[str, tuple[int, int]] = {}
        self.root = load_json(text, source, self._object)
        self.findings: list[Finding] = []
        self.mountain = False
        self.switches: dict[str, None] = {}
        self.nodes: list[_SlsNode] = []

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return an object of the JSON, noting names that stand twice in it."""
        entry = dict(pairs)
        if len(entry) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                self.doubles += [key] if key in seen else []
                seen.add(key)
        return entry

    def take(self, key: str, entry: Any) -> None:
        """Take one piece of hardware."""
        if not isinstance(entry, dict):
            raise ParseError(self.source, self.line(key), f"{key} is not an object")
        kinds = {_word(entry.get("Type")), _word(entry.get("TypeString"))}
        self.mountain |= _word(entry.get("Class")) in _SLINGSHOT_CLASSES
        if kinds & _NODE_TYPES:
            self.node(key, entry)
        elif kinds & _SWITCH_TYPES:
            match = _SWITCH_XNAME.fullmatch(normalise_xname(key))
            if match:
                self.switches[match[1]] = None
            else:
                self.note(key, "cname", "{} is not the xname of a switch")

    def node(self, key: str, entry: dict[str, Any]) -> None:
        """Take one node."""
        xname = normalise_xname(key)
        if not _NODE_XNAME.fullmatch(xname):
            self.note(key, "cname", "{} is not the xname of a node")
        stated = entry.get("Xname", key)
        if not isinstance(stated, str) or normalise_xname(stated) != xname:
            hint = "key and Xname must be the same"
            self.note(key, "cname", f"{{}} calls itself {stated}", hint)
        extra = entry.get("ExtraProperties") or {}
        if not isinstance(extra, dict):
            text = f"{key}: ExtraProperties is not an object"
            raise ParseError(self.source, self.line(key), text)
        name = self.name(key, extra.get("Aliases") or [""]) or xname
        role = _word(extra.get("Role"))
        if not role:
            self.note(key, "no-role", "{} has no role", "taken as a service node", fault=False)
        nid = self.nid(key, extra.get("NID"), role)
        role = "compute" if role == "compute" else "service"
        self.nodes.append(_SlsNode(key, xname, name, role, nid))

    def name(self, key: str, aliases: Any) -> str:
        """Return a node's first alias, '' where it has none."""
        first = aliases[0] if isinstance(aliases, list) else aliases
        odd = not isinstance(first, str) or not first.isprintable() or len(first) > 255
        if odd or set(first) & set(" ,[]\"'"):
            self.note(key, "name", f"{{}}: alias {str(first)!r} is not a host name")
            return ""
        return str(first)

    def nid(self, key: str, nid: Any, role: str) -> int:
        """Return a node's NID, -1 where it has none."""
        if nid is None:
            if role == "compute":
                hint = "SLS gives it one when it is discovered"
                self.note(key, "no-nid", "compute node {} has no NID", hint, fault=False)
            return -1
        if isinstance(nid, str) and nid.isascii() and nid.isdigit() and len(nid) < 12:
            nid = int(nid)
        if isinstance(nid, bool) or not isinstance(nid, int) or not 0 <= nid <= MAX_NID:
            hint = f"NIDs run from 0 to {MAX_NID}"
            self.note(key, "nid", f"{{}}: {nid} is not a NID", hint)
            return -1
        return nid

    def note(self, key: str, kind: str, text: str, hint: str = "", *, fault: bool = True) -> None:
        """Note what is wrong at the line of its key, which stands at ``{}`` in the text."""
        text = text.replace("{}", key, 1)
        self.findings.append(Finding(self.line(key), kind, text, hint, fault))

    def line(self, key: str, last: bool = False) -> int:
        """Return the line of the first (or last) place where an object has this name."""
        self.places = self.places or _places(self.text)
        return self.places.get(key, (0, 0))[last]

    def records(self) -> NodeRecords | None:
        """Return the nodes as columns, None where there are none."""
        if not self.nodes:
            return None
        keys, xnames, names, roles, nids = zip(*self.nodes, strict=True)
        return NodeRecords(
            line=np.array([self.line(key) for key in keys], dtype=np.int32),
            nid=np.array(nids, dtype=np.int64),
            name=np.array(names),
            cname=np.array(xnames),
            role=np.array(roles),
        )

    def judged(self) -> Iterator[Finding]:
        """Return all faults: those noted, and what two nodes share."""
        yield from self.findings
        yield from self.twice("duplicate-cname", "xname", ((n.key, n.xname) for n in self.nodes))
        yield from self.twice("duplicate-name", "name", ((n.key, n.name) for n in self.nodes))
        known = {n.key: n.nid for n in self.nodes if n.nid >= 0}
        yield from self.twice("duplicate-nid", "NID", known.items())
        for key in self.doubles:
            text = f"{key} is listed twice"
            yield Finding(self.line(key, last=True), "duplicate-cname", text, "keep one of them")
        if not self.nodes:
            hint = "a file with a Hardware part is needed"
            yield Finding(0, "no-nodes", "lists no nodes: SLS describes networks only", hint)

    def twice(
        self, kind: str, what: str, values: Iterable[tuple[str, object]]
    ) -> Iterator[Finding]:
        """Yield a fault for each value that an earlier node has already."""
        first: dict[object, str] = {}
        for key, value in values:
            other = first.setdefault(value, key)
            if other is not key:
                text = f"{key} has the {what} {value} of {other}"
                yield Finding(self.line(key), kind, text)


def _parts(root: Any, source: str) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
    """Return the hardware as pairs of name and object, and the networks by name."""
    if isinstance(root, list):
        if not all(isinstance(e, dict) and isinstance(e.get("Xname"), str) for e in root):
            raise ParseError(source, 0, "a list of hardware with an entry that has no Xname")
        return [(entry["Xname"], entry) for entry in root], {}
    if not isinstance(root, dict) or not ({"Hardware", "Networks"} & set(root)):
        raise ParseError(source, 0, "JSON, but neither Hardware nor Networks in it")
    hardware, networks = root.get("Hardware") or {}, root.get("Networks") or {}
    if not isinstance(hardware, dict) or not isinstance(networks, dict):
        raise ParseError(source, 0, "Hardware and Networks must be objects")
    return list(hardware.items()), networks


def _word(value: Any) -> str:
    return value.lower() if isinstance(value, str) else ""


def _places(text: str) -> dict[str, tuple[int, int]]:
    """Return the first and the last line on which each name of a member stands."""
    places: dict[str, tuple[int, int]] = {}
    names = re.finditer(r'"([^"\\\n]*)"\s*:', text)
    for match, line in with_lines(names, text):
        places[match[1]] = (places.get(match[1], (line, line))[0], line)
    return places
