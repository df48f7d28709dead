"""What is inconsistent in the dumps of a machine, and in what they make together.

A *fault* contradicts something: no plan should rest on it. A *remark* is
worth knowing and normal: a hole, an absent cabinet, an assumption.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.contradictions import contradictions
from placement.errors import NidmapError, ParseError, place
from placement.records import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from placement.load import Sources
    from placement.machine import Machine
    from placement.records import Dump
    from placement.tables import Table

__all__ = ["Finding", "check", "check_sources"]

#: Findings of one kind that are listed; more are counted.
MOST = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is inconsistent, or worth a remark.

    Attributes
    ----------
    source : str
        File, site or spec.
    line : int
        0 where no single line is to blame.
    kind : str
        Short stable word: ``hex``, ``nid``, ``duplicate-nid``,
        ``coordinates``, ``one-ended-link``, ``hole``, ``note`` …
    text : str
    hint : str
    fault : bool
        False for a remark.
    """

    source: str
    line: int
    kind: str
    text: str
    hint: str = ""
    fault: bool = True

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        word = "fault" if self.fault else "remark"
        return f"{place(self.source, self.line)}: {word}: {self.text}{hint}"

    def as_dict(self) -> dict[str, Any]:
        """Return the finding for JSON."""
        return asdict(self)


def check_sources(sources: Sources) -> tuple[Machine | None, list[Finding]]:
    """Check some dumps, alone and together, and the machine that they make.

    Parameters
    ----------
    sources : Sources
        As `placement.load.open_sources` returns them.

    Returns
    -------
    (Machine or None, list of Finding)
        None where a fault leaves no machine. Faults come first, each group
        in the order of files and lines.
    """
    from placement.load import build

    found = [_of_fault(d.source, f) for d in sources.dumps for f in d.faults]
    found += [x for d in sources.dumps for x in _numbering(d) if x.line not in _lines(found)]
    if not sources.prefer and not any(x.fault for x in found):
        apart = contradictions(sources.dumps, sources.site)
        found += [Finding(c.source, c.line, "contradiction", c.text) for c in apart]
    machine = None
    if not any(x.fault for x in found):
        try:
            machine = build(sources)
        except NidmapError as error:
            found.append(_of_error(error))
    if machine is not None:
        found += check(machine, sources.dumps)
    return machine, sorted(found, key=lambda x: not x.fault)


def _lines(found: Sequence[Finding]) -> set[int]:
    return {x.line for x in found if x.fault and x.line}


def _of_fault(source: str, fault: Fault) -> Finding:
    return Finding(source, fault.line, fault.kind, fault.text, fault.hint, fault.fatal)


def _of_error(error: NidmapError) -> Finding:
    if isinstance(error, ParseError):
        return Finding(error.source, error.line, "contradiction", error.text, error.hint)
    return Finding("machine", 0, "contradiction", error.message, error.hint)


def _numbering(dump: Dump) -> list[Finding]:
    """Return the nodes whose NID is not what most others' numbering gives to their cname."""
    from placement.geometry.numbering import first_wrong, wrong_nid
    from placement.tables import join

    nodes = dump.nodes
    if nodes is None or nodes.cname is None or nodes.nid is None or dump.format == "site":
        return []
    from placement.names import parse_cnames

    parts = parse_cnames(nodes.cname)
    rule = _rule(dump, parts)
    if rule is None:
        return []
    table = join([dump])
    rows = first_wrong(table, parts, rule)
    rows = rows[(parts[rows] >= 0).all(axis=1)]
    return _listed(rows, table, "nid", lambda row: wrong_nid(table, parts, rule, row))


def _rule(dump: Dump, parts: NDArray[np.int32]) -> Any:
    """Return the numbering that most nodes follow, None where none, or coordinates count."""
    from placement.geometry.numbering import gemini_vote
    from placement.names import Xc

    assert dump.nodes is not None
    nid = dump.nodes.nid
    assert nid is not None
    if dump.fabric == "gemini":
        return None
    voted = Xc.vote(parts, nid)
    if voted is not None and 2 * voted[1].sum() > len(nid):
        return voted[0]
    return gemini_vote(parts, nid)


