# SPDX-License-Identifier: Apache-2.0
"""``pbsnodes -a`` (PBS, Torque; also ``-F json``, ``-x``), ``-S``, ``-Sj``: states of nodes.

A node is whole or not: one that is ``free`` with jobs on it has free cores,
and is ``mixed`` here as Slurm calls it. Resources that are words (a site's
``tier0``, ``switch``) are features ``NAME=VALUE``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import count_lines, dump_format, split_lines, strange_line
from nidmap.placement.readers.node_states import StatedNode, badness_of, states_dump
from nidmap.placement.readers.yaml_json import load_json
from nidmap.placement.records import Dump

#: PBS's and Torque's words for a state and ours; any other one is kept, and is not free.
STATES = {
    "free": "idle", "job-busy": "allocated", "job-exclusive": "allocated", "job-sharing": "mixed",
    "busy": "allocated", "time-shared": "mixed", "resv-exclusive": "reserved",
    "reserve": "reserved", "offline": "drained", "maintenance": "maint", "provisioning": "reboot",
    "wait-provisioning": "reboot", "initializing": "reboot", "sleep": "inactive", "stale": "down",
    "state-unknown": "unknown", "unresolvable": "unknown",
}  # fmt: skip

#: A value that may distinguish vnodes: neither a size nor a boolean.
_WORD = re.compile(r"(?!(?:true|false|\d+[kmgtp]?[bw])$)\w[\w.:-]*", re.A | re.I)
_RESOURCE = "resources_available."
#: PBS's own resources, which do not tell where a node is.
_OWN = (
    *("arch", "host", "vnode", "ncpus", "ngpus", "nmics", "naccelerators"),
    *("mem", "vmem", "hbmem", "accelerator_memory", "accelerator_model"),
)

#: Names in the summary (``-Sj``) for a node's cores and GPUs, free and in total.
_TOTALS = {"cores": "ncpus f/t", "gpus": "ngpus f/t"}
_SHARE = re.compile(r"(?:\d+/)?(\d{1,9})", re.ASCII)
#: The columns of the summary as text: ``-Sj`` and ``-S``, whose last may hold blanks.
_SUMMARY = re.compile(
    r"^vnode\s+state\s+(?:(njobs)\s+run\s+susp\s.*\bjobs|OS\s+hardware\s+host\s.*\bcomment)\s*$",
    re.M,
)
_JOBS_KEYS = ("state", "njobs", "run", "susp", "mem f/t", "ncpus f/t", "nmics f/t", "ngpus f/t")
_PLAIN_KEYS = ("state", "OS", "hardware", "host", "queue", "mem", "cores", "nmics", "gpus")

_NAME = re.compile(r"[A-Za-z0-9_][\w.\-]*(?:\[\d+\])?")
_FIELD = re.compile(r"\s+([A-Za-z][\w.\-]*) = ?(.*)")
_TEXT = re.compile(r"^[A-Za-z0-9_]\S*[ \t]*\n[ \t]+(?:Mom|Port|ntype|state|power_state) = ", re.M)
_JSON = re.compile(r'"(?:pbs_version|pbs_server)"\s*:')
_XML = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?<Data>\s*(?:<Node>|</Data>)")


def sniff(head: str) -> bool:
    r"""Tell whether the first lines look like pbsnodes."""
    if head.lstrip()[:1] == "{":
        return bool(_JSON.search(head)) and '"Jobs"' not in head
    return bool(_TEXT.search(head) or _SUMMARY.search(head) or _XML.match(head))


@dump_format("pbsnodes", "states", sniff, scheduler="pbs")
def read(text: str, source: str) -> Dump:
    r"""Read the output of pbsnodes.

    One row per node, the virtual nodes of a host (``n1[0]``) as one.
    """
    if text.lstrip()[:1] == "{":
        return states_dump(source, count_lines(split_lines(text, source)), _from_json(text, source))
    lines = split_lines(text, source)
    if _XML.match(text):
        return states_dump(source, count_lines(lines), _from_xml(text, source))
    if summary := _SUMMARY.search(text):
        keys = _JOBS_KEYS if summary[1] else _PLAIN_KEYS
        return states_dump(source, count_lines(lines), _from_summary(lines, keys, source))
    return states_dump(source, count_lines(lines), _from_lines(lines, source))


def _from_json(text: str, source: str) -> Iterator[StatedNode]:
    root = load_json(text, source)
    nodes = root.get("nodes") if isinstance(root, dict) else None
    if not isinstance(nodes, dict):
        raise ParseError(source, 0, "JSON from PBS, but without nodes", "use pbsnodes -a -F json")
    for name, entry in nodes.items():
        if not isinstance(entry, dict):
            raise ParseError(source, 0, f"node {name} is not an object")
        assigned, has = entry.get("resources_assigned"), entry.get("resources_available")
        cores = assigned.get("ncpus") if isinstance(assigned, dict) else 0
        more = has.items() if isinstance(has, dict) else ()
        fields = {**entry, "resources_assigned.ncpus": cores}
        yield _make_node(name, fields | {_RESOURCE + key: value for key, value in more}, source, 0)


def _from_xml(text: str, source: str) -> Iterator[StatedNode]:
    """Yield the nodes of Torque's ``pbsnodes -x``, whose elements are named like its attributes."""
    if "<!" in text:  # no entity is expanded
        raise ParseError(source, 0, "the XML has a declaration", "pbsnodes prints none")
    try:
        nodes = ElementTree.fromstring(text).findall("Node")  # noqa: S314  # it has no entities
    except ElementTree.ParseError as error:
        line = error.position[0]
        raise ParseError(source, line, f"not XML: {error.msg}", "is it complete?") from None
    for node in nodes:
        fields = {field.tag: (field.text or "").strip() for field in node}
        yield _make_node(fields.get("name", ""), fields, source, 0)


