"""Slurm's ``topology.yaml``: tree, block, ring, torus3d and flat topologies.

The file is a list of topologies, each with exactly one kind. The machine is
made from the one that Slurm takes for the whole cluster: the first with
``cluster_default: true``, else the first. Keys and rules are those of Slurm
25.05 to 26.05 (its manual page and the sources of its data parser and
plugins): in a torus the nodes run x fastest, then y, then z, and regions
fill it where nodes are missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placement.errors import ParseError, printable
from placement.readers.plain import count_lines, refuse_empty, split_lines
from placement.readers.slurm_switches import Declared, block_size_faults, resolve, switch_dump
from placement.readers.topology_conf import sizes_of
from placement.readers.torus_cells import Region, TorusWords, read_torus
from placement.readers.yaml_tree import Mapping, Scalar, Sequence, parse_yaml
from placement.records import Dump, Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement.readers.yaml_tree import Node
    from placement.records import NodeRecords, SwitchRecord

__all__ = ["read", "sniff"]

_HEAD = re.compile(r"^(?:-[ \t]+|[ \t]+)[\"']?topology[\"']?[ \t]*:", re.MULTILINE)
_TRUE = ("true", "yes", "on", "1", "y", "t")
_FALSE = ("false", "no", "off", "0", "n", "f", "")
_MAX_EXTENT = 65_535  # Slurm keeps each dimension in sixteen bits


@dataclass(frozen=True, slots=True)
class Found:
    """One topology of the file, read and judged."""

    name: str
    line: int
    default: bool
    kind: str
    switches: tuple[SwitchRecord, ...] = ()
    faults: tuple[Fault, ...] = ()
    parameters: dict[str, object] | None = None
    nodes: NodeRecords | None = None


def sniff(head: str) -> bool:
    r"""Say whether the first lines look like a ``topology.yaml``.

    Examples
    --------
    >>> sniff("---\n- topology: topo1\n  flat: true\n")
    True
    """
    return bool(_HEAD.search(head))


def read(text: str, source: str) -> Dump:
    """Read a ``topology.yaml``.

    Parameters
    ----------
    text : str
    source : str
        File name, for errors.

    Returns
    -------
    Dump
        Of the cluster's default topology: `fabric` is its kind, `switches`
        its switches, blocks, rings or torus. In a torus ``nodes.coords`` has
        x, y, z and `parameters` the ``extents`` and the ``placements`` that
        it allows; blocks leave ``block_sizes``. `parameters` always has the
        ``topology``'s name.

    Raises
    ------
    ParseError
        Where it is not YAML or not of this form. What slurmctld would refuse
        otherwise is a fatal fault.

    Examples
    --------
    >>> text = '''
    ... - topology: t
    ...   cluster_default: true
    ...   torus3d:
    ...     toruses:
    ...       - {name: pod, dims: {x: 2, y: 1, z: 2}, nodes: "n[1-4]"}
    ... '''
    >>> dump = read(text, "topology.yaml")
    >>> dump.fabric, dump.nodes.coords.tolist()
    ('torus3d', [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]])
    """
    counts = count_lines(split_lines(text, source))
    refuse_empty(counts, source, "topology")
    root = parse_yaml(text, source)
    found = [_topology(entry, source) for entry in _list(root, "the file", source)]
    if not found:
        raise ParseError(source, root.line, "a list without a topology")
    chosen = next((f for f in found if f.default), found[0])
    faults = [fault for f in found for fault in f.faults]
    faults += [_left_out(f, chosen) for f in found if f is not chosen]
    parameters = {"topology": chosen.name, **(chosen.parameters or {})}
    dump = switch_dump(
        "topology-yaml", source, counts, chosen.kind, chosen.switches, faults, parameters
    )
    return dump if chosen.nodes is None else _with_nodes(dump, chosen.nodes)


def _with_nodes(dump: Dump, nodes: NodeRecords) -> Dump:
    from dataclasses import replace

    return replace(dump, nodes=nodes)


def _left_out(other: Found, chosen: Found) -> Fault:
    text = f"topology {printable(other.name)} is left out: {printable(chosen.name)} is the default"
    hint = "Slurm uses it for the partitions that name it"
    return Fault(other.line, "other-topology", text, hint, fatal=False)


def _topology(entry: Node, source: str) -> Found:
    keys = _keys(entry, "a topology", ("topology", "cluster_default", *KINDS), source)
    name = _text(keys.get("topology"), "topology", source)
    if not name:
        raise ParseError(source, entry.line, "a topology without a name", "topology: NAME")
    default = _bool(keys.get("cluster_default"), "cluster_default", source)
    kinds = [k for k in KINDS if k in keys and not _is_off(k, keys[k])]
    if len(kinds) != 1:
        what = "and ".join(f"{k} " for k in kinds) or f"none of {', '.join(KINDS)} "
        text = f"topology {printable(name)} has {what}where one kind belongs"
        raise ParseError(source, entry.line, text)
    return KINDS[kinds[0]](Found(name, entry.line, default, kinds[0]), keys[kinds[0]], source)


def _is_off(kind: str, node: Node) -> bool:
    """Say whether this is ``flat: false``, which is as good as absent."""
    return kind == "flat" and isinstance(node, Scalar) and node.text.lower() in _FALSE


def _flat(found: Found, node: Node, source: str) -> Found:
    if isinstance(node, Mapping):
        _keys(node, "flat", ("alpha_step_rank",), source)
    else:
        _bool(node, "flat", source)
    return found


def _tree(found: Found, node: Node, source: str) -> Found:
    rows = _rows(node, "tree", "switches", ("switch", "children", "nodes"), source)
    return _resolved(found, [_declared(k, line, "switch", source) for k, line in rows], source)


def _ring(found: Found, node: Node, source: str) -> Found:
    rows = _rows(node, "ring", "rings", ("ring", "nodes"), source)
    return _resolved(found, [_declared(k, line, "ring", source) for k, line in rows], source)


def _block(found: Found, node: Node, source: str) -> Found:
    keys = _keys(node, "block", ("block_sizes", "blocks"), source)
    rows = _rows(node, "block", "blocks", ("block", "nodes"), source)
    done = _resolved(found, [_declared(k, line, "block", source) for k, line in rows], source)
    listed = keys.get("block_sizes")
    if listed is None:
        return done
    words = [_text(i, "block_sizes", source) for i in _list(listed, "block_sizes", source)]
    sizes = sizes_of(words, source, listed.line)
    faults = block_size_faults(sizes, listed.line, done.switches)
    return _replace(done, faults=(*done.faults, *faults), parameters={"block_sizes": sizes})


def _resolved(found: Found, declared: list[Declared], source: str) -> Found:
    if not declared:
        raise ParseError(source, found.line, f"topology {printable(found.name)} is empty")
    switches, faults = resolve(found.kind, declared, source, both=True)
    return _replace(found, switches=switches, faults=tuple(faults))


def _replace(found: Found, **changes: object) -> Found:
    from dataclasses import replace

    return replace(found, **changes)  # type: ignore[arg-type]  # the callers name fields of Found


def _declared(keys: dict[str, Node], line: int, name: str, source: str) -> Declared:
    given = _text(keys.get(name), name, source)
    if not given:
        raise ParseError(source, line, f"a {name} without a name", f"{name}: NAME")
    return Declared(
        name=given,
        nodes=_text(keys.get("nodes"), "nodes", source),
        children=_text(keys.get("children"), "children", source),
        line=line,
    )


def _torus(found: Found, node: Node, source: str) -> Found:
    """Read the torus of a torus3d topology; a machine has one."""
    rows = _rows(node, "torus3d", "toruses", TORUS_KEYS, source)
    if not rows:
        raise ParseError(source, found.line, f"topology {printable(found.name)} is empty")
    tori = [_torus_words(keys, line, source) for keys, line in rows]
    torus = read_torus(tori[0], source)
    faults = [*torus.faults]
    for other in tori[1:]:
        text = f"torus {printable(other.name)}: a machine is one torus, and this is one more"
        faults.append(Fault(other.line, "second-torus", text, "keep one of them in a copy"))
    return _replace(
        found,
        switches=(torus.switch,),
        faults=tuple(faults),
        nodes=torus.nodes,
        parameters={"extents": torus.extents, "placements": torus.placements},
    )


TORUS_KEYS = ("name", "nodes", "dims", "placements", "regions")


def _torus_words(keys: dict[str, Node], line: int, source: str) -> TorusWords:
    name = _text(keys.get("name"), "name", source)
    if not name:
        raise ParseError(source, line, "a torus without a name", "name: NAME")
    return TorusWords(
        line=line,
        name=name,
        dims=_dims(keys.get("dims"), "dims", line, source),
        nodes=_text(keys.get("nodes"), "nodes", source),
        regions=tuple(
            Region(
                at,
                _dims(region.get("anchor"), "anchor", at, source, default=(0, 0, 0)),
                _dims(region.get("dims"), "dims", at, source),
                _text(region.get("nodes"), "nodes", source),
            )
            for region, at in _entries(
                keys.get("regions"), "regions", ("anchor", "dims", "nodes"), source
            )
        ),
        placements=tuple(
            _placement(placement, at, source)
            for placement, at in _entries(
                keys.get("placements"),
                "placements",
                ("dims", "anchor_seed", "anchor_spacing"),
                source,
            )
        ),
    )


def _placement(keys: dict[str, Node], line: int, source: str) -> dict[str, tuple[int, int, int]]:
    """Return one placement shape; without a spacing its anchors stand side by side."""
    dims = _dims(keys.get("dims"), "dims", line, source)
    spacing = _dims(keys.get("anchor_spacing"), "anchor_spacing", line, source, default=(0, 0, 0))
    return {
        "dims": dims,
        "anchor_seed": _dims(keys.get("anchor_seed"), "anchor_seed", line, source, (0, 0, 0)),
        "anchor_spacing": spacing if any(spacing) else dims,
    }


def _dims(
    node: Node | None,
    what: str,
    line: int,
    source: str,
    default: tuple[int, int, int] | None = None,
) -> tuple[int, int, int]:
    if node is None:
        if default is None:
            raise ParseError(source, line, f"no {what}", f"{what}: {{x: 4, y: 4, z: 2}}")
        return default
    keys = _keys(node, what, ("x", "y", "z"), source)
    x, y, z = (_extent(keys.get(axis), f"{what}.{axis}", source) for axis in "xyz")
    return x, y, z


def _extent(node: Node | None, what: str, source: str) -> int:
    if node is None:
        return 0
    word = _text(node, what, source)
    if not (word.isascii() and word.isdigit() and len(word) < 6 and int(word) <= _MAX_EXTENT):
        raise ParseError(source, node.line, f"{what}: {printable(word)!r} is not a size")
    return int(word)


def _rows(
    node: Node, kind: str, below: str, allowed: tuple[str, ...], source: str
) -> list[tuple[dict[str, Node], int]]:
    """Return the entries of a kind's one list, each with its line."""
    extra = ("block_sizes",) if kind == "block" else ()
    keys = _keys(node, kind, (below, *extra), source)
    return _entries(keys.get(below), below, allowed, source)