def _listed(
    rows: NDArray[np.int64], table: Table, kind: str, text: Callable[[int], str]
) -> list[Finding]:
    out = []
    for row in rows[:MOST].tolist():
        source, line = table.where(row)
        out.append(Finding(source, line, kind, text(row)))
    if len(rows) > MOST:
        out.append(Finding(table.sources[0], 0, kind, f"{len(rows) - MOST} more of kind {kind}"))
    return out


def check(machine: Machine, dumps: Sequence[Dump] = ()) -> list[Finding]:
    """Check a machine that could be built.

    Parameters
    ----------
    machine : Machine
    dumps : sequence of Dump
        What it was made from, to name it.

    Returns
    -------
    list of Finding

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> check(parse_spec("torus:4x4x4"))
    []
    """
    source = dumps[0].source if dumps else machine.name
    checks = (_places, _names, _blue_ports, _group_pairs, _holes, _switches, _unlinked)
    found = [
        Finding(source, f.line, f.kind, f.text, f.hint, f.fatal)
        for one in checks
        for f in one(machine)
    ]
    told = {str(f.error(dump.source)) for dump in dumps for f in dump.faults}
    notes = [note for note in machine.notes if note not in told]
    return found + [Finding(source, 0, "note", note, fault=False) for note in notes]


def _remark(kind: str, text: str, hint: str = "") -> Fault:
    return Fault(0, kind, text, hint, fatal=False)


def _places(machine: Machine) -> Iterator[Fault]:
    """Find nodes outside the extents, and two nodes in one place."""
    limits = np.array(machine.topology.extents)
    outside = np.flatnonzero(((machine.coords < 0) | (machine.coords >= limits)).any(axis=1))
    for row in outside[:MOST].tolist():
        at = tuple(machine.coords[row].tolist())
        size = "x".join(map(str, limits.tolist()))
        yield Fault(0, "coordinates", f"{machine.names[row]} is at {at}, outside {size}")
    order = np.lexsort(machine.coords.T[::-1])
    coords = machine.coords[order]
    same = np.flatnonzero((coords[1:] == coords[:-1]).all(axis=1))
    for i in same[:MOST].tolist():
        names = machine.names[order[i : i + 2]]
        at = tuple(coords[i].tolist())
        yield Fault(0, "duplicate-place", f"{names[0]} and {names[1]} are both at {at}")


def _names(machine: Machine) -> Iterator[Fault]:
    """Find nodes whose cname says another place or NID than they have."""
    rule = _stated_rule(machine)
    if rule is None:
        return
    from placement.names import parse_cnames

    parts = parse_cnames(machine.cname)
    known = (parts >= 0).all(axis=1)
    coords = rule.coords(parts)
    for row in np.flatnonzero(known & (coords != machine.coords).any(axis=1))[:MOST].tolist():
        at, said = tuple(machine.coords[row].tolist()), tuple(coords[row].tolist())
        text = f"{machine.names[row]} is at {at}, its cname {machine.cname[row]} says {said}"
        yield Fault(0, "coordinates", text)
    nid = rule.nid(parts)
    wrong = known & (machine.nid >= 0) & (nid != machine.nid)
    for row in np.flatnonzero(wrong)[:MOST].tolist():
        text = f"{machine.cname[row]} has NID {machine.nid[row]}, by its place it is {nid[row]}"
        yield Fault(0, "nid", text)


def _stated_rule(machine: Machine) -> Any:
    """Return the numbering that the topology states, None where it states none."""
    from placement.names import Gemini, Xc

    stated = machine.topology.parameters
    if machine.topology.fabric == "aries" and "positions" in stated:
        return Xc(int(stated["positions"]))
    if machine.topology.fabric == "gemini" and {"columns", "rows"} <= stated.keys():
        return Gemini(int(stated["columns"]), int(stated["rows"]))
    return None


def _blue_ports(machine: Machine) -> Iterator[Fault]:
    """Find routers with more links to other groups than a router has ports."""
    if machine.topology.kind != "dragonfly":
        return
    from placement.topologies import links, router_names
    from placement.topologies.wiring import PORTS

    found = links(machine)
    kind = "slingshot" if machine.topology.router_levels == 2 else "aries"
    mine = found.kind == len(found.kinds) - 1
    ends = np.concatenate([found.a[mine], found.b[mine]])
    count = np.bincount(ends, np.tile(found.count[mine], 2))
    over = np.flatnonzero(count > PORTS[kind])
    if not len(over):
        return
    worst = int(over[np.argmax(count[over])])
    text = (
        f"{len(over)} routers have more than {PORTS[kind]} {found.kinds[-1]} links, "
        f"{router_names(machine)[worst]} has {int(count[worst])}"
    )
    yield Fault(0, "ports", text, "more than a router has ports", fatal=machine.links is not None)


