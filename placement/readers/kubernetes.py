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
from placement.readers.node_states import StatedNode, states_dump, worst
from placement.readers.plain import count_lines, sniffing, split_lines
from placement.readers.trees import (
    Tree,
    count_json_lines,
    is_null,
    line_of,
    load_json,
    parse_documents,
)
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
    value : dict
    source : str
        File name, for errors.
    """

    number: int
    value: dict[str, Any]
    source: str

    def part(self, *keys: str, kind: type = dict) -> Any:
        """Return what stands below some keys, an empty one of its kind where nothing does."""
        found: Any = self.value
        for key in keys:
            found = found.get(key)
            if is_null(found):
                return kind()
            wanted = kind if key == keys[-1] else dict
            if not isinstance(found, wanted):
                word = {"dict": "an object", "list": "a list"}.get(wanted.__name__, "text")
                raise self.error(f"{'.'.join(keys)} is not {word}")
        return found

    def error(self, text: str) -> ParseError:
        """Return the error that blames this object."""
        hint = "print it by kubectl get nodes -o json"
        return ParseError(self.source, line_of(self.value), f"item {self.number}: {text}", hint)


class _Node(NamedTuple):
    """A node with what is not a state of it."""

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
    objects = _objects(text, source)
    kinds = [one.part("kind", kind=str) for one in objects]
    nodes = [_node(one) for one, kind in zip(objects, kinds, strict=True) if kind == "Node"]
    chosen = [one for one, kind in zip(objects, kinds, strict=True) if kind == "Topology"]
    if not nodes and not chosen:
        raise ParseError(source, 0, "no Node and no Topology in it", "kubectl get nodes -o json")
    if len(chosen) > 1:
        raise chosen[1].error("a second Topology")
    json = text.lstrip()[:1] == "{"
    counts = count_json_lines(text) if json else count_lines(split_lines(text))
    parameters = {"levels": _levels(chosen[0])} if chosen else {}
    if not nodes:
        return Dump("kubernetes", source, counts, parameters=parameters)
    dump = states_dump("kubernetes", source, counts, _once(nodes, source))
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


def _objects(text: str, source: str) -> list[_Object]:
    """Return the objects of all lists."""
    json = text.lstrip()[:1] == "{"
    documents = [load_json(text, source)] if json else parse_documents(text, source)
    found: list[Any] = []
    for document in documents:
        items = document.get("items") if isinstance(document, dict) else None
        if not is_null(items):
            found += Tree(source).items(items, "items", "is it edited?")
        elif document:  # one object; nothing stands in an empty document
            found.append(document)
    for k, one in enumerate(found, 1):
        if not isinstance(one, dict):
            raise ParseError(source, line_of(one), f"item {k} is not an object")
    return [_Object(k, one, source) for k, one in enumerate(found, 1)]


def _node(one: _Object) -> _Node:
    name = one.part("metadata", "name", kind=str)
    if not NAME.fullmatch(name):
        raise one.error(f"{printable(name)!r} is not the name of a node")
    labels = one.part("metadata", "labels")
    allocatable = one.part("status", "allocatable")
    for key, value in labels.items():
        if not isinstance(value, str | None):
            raise one.error(f"label {printable(key)} of {name} is not text")
    state, taints = _state(one, set(allocatable))
    counts = [_count(one, key, value) for key, value in allocatable.items()]
    gpus = {"gpus": sum(counts)} if any(map(_GPU.fullmatch, allocatable)) else {}
    values = {key: "" if is_null(value) else value for key, value in labels.items()}
    control = any(key in labels for key in _CONTROL)
    return _Node(
        StatedNode(name, state, line=line_of(one.value), figures=gpus), control, values, taints
    )


def _count(one: _Object, key: str, value: Any) -> int:
    """Return how many GPUs an allocatable resource stands for."""
    if not _GPU.fullmatch(key):
        return 0
    if not re.fullmatch("[0-9]{1,4}", str(value), re.A):
        raise one.error(f"{printable(key)}: {printable(str(value))!r} is not a count")
    return int(value)


def _state(one: _Object, resources: set[str]) -> tuple[str, list[str]]:
    """Return the state of a node, and the taints that ask for a toleration of their own."""
    states, foreign = ["idle"], []
    if str(one.part("spec").get("unschedulable")).lower() == "true":
        states.append("drained")
    conditions = one.part("status", "conditions", kind=list)
    taints = one.part("spec", "taints", kind=list)
    if not all(isinstance(entry, dict) for entry in (*conditions, *taints)):
        raise one.error("a condition or a taint is not an object")
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


def _levels(one: _Object) -> tuple[str, ...]:
    """Return the labels that a Topology of Kueue makes levels."""
    entries = one.part("spec", "levels", kind=list)
    found = [entry.get("nodeLabel") if isinstance(entry, dict) else None for entry in entries]
    if not found or not all(isinstance(label, str) and label for label in found):
        raise one.error("spec.levels is not a list of {nodeLabel: LABEL}")
    if len(set(found)) < len(found):
        raise one.error("a level of the Topology stands twice")
    return tuple(map(str, found))


def _remarks(nodes: list[_Node]) -> Iterator[Fault]:
    """Say which taints keep nodes from being free."""
    for taint, count in Counter(taint for node in nodes for taint in node.taints).items():
        text = f"{count} of {len(nodes)} nodes have the taint {printable(taint)}: not free"
        yield Fault(0, "taint", text, "pods need a toleration for it", fatal=False)