def _from_summary(lines: list[str], keys: Sequence[str], source: str) -> Iterator[StatedNode]:
    begun = False
    for number, line in enumerate(lines, 1):
        if not begun or not line.strip():
            begun = begun or line.startswith("---")
            continue
        name, *cells = line.split(None, len(keys) + 1)
        if len(cells) < len(keys) or not _NAME.fullmatch(name):
            raise strange_line("pbsnodes", source, number, line, "a row of pbsnodes -S")
        fields = dict(zip(keys, cells, strict=False))
        fields["jobs"] = fields.get("njobs", "").strip("0")
        yield _make_node(name, fields, source, number)


def _from_lines(lines: list[str], source: str) -> Iterator[StatedNode]:
    name, start = "", 0
    fields: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        field = _FIELD.fullmatch(line)
        if field and name:
            fields[field[1]] = field[2]
        elif _NAME.fullmatch(line.rstrip()):
            if name:
                yield _make_node(name, fields, source, start)
            name, start, fields = line.rstrip(), number, {}
        elif line.strip() and not (name and line.startswith("\t")):  # continuation of a long value
            what = "a node or an attribute of one"
            raise strange_line("pbsnodes", source, number, line, what, "use pbsnodes -a")
    if name:
        yield _make_node(name, fields, source, start)


def _make_node(name: str, fields: Mapping[str, Any], source: str, line: int) -> StatedNode:
    words = fields.get("state", fields.get("State"))  # of the summary -S: in capitals
    if not isinstance(words, str) or not _NAME.fullmatch(name):
        raise ParseError(source, line, f"node {name} has no state", "is it complete?")
    state = max(
        (STATES.get(w, w) for w in re.split(r"[,\s]+", words.strip().lower())), key=badness_of
    )
    cores = str(fields.get("resources_assigned.ncpus") or 0).strip()
    if state == "idle" and (fields.get("jobs") or cores != "0"):
        state = "mixed"
    figures = _list_features(fields) | _total_figures(fields)
    return StatedNode(name.partition("[")[0], state, line=line, figures=figures)


def _total_figures(fields: Mapping[str, Any]) -> dict[str, int | str]:
    """Return the summary's cores and GPUs; ``10/20`` means 10 free of 20."""
    pairs = (
        (name, _SHARE.fullmatch(str(fields.get(key, fields.get(name, "")))))
        for name, key in _TOTALS.items()
    )
    return {name: int(match[1]) for name, match in pairs if match}


def _list_features(fields: Mapping[str, Any]) -> dict[str, int | str]:
    """Return non-numeric resources as features."""
    pairs = [(key.removeprefix(_RESOURCE), value) for key, value in fields.items()
             if key.startswith(_RESOURCE) and isinstance(value, str)]  # fmt: skip
    words = [f"{k}={v}" for k, v in pairs if k not in _OWN and _WORD.fullmatch(v)]
    return {"features": ",".join(words)} if words else {}
