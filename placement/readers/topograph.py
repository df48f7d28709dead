"""NVIDIA topograph's JSON: instances with their switches and labels (its ``graph`` engine).

The switches stand closest first, as many as a provider knows. They are read as the labels that
topograph's engine for Kubernetes makes of them (``fabric.topograph.run/tier-N``), so that both
give the same machine. Form of topograph 1.0 (docs/engines/graph.md there).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from placement.errors import ParseError, printable
from placement.readers.json_text import count_json_lines, load_json
from placement.readers.kubernetes import NAME, labels_of
from placement.readers.node_states import StatedNode, states_dump
from placement.readers.plain import sniffing
from placement.records import Dump

__all__ = ["read", "sniff"]

sniff = sniffing(r'\A\s*\{\s*"instances"\s*:')


def read(text: str, source: str) -> Dump:
    """Read a document of topograph.

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
    stated = [StatedNode(name, "up") for name in labels]
    dump = states_dump("topograph", source, count_json_lines(text), stated)
    return replace(dump, parameters={"labels": labels_of([*labels.values()])})


def _labels(one: dict[str, Any], called: str, source: str) -> dict[str, str]:
    """Return an instance's labels, its switches among them."""
    layers, labels = one.get("network_layers") or [], one.get("labels") or {}
    if not isinstance(layers, list) or not all(isinstance(name, str) for name in layers):
        raise ParseError(source, 0, f"{called}: network_layers is not a list of names")
    for key, value in labels.items() if isinstance(labels, dict) else [("labels", labels)]:
        if not isinstance(value, str):
            raise ParseError(source, 0, f"{called}: {printable(str(key))} is not text")
    tiers = {f"fabric.topograph.run/tier-{tier}": name for tier, name in enumerate(layers)}
    return {**labels, **tiers}
