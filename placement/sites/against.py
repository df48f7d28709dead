"""A configuration against a dump of the machine: where they agree, and where they contradict.

Each check yields `Finding`s and says nothing where the dump has nothing to
say on it. A dump that lists less than half of the configured nodes is taken
as an extract: what it lists is checked, what it leaves out is not. Where the
dump lists links, the network is checked too: routers, counts, the wiring rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.dumps.contradictions import WHOLE
from placement.errors import UsageError
from placement.machine import Topology
from placement.names.columns import parse_cnames
from placement.names.gemini import Gemini
from placement.names.xc import Xc
from placement.records import Dump, LinkRecords, NodeRecords
from placement.sites.model import CLASSES, Site
from placement.support.array_types import Array, Ints, Mask, Strs
from placement.topologies.wiring import Shape, cables

__all__ = ["Finding", "compare"]


class Finding(NamedTuple):
    """One thing that both the configuration and the dump state.

    Attributes
    ----------
    what : str
        ``compute nodes``, ``NID rule``, ``wiring`` …
    site, dump : str
        What each says.
    agrees : bool or None
        None where they cannot be compared (an extract).
    """

    what: str
    site: str
    dump: str
    agrees: bool | None


def _examples(words: Strs) -> str:
    """Return the first few of many, and how many there are: ``4 (a, b, c, …)``."""
    shown = ", ".join(words[:3].tolist())
    return f"{len(words)} ({shown}{', …' if len(words) > 3 else ''})"


def compare(site: Site, dump: Dump) -> tuple[Finding, ...]:
    """Compare a site's configuration with a dump.

    Parameters
    ----------
    site : Site
    dump : Dump

    Returns
    -------
    tuple of Finding
        Empty where the dump says nothing that the configuration says.

    Examples
    --------
    >>> from placement.site import load_site
    >>> tara = load_site("tara")
    >>> all(found.agrees for found in compare(tara, tara.records()))
    True
    """
    found: list[Finding] = []
    name = site.topology().fabric
    if dump.fabric in CLASSES:
        found.append(Finding("fabric", name, dump.fabric, name == dump.fabric))
    if dump.nodes is not None and len(dump.nodes):
        pair = _Pair(site, dump.nodes)
        for check in (_counts, _places, _cabinets, _groups, _nid_rule, _coordinates, _columns):
            found += check(pair)
    if dump.links is not None and len(dump.links):
        found += _link_findings(site, dump.links)
    found += _leaf_findings(site, dump)
    return tuple(found)


class _Pair:
    """The nodes of both sides, joined by cname, else by NID, else by name."""

    def __init__(self, site: Site, dump: NodeRecords) -> None:
        nodes = site.records().nodes
        assert nodes is not None
        self.site_config, self.site, self.dump = site, nodes, dump
        self.key = next((k for k in ("cname", "nid", "name") if self._usable(k)), "")
        self.here = self.there = np.empty(0, np.intp)
        if self.key:
            mine, theirs = getattr(nodes, self.key), getattr(dump, self.key)
            _, self.here, self.there = np.intersect1d(mine, theirs, return_indices=True)

    def _usable(self, key: str) -> bool:
        """Return True where both sides have the column and it tells nodes apart."""
        columns = [getattr(side, key) for side in (self.site, self.dump)]
        return all(c is not None and bool(_is_known(c).all()) for c in columns)

    @property
    def extract(self) -> bool:
        """True where the dump lists only a part of the machine."""
        return len(self.dump) < WHOLE * len(self.site)

    def column(self, key: str) -> tuple[Array, Array] | None:
        """Return one column of both sides for the nodes in common, where both know it."""
        mine, theirs = getattr(self.site, key), getattr(self.dump, key)
        if mine is None or theirs is None:
            return None
        mine, theirs = mine[self.here], theirs[self.there]
        known = _is_known(mine) & _is_known(theirs)
        return (mine[known], theirs[known]) if known.any() else None


def _is_known(column: Array) -> Mask:
    return np.asarray(column != "" if column.dtype.kind == "U" else column >= 0)


def _counts(pair: _Pair) -> Iterator[Finding]:
    """Compare the numbers of compute and service nodes."""
    mine, theirs = pair.site.role, pair.dump.role
    if theirs is None or mine is None or not _is_known(theirs).any():
        return
    for role in ("compute", "service"):
        here, there = int((mine == role).sum()), int((theirs == role).sum())
        agrees = None if pair.extract else here == there
        yield Finding(f"{role} nodes", str(here), str(there), agrees)


def _places(pair: _Pair) -> Iterator[Finding]:
    """Compare which nodes there are."""
    if not pair.key:
        yield Finding("nodes", _side_name(pair.site), _side_name(pair.dump), False)
        return
    mine, theirs = getattr(pair.site, pair.key), getattr(pair.dump, pair.key)
    strange = np.delete(theirs, pair.there).astype(str)
    left = np.ones(len(mine), bool)
    left[pair.here] = False
    if pair.dump.role is None and pair.site.role is not None:
        left &= pair.site.role == "compute"  # Slurm lists no service nodes
    missing = mine[left].astype(str)
    yield from _one_sided("nodes", missing, strange, pair)
    if len(missing) and pair.extract:
        yield Finding("nodes listed", str(len(mine)), f"{len(theirs)}, so an extract", None)
    if not len(strange) and (pair.extract or not len(missing)):
        yield Finding(f"places (by {pair.key})", "all known", f"{len(pair.there)}", True)


def _one_sided(what: str, missing: Strs, strange: Strs, pair: _Pair) -> Iterator[Finding]:
    """Name what only the dump has; what only the configuration has, unless it is an extract."""
    if len(strange):
        yield Finding(f"{what} not configured", "none", _examples(strange), False)
    if len(missing) and not pair.extract:
        yield Finding(f"{what} not in the dump", _examples(missing), "none", False)


def _side_name(nodes: NodeRecords) -> str:
    """Return what the nodes of a side go by."""
    columns = (getattr(nodes, key) for key in ("name", "cname", "nid"))
    found = (c for c in columns if c is not None and _is_known(c).any())
    return f"called {next(found, ['nothing'])[0]} …"


def _cabinets(pair: _Pair) -> Iterator[Finding]:
    """Compare the cabinets that stand on the floor, and so the absent ones."""
    mine, theirs = _parts(pair.site), _parts(pair.dump)
    if mine is None or theirs is None or not len(theirs):
        return
    here, there = _floor(mine), _floor(theirs)
    absent, strange = sorted(here - there), sorted(there - here)
    yield from _one_sided("cabinets", np.array(absent), np.array(strange), pair)
    agrees = None if pair.extract else not (absent or strange)
    yield Finding("cabinets", str(len(here)), str(len(there)), agrees)


def _parts(nodes: NodeRecords) -> NDArray[np.int32] | None:
    """Return col, row, cage, slot, node of all nodes that have a cname."""
    if nodes.cname is None:
        return None
    parts = parse_cnames(nodes.cname)
    return np.asarray(parts[parts[:, 4] >= 0])


def _floor(parts: NDArray[np.int32]) -> set[str]:
    return {f"c{column}-{row}" for column, row in np.unique(parts[:, :2], axis=0).tolist()}


def _nid_rule(pair: _Pair) -> Iterator[Finding]:
    """Check the configured NID rule on every node of the dump that has a NID and a cname."""
    cabinets = pair.site_config.config.cabinets
    if cabinets is None or pair.dump.nid is None or pair.dump.cname is None:
        return
    parts, nid = parse_cnames(pair.dump.cname), pair.dump.nid
    good = (parts[:, 4] >= 0) & (nid >= 0)
    if not good.any():
        return
    parts, nid = parts[good], nid[good]
    columns, rows = cabinets.columns.value, cabinets.rows.value
    aries = pair.site_config.topology().fabric == "aries"
    rule = Xc(columns) if aries else Gemini(columns, rows)
    inside = (parts[:, 0] < columns) & (parts[:, 1] < rows)
    wrong = int((rule.nid(parts[inside]) != nid[inside]).sum()) + int((~inside).sum())
    text = f"holds on {len(nid)} nodes"
    if wrong:
        other = Xc.fit(parts, nid) or Gemini.fit(parts, nid)
        fits = f"{_rule_text(other)} fits" if other else "no rule fits"
        text = f"wrong on {wrong} of {len(nid)} nodes; {fits}"
    yield Finding("NID rule", _rule_text(rule), text, not wrong)


def _rule_text(rule: Xc | Gemini) -> str:
    if isinstance(rule, Xc):
        return f"XC, {rule.positions} positions a row"
    return f"Gemini, {rule.columns} columns and {rule.rows} rows"


def _groups(pair: _Pair) -> Iterator[Finding]:
    """Compare the groups of a dragonfly whose nodes have cnames."""
    parts, topology = _parts(pair.dump), pair.site_config.topology()
    if topology.fabric != "aries" or parts is None or not len(parts) or pair.extract:
        return
    assert pair.site.position is not None
    fitted = Xc.fit(parts, pair.dump.nid) if pair.dump.nid is not None else None
    there = np.unique((fitted or Xc(topology.parameters["positions"])).coords(parts)[:, 0])
    here = np.unique(pair.site.position[:, 0])
    yield Finding("groups", str(len(here)), str(len(there)), np.array_equal(here, there))


def _coordinates(pair: _Pair) -> Iterator[Finding]:
    """Compare x, y, z as a dump prints them with what the rule gives."""
    if pair.dump.coords is None or pair.site.position is None or not len(pair.here):
        return
    if pair.site.position.shape[1] != 4:
        return
    mine, theirs = pair.site.position[pair.here, :3], pair.dump.coords[pair.there]
    good = (theirs >= 0).all(axis=1)
    wrong = int((mine[good] != theirs[good]).any(axis=1).sum())
    text = f"{wrong} of {good.sum()} nodes differ" if wrong else f"{good.sum()} nodes agree"
    yield Finding("coordinates", "by the NID rule", text, not wrong)


def _columns(pair: _Pair) -> Iterator[Finding]:
    """Compare roles, names and what is in the nodes, on the nodes in common."""
    for key in ("role", "name", "sockets", "cores", "gpus"):
        both = pair.column(key)
        if both is None or key == pair.key:
            continue
        mine, theirs = both
        what = f"{key}s"
        if mine.dtype.kind != "U":  # 0 of them: not known
            what, known = f"{key} a node", (mine != 0) & (theirs != 0)
            if not known.any():
                continue
            mine, theirs = mine[known], theirs[known]
        differ = mine != theirs
        first = int(np.argmax(differ))
        where = f"{int(differ.sum())} of {len(mine)} nodes differ, the first: "
        if differ.any():
            yield Finding(what, f"{mine[first]}", f"{where}{theirs[first]}", False)
        else:
            yield Finding(what, f"{len(mine)} nodes", "the same", True)


#: Link classes that join groups.
_GLOBAL = ("blue", "global")


def _link_findings(site: Site, links: LinkRecords) -> Iterator[Finding]:
    """Yield what a link list and a configuration both say of the network.

    Parameters
    ----------
    site : Site
    links : LinkRecords
        With coordinates of the routers; without them there is nothing to compare.
    """
    coords_a, coords_b, topology = links.coords_a, links.coords_b, site.topology()
    if coords_a is None or coords_b is None:
        return
    if topology.kind == "torus":
        extents = topology.extents[:3], tuple((coords_a.max(axis=0) + 1).tolist())
        here, there = (" x ".join(map(str, extent)) for extent in extents)
        yield Finding("torus", here, there, here == there)
    elif topology.fabric == "aries":
        mine, theirs = _routers(site), np.unique(coords_a, axis=0)
        same = np.array_equal(np.unique(mine, axis=0), theirs)
        same = same and not (coords_a >= np.array(topology.extents[:3])).any()
        yield Finding("routers", str(len(mine)), str(len(theirs)), same)
        stated, groups = np.unique(mine[:, 0]), np.unique(theirs[:, 0])
        same = np.array_equal(groups, stated)
        yield Finding("groups with routers", str(len(stated)), str(len(groups)), same)
        blue = np.isin(links.kind, _GLOBAL)
        if blue.any():
            ends = coords_a[blue].astype(np.int64), coords_b[blue]
            real = np.concatenate([np.hstack(ends), np.hstack(ends[::-1])])
            real = real[real[:, 0] < real[:, 3]]  # (g, c, s, h, c', s') of ends with g < h
            yield _pairs(topology, real)
            yield _wiring(topology, real, groups)


def _routers(site: Site) -> NDArray[np.int32]:
    """Return the routers of all cabinets: also those of service blades and vacant places."""
    position = site.records().nodes
    assert position is not None
    assert position.position is not None
    halves = np.unique(position.position[:, :2] // np.array([1, 3]), axis=0)
    chassis = np.repeat(halves * np.array([1, 3]), 3, axis=0)
    chassis[:, 1] += np.tile(np.arange(3), len(halves))
    rows = np.repeat(chassis, 16, axis=0)
    return np.column_stack([rows, np.tile(np.arange(16), len(chassis))]).astype(np.int32)


def _pairs(topology: Topology, real: Ints) -> Finding:
    """Compare the number of links of every group pair."""
    # a dump prints each link from both ends
    _, ends = np.unique(real[:, [0, 3]], axis=0, return_counts=True)
    found = sorted(set((ends // 2).tolist()))
    stated = int(topology.parameters["global"])
    text = f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"
    return Finding("links a group pair", str(stated), text, found == [stated])


def _wiring(topology: Topology, real: Ints, groups: NDArray[np.int32]) -> Finding:
    """Compare the real list with what the rule makes for the groups that are there."""
    count = int(topology.parameters["global"])
    try:
        made = cables(topology.wiring, Shape(len(groups), 6, 16, count))
    except UsageError as error:
        return Finding("wiring", topology.wiring, str(error), False)
    ends = [groups[made.g], *np.divmod(made.a, 16), groups[made.h], *np.divmod(made.b, 16)]
    rule = np.repeat(np.column_stack(ends).astype(np.int64), 2 * made.count, axis=0)
    both = Counter(map(tuple, rule.tolist())) & Counter(map(tuple, real.tolist()))
    shared = both.total() // 2  # each as often as it occurs in both lists
    text = f"{shared} of {len(real) // 2} links are the rule's"
    return Finding("wiring", topology.wiring, text, 2 * shared == len(rule) == len(real))


def _leaf_findings(site: Site, dump: Dump) -> Iterator[Finding]:
    """Yield whether the nodes of each leaf module share a switch in the dump, and no other does.

    Parameters
    ----------
    site : Site
        Only a fat tree has leaf modules.
    dump : Dump
        With Slurm's switches, or with the switch of every node.
    """
    nodes, there = site.records().nodes, _switch_of(dump)
    if site.topology().kind != "fattree" or nodes is None or not there:
        return
    assert nodes.name is not None
    assert nodes.position is not None
    leaf = dict(zip(nodes.name.tolist(), nodes.position[:, 0].tolist(), strict=True))
    pairs = {(leaf[name], switch) for name, switch in there.items() if name in leaf}
    leaves, switches = Counter(k for k, _ in pairs), Counter(s for _, s in pairs)
    mixed = sorted(switch for switch, times in switches.items() if times > 1)
    split = sorted(k for k, times in leaves.items() if times > 1)
    wrong = np.array([*mixed, *(site.config.leaf[k].name for k in split)])
    text = f"{len(switches)} with the same nodes"
    text = f"mixed or split: {_examples(wrong)}" if len(wrong) else text
    if pairs:
        yield Finding("leaf modules", str(len(site.config.leaf)), text, not len(wrong))


def _switch_of(dump: Dump) -> dict[str, str]:
    """Return the switch that each node hangs on, by the node's name."""
    found = {node: record.name for record in dump.switches for node in record.nodes}
    nodes = dump.nodes
    if found or nodes is None or nodes.name is None or nodes.router is None:
        return found
    names, routers = nodes.name.tolist(), nodes.router.tolist()
    return {name: router for name, router in zip(names, routers, strict=True) if router}
