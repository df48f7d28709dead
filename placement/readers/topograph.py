"""NVIDIA topograph's JSON (its ``graph`` engine), and the YAML of its models.

An instance has its switches, closest first, as many as a provider knows; a model has switches
with those below them, and blocks of nodes on them. They are read as the labels that
topograph's engine for Kubernetes makes of them (``fabric.topograph.run/tier-N``), so that all
give the same machine. Forms of topograph 1.0 (docs/engines/graph.md, docs/modeling.md there).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from placement.errors import ParseError, printable
from placement.readers.json_text import count_json_lines, load_json
from placement.readers.kubernetes import NAME, labels_of
from placement.readers.node_states import StatedNode, states_dump
from placement.readers.plain import count_lines, sniffing, split_lines
from placement.readers.slurm_switches import MAX_LEVELS, expand
from placement.readers.yaml_tree import Mapping, Node, Scalar, Sequence, parse_yaml
from placement.records import Dump, LineCounts

__all__ = ["read", "sniff"]

sniff = sniffing(r'\A\s*\{\s*"instances"\s*:|^(?:switches|blocks):[ \t]*$', re.M)

_TIER, _DOMAIN = "fabric.topograph.run/tier-", "accelerator.topograph.run/domain"
#: How a model says which domain of accelerators the nodes of a block are in.
_MODEL_DOMAIN = "accelerator.topology.test/domain"


def read(text: str, source: str) -> Dump:
    """Read a document of topograph's, or a model.

    Parameters
    ----------
    text : str
    source : str
        File name, for errors.

    Returns
    -------
    Dump
        One row an instance, called by its identifier; all up. ``parameters["labels"]`` as of
        `placement.readers.kubernetes`.

    Raises
    ------
    ParseError
        Where it is not JSON, an instance is not of this form or stands twice.

    Examples
    --------
    >>> dump = read('{"instances": [{"id": "I21", "network_layers": ["leaf-a", "spine-a"]}]}', "-")
    >>> dump.parameters["labels"]
    {'fabric.topograph.run/tier-0': ['leaf-a'], 'fabric.topograph.run/tier-1': ['spine-a']}
    """
    if text.lstrip()[:1] != "{":
        return _dump(dict(_modelled(text, source)), source, count_lines(split_lines(text, source)))
    instances = load_json(text, source).get("instances")
    if not isinstance(instances, list):
        raise ParseError(source, 0, "instances is not a list", "is it edited?")
    labels: dict[str, dict[str, str]] = {}
    for k, one in enumerate(instances, 1):
        name = one.get("id") if isinstance(one, dict) else None
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ParseError(source, 0, f"instance {k} has no id that could be a node's name")
        if name in labels:
            raise ParseError(source, 0, f"instance {k}: {name} stands twice")
        labels[name] = _labels(one, f"instance {k} ({name})", source)
    return _dump(labels, source, count_json_lines(text))


def _dump(labels: dict[str, dict[str, str]], source: str, counts: LineCounts) -> Dump:
    stated = [StatedNode(name, "up") for name in labels]
    dump = states_dump("topograph", source, counts, stated)
    return replace(dump, parameters={"labels": labels_of([*labels.values()])})


def _modelled(text: str, source: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the nodes of a model's blocks with their labels."""
    root = _within(parse_yaml(text, source), Mapping, "a model", source).items
    above: dict[str, str] = {}
    for name, switch in _within(root.get("switches"), Mapping, "switches", source).items.items():
        keys = _within(switch, Mapping, f"switch {printable(name)}", source).items
        for child in _within(keys.get("switches"), Sequence, "switches", source).items:
            above[_text(child, "a switch", source)] = name
    seen: set[str] = set()
    for block in _within(root.get("blocks"), Sequence, "blocks", source).items:
        keys = _within(block, Mapping, "a block", source).items
        labels = _tiers(_text(keys.get("switch"), "switch", source), above, block.line, source)
        said = _within(keys.get("annotations"), Mapping, "annotations", source).items
        if domain := _text(said.get(_MODEL_DOMAIN), _MODEL_DOMAIN, source):
            labels[_DOMAIN] = domain
        for one in _within(keys.get("nodes"), Sequence, "nodes", source).items:
            for name in expand(_text(one, "a node", source), source, one.line, "nodes"):
                if name in seen:
                    raise ParseError(source, one.line, f"node {printable(name)} stands twice")
                seen.add(name)
                yield name, labels


def _tiers(leaf: str, above: dict[str, str], line: int, source: str) -> dict[str, str]:
    """Return the labels of the switches over a block, closest first."""
    found: dict[str, str] = {}
    while leaf:
        if len(found) > MAX_LEVELS:
            raise ParseError(source, line, f"switch {printable(leaf)} is below itself")
        found[f"{_TIER}{len(found)}"] = leaf
        leaf = above.get(leaf, "")
    return found


def _within(node: Node | None, kind: type[Any], what: str, source: str) -> Any:
    """Return a dictionary or a list, an empty one where there is none."""
    if node is None or (isinstance(node, Scalar) and node.text in ("", "{}", "null", "~")):
        return kind(0)
    if not isinstance(node, kind):
        word = "dictionary" if kind is Mapping else "list"
        raise ParseError(source, node.line, f"{what} is not a {word}")
    return node


def _text(node: Node | None, what: str, source: str) -> str:
    if node is None:
        return ""
    if not isinstance(node, Scalar):
        raise ParseError(source, node.line, f"{what} is not one value")
    return node.text


def _labels(one: dict[str, Any], called: str, source: str) -> dict[str, str]:
    """Return an instance's labels, its switches among them."""
    layers, labels = one.get("network_layers") or [], one.get("labels") or {}
    if not isinstance(layers, list) or not all(isinstance(name, str) for name in layers):
        raise ParseError(source, 0, f"{called}: network_layers is not a list of names")
    for key, value in labels.items() if isinstance(labels, dict) else [("labels", labels)]:
        if not isinstance(value, str):
            raise ParseError(source, 0, f"{called}: {printable(str(key))} is not text")
    tiers = {f"{_TIER}{tier}": name for tier, name in enumerate(layers)}
    return {**labels, **tiers}