def _entries(
    node: Node | None, what: str, allowed: tuple[str, ...], source: str
) -> list[tuple[dict[str, Node], int]]:
    if node is None:
        return []
    entries = [node] if isinstance(node, Mapping) else _list(node, what, source)
    return [(_keys(entry, f"an entry of {what}", allowed, source), entry.line) for entry in entries]


def _keys(node: Node, what: str, allowed: tuple[str, ...], source: str) -> dict[str, Node]:
    """Return a dictionary's items, refusing anything else and unknown keys."""
    if not isinstance(node, Mapping):
        raise ParseError(source, node.line, f"{what} is not a dictionary")
    for key, value in node.items.items():
        if key not in allowed:
            text = f"unknown key {printable(key)!r} in {what}"
            raise ParseError(source, value.line, text, f"there are {', '.join(allowed)}")
    return node.items


def _list(node: Node, what: str, source: str) -> list[Node]:
    if isinstance(node, Sequence):
        return node.items
    if what == "block_sizes" and isinstance(node, Scalar):
        return [node]
    raise ParseError(source, node.line, f"{what} is not a list")


def _text(node: Node | None, what: str, source: str) -> str:
    if node is None:
        return ""
    if not isinstance(node, Scalar):
        raise ParseError(source, node.line, f"{what} is not one value", "a folded list is text")
    return "" if node.text in ("~", "null") else node.text


def _bool(node: Node | None, what: str, source: str) -> bool:
    word = _text(node, what, source).lower()
    if node is not None and word not in _TRUE + _FALSE:
        raise ParseError(source, node.line, f"{what}: {printable(word)!r} is not true or false")
    return word in _TRUE


KINDS: dict[str, Callable[[Found, Node, str], Found]] = {
    "tree": _tree,
    "block": _block,
    "flat": _flat,
    "ring": _ring,
    "torus3d": _torus,
}