def _group_pairs(machine: Machine) -> Iterator[Fault]:
    """Find groups that no link joins, and pairs with fewer links than others."""
    if machine.topology.kind != "dragonfly":
        return
    from placement.topologies import links, router_coords

    found = links(machine)
    groups, rank = np.unique(router_coords(machine)[:, 0], return_inverse=True)
    mine = found.kind == len(found.kinds) - 1
    size = len(groups)
    key = rank[found.a[mine]] * size + rank[found.b[mine]]
    table = np.bincount(key, found.count[mine], size * size).reshape(size, size)
    g, h = np.triu_indices(size, 1)
    table = table + table.T
    none = np.flatnonzero(table[g, h] == 0)
    if len(none):
        first = f"{groups[g[none[0]]]} and {groups[h[none[0]]]}"
        yield _remark("groups-apart", f"{len(none)} group pairs have no link, {first} the first")
    uneven = np.unique(table[g, h][table[g, h] > 0])
    if len(uneven) > 1 and "global_table" not in machine.topology.parameters:
        text = f"group pairs have {int(uneven[0])} to {int(uneven[-1])} links"
        yield _remark("uneven-pairs", text, "routers that are absent take theirs along")


def _holes(machine: Machine) -> Iterator[Fault]:
    """Say what is missing in the box that the machine fills."""
    from placement.summary import holes

    words = {
        "group": "absent groups",
        "chassis": "chassis absent in groups that are there",
        "blade": "blades absent in chassis that are there",
        "node": "nodes absent on blades that are there",
        "router": "routers without a node",
    }
    for level, count in holes(machine).items():
        word = words[level]
        if level == "node" and machine.topology.kind == "torus":
            word = "nodes absent on routers that have one"
        text = f"{word}: {count}, {_place(machine, level)} the first"
        yield _remark("hole", text, "normal")


def _place(machine: Machine, level: str) -> str:
    """Name the first empty place of a level: its cname where there is one, else coordinates."""
    from placement.summary import first_hole

    at = first_hole(machine, level)
    rule = _stated_rule(machine)
    if rule is None or len(at) < len(machine.topology.levels) - 1:
        levels = machine.topology.levels
        return " ".join(f"{word} {value}" for word, value in zip(levels, at, strict=False))
    from placement.names import format_cnames

    whole = np.array([[*at, 0][: len(machine.topology.levels)]])
    name = str(format_cnames(rule.parts_of_coords(whole))[0])
    if len(at) < len(machine.topology.levels):
        return name[: name.rindex("n")]
    return name


def _switches(machine: Machine) -> Iterator[Fault]:
    """Find compute nodes that Slurm's topology does not name."""
    if machine.switches is None or machine.switches.kind == "flat":
        return
    rows = np.flatnonzero(machine.compute & (machine.switches.leaf_of < 0))
    if len(rows):
        text = f"{len(rows)} compute nodes are on no switch, {machine.names[rows[0]]} the first"
        yield _remark("no-switch", text, "Slurm's topology plugin will not use them together")


def _unlinked(machine: Machine) -> Iterator[Fault]:
    """Find routers with nodes and without a link, where others have links."""
    from placement.topologies import links, router_names

    found = links(machine)
    if not len(found):
        return
    used = np.unique(machine.router[machine.router >= 0])
    alone = np.setdiff1d(used, np.concatenate([found.a, found.b]))
    for router in alone[:MOST].tolist():
        nodes = machine.names[(machine.router == router).any(axis=1)]
        word = "node" if len(nodes) == 1 else "nodes"
        text = f"router {router_names(machine)[router]} has no link: its {len(nodes)} {word}, "
        yield _remark("no-link", f"{text}{nodes[0]} the first, reach no other router")
    if len(alone) > MOST:
        yield _remark("no-link", f"{len(alone) - MOST} more routers have no link")
