"""A configuration against a dump of the machine: where they agree, and where they contradict.

Each check yields `Finding`s and says nothing where the dump has nothing to
say on it. A dump that lists less than half of the configured nodes is taken
as an extract: what it lists is checked, what it leaves out is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement.dumps.contradictions import WHOLE
from placement.names.columns import parse_cnames
from placement.names.gemini import Gemini
from placement.names.numbering import Numbering
from placement.names.xc import Xc
from placement.records import Dump, NodeRecords
from placement.sites.against_links import leaf_findings, link_findings
from placement.sites.findings import Finding, examples
from placement.sites.layout import CLASSES
from placement.sites.model import Site

Ints = NDArray[np.int64]

__all__ = ["Finding", "compare"]


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
        found += link_findings(site, dump.links)
    found += leaf_findings(site, dump)
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
        return all(c is not None and bool(_known(c).all()) for c in columns)

    @property
    def extract(self) -> bool:
        """True where the dump lists only a part of the machine."""
        return len(self.dump) < WHOLE * len(self.site)

    def column(self, key: str) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return one column of both sides for the nodes in common, where both know it."""
        mine, theirs = getattr(self.site, key), getattr(self.dump, key)
        if mine is None or theirs is None:
            return None
        mine, theirs = mine[self.here], theirs[self.there]
        known = _known(mine) & _known(theirs)
        return (mine[known], theirs[known]) if known.any() else None


def _known(column: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(column != "" if column.dtype.kind == "U" else column >= 0)


def _counts(pair: _Pair) -> Iterator[Finding]:
    """Compare the numbers of compute and service nodes."""
    mine, theirs = pair.site.role, pair.dump.role
    if theirs is None or mine is None or not _known(theirs).any():
        return
    for role in ("compute", "service"):
        here, there = int((mine == role).sum()), int((theirs == role).sum())
        agrees = None if pair.extract else here == there
        yield Finding(f"{role} nodes", str(here), str(there), agrees)


def _places(pair: _Pair) -> Iterator[Finding]:
    """Compare which nodes there are."""
    if not pair.key:
        yield Finding("nodes", _called(pair.site), _called(pair.dump), False)
        return
    mine, theirs = getattr(pair.site, pair.key), getattr(pair.dump, pair.key)
    strange = np.delete(theirs, pair.there).astype(str)
    left = np.ones(len(mine), bool)
    left[pair.here] = False
    if pair.dump.role is None and pair.site.role is not None:
        left &= pair.site.role == "compute"  # Slurm lists no service nodes
    missing = mine[left].astype(str)
    if len(strange):
        yield Finding("nodes not configured", "none", examples(strange), False)
    if len(missing) and pair.extract:
        yield Finding("nodes listed", str(len(mine)), f"{len(theirs)}, so an extract", None)
    elif len(missing):
        yield Finding("nodes not in the dump", examples(missing), "none", False)
    if not len(strange) and (pair.extract or not len(missing)):
        yield Finding(f"places (by {pair.key})", "all known", f"{len(pair.there)}", True)


def _called(nodes: NodeRecords) -> str:
    """Return what the nodes of a side go by."""
    columns = (getattr(nodes, key) for key in ("name", "cname", "nid"))
    found = (c for c in columns if c is not None and _known(c).any())
    return f"called {next(found, ['nothing'])[0]} …"


def _cabinets(pair: _Pair) -> Iterator[Finding]:
    """Compare the cabinets that stand on the floor, and so the absent ones."""
    mine, theirs = _parts(pair.site), _parts(pair.dump)
    if mine is None or theirs is None or not len(theirs):
        return
    here, there = _floor(mine), _floor(theirs)
    absent, strange = sorted(here - there), sorted(there - here)
    if strange:
        yield Finding("cabinets not configured", "none", examples(np.array(strange)), False)
    if absent and not pair.extract:
        yield Finding("cabinets not in the dump", examples(np.array(absent)), "none", False)
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
    rule: Numbering = Xc(columns) if aries else Gemini(columns, rows)
    inside = (parts[:, 0] < columns) & (parts[:, 1] < rows)
    wrong = int((rule.nid(parts[inside]) != nid[inside]).sum()) + int((~inside).sum())
    text = f"holds on {len(nid)} nodes"
    if wrong:
        other = Xc.fit(parts, nid) or Gemini.fit(parts, nid)
        fits = f"{_worded(other)} fits" if other else "no rule fits"
        text = f"wrong on {wrong} of {len(nid)} nodes; {fits}"
    yield Finding("NID rule", _worded(rule), text, not wrong)


def _worded(rule: Numbering) -> str:
    if isinstance(rule, Xc):
        return f"XC, {rule.positions} positions a row"
    assert isinstance(rule, Gemini)
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
