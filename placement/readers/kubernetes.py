"""Kubernetes' nodes as ``kubectl get nodes -o json`` (or yaml) prints them, and Kueue's levels.

A ``Topology`` of Kueue (kueue.x-k8s.io) says which labels are levels, the outermost first; it
may stand in the same list or in a file of its own. Which labels are levels otherwise, and
where they put the nodes, is told by `placement.geometry.labels`. Forms of the API as in
Kubernetes v1 (core/v1 Node) and Kueue v1alpha1 to v1beta2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from placement.errors import ParseError, printable
from placement.readers.json_text import count_json_lines, load_json
from placement.readers.node_states import StatedNode, states_dump
from placement.readers.plain import count_lines, sniffing, split_lines
from placement.readers.slurm_states import worst
from placement.readers.yaml_tree import Mapping, Scalar, Sequence, parse_documents
from placement.readers.yaml_tree import Node as YamlNode
from placement.records import Dump, Fault

__all__ = ["NAME", "labels_of", "read", "sniff"]

_KINDS = "(?:Node|NodeList|Topology)"
sniff = sniffing(rf'"kind"\s*:\s*"{_KINDS}"|^[ \t-]*kind:[ \t]+"?{_KINDS}"?[ \t]*$', re.M)

#: What a node may be called: a DNS name, or an identifier of a provider.
NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,251}[A-Za-z0-9_])?", re.A)

#: Kubernetes' own taints and the state they stand for.
_TAINTS = {
    "node.kubernetes.io/unschedulable": "drained",
    "node.kubernetes.io/not-ready": "down",
    "node.kubernetes.io/unreachable": "down",
    "node.kubernetes.io/out-of-service": "down",
    "node.kubernetes.io/memory-pressure": "drained",
    "node.kubernetes.io/disk-pressure": "drained",
    "node.kubernetes.io/pid-pressure": "drained",
    "node.kubernetes.io/network-unavailable": "down",
    "node.cloudprovider.kubernetes.io/uninitialized": "down",
    "node.cloudprovider.kubernetes.io/shutdown": "down",
    "ToBeDeletedByClusterAutoscaler": "draining",
}
_CONTROL = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_GPU = re.compile(r".*/gpu|habana\.ai/gaudi|google\.com/tpu|aws\.amazon\.com/neuron")


class _Object(NamedTuple):
    """One object of a list.

    Attributes
    ----------
    number : int
        From 1.
    line : int
        0 in JSON.
    value : object
    """

    number: int
    line: int
    value: Any

    def part(self, *keys: str, kind: type = dict, source: str) -> Any:
        """Return what stands below some keys, an empty one of its kind where nothing does."""
        found: Any = self.value
        for key in keys:
            found = found.get(key)
            if found is None:
                return kind()
            wanted = kind if key == keys[-1] else dict
            if not isinstance(found, wanted):
                word = {"dict": "an object", "list": "a list"}.get(wanted.__name__, "text")
                raise self.error(source, f"{'.'.join(keys)} is not {word}")
        return found

    def error(self, source: str, text: str) -> ParseError:
        """Return the error that blames this object."""
        hint = "print it by kubectl get nodes -o json"
        return ParseError(source, self.line, f"item {self.number}: {text}", hint)


class _Node(NamedTuple):
    """A node with what is no state of it."""

    stated: StatedNode
    control: bool
    labels: dict[str, str]
    taints: list[str]


def read(text: str, source: str) -> Dump:
    """Read a list of nodes, of Kueue's topologies, or one of them.

    Parameters
    ----------
    text : str
        JSON or YAML; of YAML several documents. Objects of other kinds are passed over.
    source : str
        File name, for errors.

    Returns
    -------
    Dump
        One row a node. A node that is cordoned, not ready or tainted is not idle (what pods
        hold is not in it); one of the control plane is a service node. ``parameters`` has the
        ``labels``, for each the values of all nodes ('' for none), and the ``levels`` that a
        Topology names.

    Raises
    ------
    ParseError
        Where it is neither JSON nor YAML, an object is not of its kind's form, a node stands
        twice, or there are two topologies.

    Examples
    --------
    >>> node = '{"kind": "Node", "metadata": {"name": "n1", "labels": {"rack": "r1"}}, '
    >>> node += '"spec": {"unschedulable": true}}'
    >>> dump = read('{"kind": "List", "items": [' + node + ']}', "-")
    >>> dump.nodes.state.tolist(), dump.parameters["labels"]
    (['drained'], {'rack': ['r1']})
    """
    objects = [_Object(k, *one) for k, one in enumerate(_objects(text, source), 1)]
    kinds = [one.part("kind", kind=str, source=source) for one in objects]
    nodes = [_node(one, source) for one, kind in zip(objects, kinds, strict=True) if kind == "Node"]
    chosen = [one for one, kind in zip(objects, kinds, strict=True) if kind == "Topology"]
    if not nodes and not chosen:
        raise ParseError(source, 0, "no Node and no Topology in it", "kubectl get nodes -o json")
    if len(chosen) > 1:
        raise chosen[1].error(source, "a second Topology")
    counts = count_json_lines if text.lstrip()[:1] == "{" else _yaml_lines
    parameters: dict[str, object] = {"levels": _levels(chosen[0], source)} if chosen else {}
    if not nodes:
        return Dump("kubernetes", source, counts(text), parameters=parameters)
    dump = states_dump("kubernetes", source, counts(text), _once(nodes, source))
    assert dump.nodes is not None
    role = np.where([node.control for node in nodes], "service", "compute")
    return replace(
        dump,
        nodes=replace(dump.nodes, role=role),
        parameters={**parameters, "labels": labels_of([node.labels for node in nodes])},
        faults=tuple(_remarks(nodes)),
    )


def labels_of(nodes: list[dict[str, str]]) -> dict[str, list[str]]:
    """Return for each label the values of all nodes, '' for none.

    Examples
    --------
    >>> labels_of([{"a": "1"}, {"b": "2"}])
    {'a': ['1', ''], 'b': ['', '2']}
    """
    keys = dict.fromkeys(key for labels in nodes for key in labels)
    return {key: [labels.get(key, "") for labels in nodes] for key in keys}


def _yaml_lines(text: str) -> Any:
    return count_lines(split_lines(text))


def _objects(text: str, source: str) -> Iterator[tuple[int, Any]]:
    """Yield the objects of all lists, each with its line."""
    if text.lstrip()[:1] == "{":
        root = load_json(text, source)
        items = root.get("items", [root])
        if not isinstance(items, list):
            raise ParseError(source, 0, "items is not a list", "is it edited?")
        found = [(0, one) for one in items]
    else:
        found = [
            (one.line, _plain(one))
            for document in parse_documents(text, source)
            for one in _items(document)
        ]
    for k, (line, one) in enumerate(found, 1):
        if not isinstance(one, dict):
            raise ParseError(source, line, f"item {k} is not an object")
        yield line, one


def _items(document: YamlNode) -> list[YamlNode]:
    """Return what a document lists, itself where it is no list; nothing of an empty one."""
    items = document.items.get("items") if isinstance(document, Mapping) else None
    if isinstance(items, Sequence):
        return items.items
    return [] if isinstance(document, Scalar) and not document.text else [document]


def _plain(node: YamlNode) -> Any:
    if isinstance(node, Mapping):
        return {key: _plain(value) for key, value in node.items.items()}
    if isinstance(node, Sequence):
        return [_plain(one) for one in node.items]
    return None if node.text in ("", "~", "null") else node.text


def _node(one: _Object, source: str) -> _Node:
    name = one.part("metadata", "name", kind=str, source=source)
    if not NAME.fullmatch(name):
        raise one.error(source, f"{printable(name)!r} is not the name of a node")
    labels = one.part("metadata", "labels", source=source)
    allocatable = one.part("status", "allocatable", source=source)
    wrong = [key for key, value in labels.items() if not isinstance(value, str | None)]
    if wrong:
        raise one.error(source, f"label {printable(wrong[0])} of {name} is not text")
    state, taints = _state(one, set(allocatable), source)
    counts = [_count(one, key, value, source) for key, value in allocatable.items()]
    gpus = {"gpus": sum(counts)} if any(map(_GPU.fullmatch, allocatable)) else {}
    values = {key: value or "" for key, value in labels.items()}
    control = any(key in labels for key in _CONTROL)
    return _Node(StatedNode(name, state, line=one.line, figures=gpus), control, values, taints)


def _count(one: _Object, key: str, value: Any, source: str) -> int:
    """Return how many GPUs an allocatable resource stands for."""
    if not _GPU.fullmatch(key):
        return 0
    if not re.fullmatch("[0-9]{1,4}", str(value), re.A):
        raise one.error(source, f"{printable(key)}: {printable(str(value))!r} is not a count")
    return int(value)


def _state(one: _Object, resources: set[str], source: str) -> tuple[str, list[str]]:
    """Return the state of a node, and the taints that ask for a toleration of their own."""
    states, foreign = ["idle"], []
    if str(one.part("spec", source=source).get("unschedulable")).lower() == "true":
        states.append("drained")
    conditions = one.part("status", "conditions", kind=list, source=source)
    taints = one.part("spec", "taints", kind=list, source=source)
    if not all(isinstance(entry, dict) for entry in (*conditions, *taints)):
        raise one.error(source, "a condition or a taint is not an object")
    ready = [entry.get("status") for entry in conditions if entry.get("type") == "Ready"]
    if conditions and str(ready[:1]).lower() != "['true']":
        states.append("down")
    for taint in taints:
        key, effect = str(taint.get("key")), taint.get("effect")
        if effect not in ("NoSchedule", "NoExecute") or key in _CONTROL or key in resources:
            continue  # of a taint called as a resource the API server lets pods that ask for it
        if key not in _TAINTS:
            foreign.append(f"{key}={taint.get('value') or ''}:{effect}")
        states.append(_TAINTS.get(key, "reserved"))
    return max(states, key=worst), foreign


def _once(nodes: list[_Node], source: str) -> list[StatedNode]:
    """Return the nodes' states, refusing a name that comes again."""
    first: dict[str, int] = {}
    for k, node in enumerate(nodes, 1):
        before = first.setdefault(node.stated.name, k)
        if before != k:
            text = f"node {node.stated.name} stands twice: it is the {before}th and the {k}th"
            raise ParseError(source, node.stated.line, text)
    return [node.stated for node in nodes]


def _levels(one: _Object, source: str) -> tuple[str, ...]:
    """Return the labels that a Topology of Kueue makes levels."""
    entries = one.part("spec", "levels", kind=list, source=source)
    found = [entry.get("nodeLabel") if isinstance(entry, dict) else None for entry in entries]
    if not found or not all(isinstance(label, str) and label for label in found):
        raise one.error(source, "spec.levels is not a list of {nodeLabel: LABEL}")
    if len(set(found)) < len(found):
        raise one.error(source, "a level of the Topology stands twice")
    return tuple(map(str, found))


def _remarks(nodes: list[_Node]) -> Iterator[Fault]:
    """Say which taints keep nodes from being free."""
    for taint, count in Counter(taint for node in nodes for taint in node.taints).items():
        text = f"{count} of {len(nodes)} nodes have the taint {printable(taint)}: not free"
        yield Fault(0, "taint", text, "pods need a toleration for it", fatal=False)
