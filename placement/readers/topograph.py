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

from placement.errors import printable
from placement.readers.kubernetes import NAME, labels_of
from placement.readers.node_states import StatedNode, states_dump
from placement.readers.plain import count_lines, sniffing, split_lines
from placement.readers.slurm_switches import MAX_LEVELS, expand
from placement.readers.trees import Tree, count_json_lines, line_of, load_json, parse_yaml
from placement.records import Dump

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
    tree = Tree(source, nulls=True)
    if text.lstrip()[:1] == "{":
        labels = dict(_instances(load_json(text, source), tree))
        counts = count_json_lines(text)
    else:
        labels = dict(_read_model(parse_yaml(text, source), tree))
        counts = count_lines(split_lines(text, source))
    dump = states_dump("topograph", source, counts, [StatedNode(name, "up") for name in labels])
    return replace(dump, parameters={"labels": labels_of([*labels.values()])})


def _instances(root: Any, tree: Tree) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the instances of a document with their labels, their switches among them."""
    seen: set[str] = set()
    instances = tree.items(root.get("instances"), "instances", "is it edited?")
    for k, one in enumerate(instances, 1):
        name = one.get("id") if isinstance(one, dict) else None
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise tree.error(one, f"instance {k} has no id that could be a node's name")
        if name in seen:
            raise tree.error(one, f"instance {k}: {name} stands twice")
        seen.add(name)
        called = f"instance {k} ({name})"
        layers = tree.items(one.get("network_layers"), f"{called}: network_layers")
        if not all(isinstance(layer, str) for layer in layers):
            raise tree.error(one, f"{called}: network_layers is not a list of names")
        labels = tree.dictionary(one.get("labels"), f"{called}: labels")
        for key, value in labels.items():
            if not isinstance(value, str):
                raise tree.error(value, f"{called}: {printable(key)} is not text")
        yield name, {**labels, **{f"{_TIER}{tier}": layer for tier, layer in enumerate(layers)}}


def _read_model(root: Any, tree: Tree) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the nodes of a model's blocks with their labels."""
    keys = tree.dictionary(root, "a model")
    above: dict[str, str] = {}
    for name, switch in tree.dictionary(keys.get("switches"), "switches").items():
        below = tree.dictionary(switch, f"switch {printable(name)}").get("switches")
        for child in tree.items(below, "switches"):
            above[tree.text(child, "a switch")] = name
    seen: set[str] = set()
    for entry in tree.items(keys.get("blocks"), "blocks"):
        block = tree.dictionary(entry, "a block")
        labels = _tiers(tree.text(block.get("switch"), "switch"), above, entry, tree)
        said = tree.dictionary(block.get("annotations"), "annotations")
        if domain := tree.text(said.get(_MODEL_DOMAIN), _MODEL_DOMAIN):
            labels[_DOMAIN] = domain
        for one in tree.items(block.get("nodes"), "nodes"):
            for name in expand(tree.text(one, "a node"), tree.source, line_of(one), "nodes"):
                if name in seen:
                    raise tree.error(one, f"node {printable(name)} stands twice")
                seen.add(name)
                yield name, labels


def _tiers(leaf: str, above: dict[str, str], block: Any, tree: Tree) -> dict[str, str]:
    """Return the labels of the switches over a block, closest first."""
    found: dict[str, str] = {}
    while leaf:
        if len(found) > MAX_LEVELS:
            raise tree.error(block, f"switch {printable(leaf)} is below itself")
        found[f"{_TIER}{len(found)}"] = leaf
        leaf = above.get(leaf, "")
    return found
