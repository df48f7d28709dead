"""`site check --against`: a configuration and a machine-shaped dump agree, or every contradiction is named."""

# ruff: noqa: E501  # the first line and the generated dump lines are long

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.readers import read_text
from placement.records import Dump, LineCounts, LinkRecords, NodeRecords, SwitchRecord
from placement.site import load_site
from placement.sites.against import compare
from placement.sites.loading import parse_site
from tests.placement.site_texts import ARIES, FATTREE, GEMINI, SLINGSHOT

SITE = parse_site(ARIES, "mine.toml")


def xtprocadmin(columns=4, rows=1, *, holes=(), service=("c0-0c0s0n1", "c0-0c0s0n2"), row=None):
    """Write what xtprocadmin prints of an XC with `columns` positions a row."""
    lines = ["   NID    (HEX)    NODENAME     TYPE    STATUS        MODE"]
    places = itertools.product(range(rows), range(columns), range(3), range(16), range(4))
    for r, c, h, s, n in places:
        cname, nid = f"c{c}-{r}c{h}s{s}n{n}", 192 * ((row or columns) * r + c) + 64 * h + 4 * s + n
        if cname not in ("c0-0c0s0n0", "c0-0c0s0n3", *holes):
            kind = "service" if cname in service else "compute"
            lines.append(f"{nid:6d} {nid:#8x} {cname:>11} {kind:>8} {'up':>9} {'batch':>11}")
    return "\n".join(lines) + "\n"


def found(site, dump):
    """Return what agrees and what differs, by name."""
    findings = compare(site, dump)
    return (
        {f.what for f in findings if f.agrees},
        {f.what: f for f in findings if f.agrees is False},
    )


def test_its_own_dump_agrees_in_every_respect():
    agreed, differ = found(SITE, read_text(xtprocadmin(), "x.txt"))
    assert not differ
    assert agreed >= {
        "compute nodes",
        "service nodes",
        "places (by cname)",
        "cabinets",
        "groups",
        "NID rule",
        "roles",
    }


@pytest.mark.parametrize("name", ["titan", "edison", "lumi", "tara", "polaris", "shaheen2"])
def test_a_site_agrees_with_its_own_records(name):
    site = load_site(name)
    assert [f for f in compare(site, site.records()) if f.agrees is False] == []


def test_a_missing_cabinet_is_named():
    holes = [f"c3-0c{h}s{s}n{n}" for h in range(3) for s in range(16) for n in range(4)]
    _, differ = found(SITE, read_text(xtprocadmin(holes=holes), "x.txt"))
    assert differ["cabinets not in the dump"].site == "1 (c3-0)"
    assert differ["compute nodes"].dump == str(764 - 192)
    assert "192 (c3-0c0s0n0" in differ["nodes not in the dump"].site


def test_another_row_length_breaks_the_nid_rule_and_the_fitting_one_is_said():
    two_rows = ARIES.replace("rows = { value = 1,", "rows = { value = 2,")
    two_rows = two_rows.replace("value = 764", "value = 1532").replace(
        "groups = { value = 2", "groups = { value = 4"
    )
    site = parse_site(two_rows, "mine.toml")
    assert not found(site, read_text(xtprocadmin(rows=2), "x.txt"))[1]
    _, differ = found(site, read_text(xtprocadmin(rows=2, row=6), "x.txt"))
    assert differ["NID rule"].site == "XC, 4 positions a row"
    assert "6 positions a row fits" in differ["NID rule"].dump
    assert "768 of 1534" in differ["NID rule"].dump


def test_nodes_that_serve_instead_of_computing_are_counted():
    served = ("c0-0c0s0n1", "c0-0c0s0n2", "c1-0c0s3n0")
    _, differ = found(SITE, read_text(xtprocadmin(service=served), "x.txt"))
    assert set(differ) == {"compute nodes", "service nodes", "roles"}
    assert "1 of 766 nodes differ" in differ["roles"].dump


def test_an_extract_is_checked_for_what_it_lists():
    lines = xtprocadmin().splitlines(keepends=True)
    agreed, differ = found(SITE, read_text("".join(lines[:1] + lines[300:400]), "x.txt"))
    assert not differ
    assert "NID rule" in agreed
    findings = {f.what: f.agrees for f in compare(SITE, read_text("".join(lines[:100]), "x.txt"))}
    assert findings["compute nodes"] is None


def test_a_dump_of_a_larger_machine_names_its_cabinets():
    _, differ = found(SITE, read_text(xtprocadmin(columns=6, row=4), "x.txt"))
    assert differ["cabinets not configured"].dump == "2 (c4-0, c5-0)"
    assert differ["groups"].dump == "3"


@given(st.data())
def test_any_lost_node_is_found(data):
    lines = xtprocadmin().splitlines(keepends=True)
    lost = data.draw(st.sets(st.integers(1, len(lines) - 1), min_size=1, max_size=20))
    text = "".join(line for i, line in enumerate(lines) if i not in lost)
    _, differ = found(SITE, read_text(text, "x.txt"))
    assert differ["nodes not in the dump"].site.startswith(f"{len(lost)} (")


# --- links -------------------------------------------------------------------


def links_of(ends, kind="blue"):
    """Return a link list that prints each link from both ends, as rtr does."""
    both = np.array([*ends, *[(b, a) for a, b in ends]], np.int32)
    n = len(both)
    names = np.array([f"c0-0c0s{i}a0" for i in range(n)])
    zero = np.zeros(n, np.int32)
    return LinkRecords(zero, names, names, zero, zero, np.full(n, kind), both[:, 0], both[:, 1])


def dump_with(links, fabric="aries"):
    return Dump("rtr-aries", "x.rtr", LineCounts(len(links)), links=links, fabric=fabric)


def consecutive(groups, links, lose=0, turn=0):
    """Return the links of the rule `consecutive`, written down as the rule is worded."""
    ends = []
    for g, h in itertools.combinations(range(groups), 2):
        for k in range(links):
            a = ((h - 1) * links + k + turn) % 96
            b = (g * links + k) % 96
            ends.append(((g, *divmod(a, 16)), (h, *divmod(b, 16))))
    return ends[lose:]


def whole_groups(groups):
    """Return one green link ring a chassis, so that every router is named."""
    return [
        ((g, c, s), (g, c, (s + 1) % 16))
        for g in range(groups)
        for c in range(6)
        for s in range(16)
    ]


def rtr(groups, **broken):
    green, blue = (
        links_of(whole_groups(groups), "green"),
        links_of(consecutive(groups, 24, **broken)),
    )
    columns = (np.concatenate(pair) for pair in zip(_columns(green), _columns(blue), strict=True))
    return dump_with(LinkRecords(*columns))


def _columns(links):
    return (
        links.line,
        links.a,
        links.b,
        links.a_port,
        links.b_port,
        links.kind,
        links.coords_a,
        links.coords_b,
    )


def test_a_link_list_by_the_configured_rule_agrees():
    agreed, differ = found(SITE, rtr(2))
    assert not differ
    assert agreed == {"fabric", "routers", "groups with routers", "links a group pair", "wiring"}


def test_a_lost_link_is_found():
    _, differ = found(SITE, rtr(2, lose=1))
    assert differ["links a group pair"].dump == "23"
    assert differ["wiring"].dump == "23 of 23 links are the rule's"


def test_another_wiring_is_found():
    _, differ = found(SITE, rtr(2, turn=5))
    assert set(differ) == {"wiring"}
    assert differ["wiring"].dump == "0 of 24 links are the rule's"


def test_more_groups_are_found():
    _, differ = found(SITE, rtr(3))
    assert differ["groups with routers"].dump == "3"
    assert differ["routers"].dump == "288"
    assert "wiring" not in differ


def test_a_torus_has_its_extents():
    site = parse_site(GEMINI, "mine.toml")
    links = links_of([((0, 0, 0), (1, 3, 23))], "x+")
    assert found(site, dump_with(links, "gemini"))[0] == {"fabric", "torus"}
    links = links_of([((0, 0, 0), (1, 5, 23))], "x+")
    assert found(site, dump_with(links, "gemini"))[1]["torus"].dump == "2 x 6 x 24"


def test_another_fabric_differs():
    assert found(SITE, dump_with(links_of([((0, 0, 0), (1, 3, 7))], "x+"), "gemini"))[1]["fabric"]


# --- Slurm and InfiniBand ----------------------------------------------------


def listed(names, **columns):
    n = len(names)
    nodes = NodeRecords(np.zeros(n, np.int32), name=np.array(names), **columns)
    return Dump("sinfo", "sinfo.txt", LineCounts(n), nodes=nodes)


def test_slurms_list_needs_no_service_nodes():
    site = parse_site(FATTREE, "mine.toml")
    names = [f"n{i}" for i in range(2, 31)]
    agreed, differ = found(site, listed(names))
    assert (agreed, differ) == ({"places (by name)"}, {})
    _, differ = found(site, listed([*names, "n99"]))
    assert differ["nodes not configured"].dump == "1 (n99)"
    _, differ = found(site, listed(names[:-2]))
    assert differ["nodes not in the dump"].site == "2 (n29, n30)"


def test_cores_are_compared_where_both_state_them():
    names = SITE.records().nodes.name[SITE.records().nodes.role == "compute"].tolist()
    right = np.full(len(names), 32, np.int32)
    assert "cores a node" in found(SITE, listed(names, cores=right))[0]
    wrong = np.where(np.arange(len(names)) == 7, 64, 32).astype(np.int32)
    assert found(SITE, listed(names, cores=wrong))[1]["cores a node"].dump.endswith("first: 64")


def test_xnames_and_nids_of_a_slingshot_machine_join():
    site = parse_site(SLINGSHOT, "mine.toml")
    names = [f"nid{n:06d}" for n in [*range(1000, 1040), *range(5000, 5048)]]
    assert not found(site, listed(names))[1]
    assert found(site, listed([*names[:-1], "nid009999"]))[1].keys() == {
        "nodes not configured",
        "nodes not in the dump",
    }


@pytest.mark.parametrize(
    ("leaves", "wrong"),
    [
        ([range(1, 19), range(19, 31)], ""),
        ([range(1, 20), range(20, 31)], "2 (s0, leaf2)"),
        ([range(1, 10), range(10, 19), range(19, 31)], "1 (leaf1)"),
    ],
)
def test_leaf_modules_are_slurms_switches(leaves, wrong):
    site = parse_site(FATTREE, "mine.toml")
    switches = tuple(
        SwitchRecord(f"s{k}", tuple(f"n{i}" for i in leaf)) for k, leaf in enumerate(leaves)
    )
    dump = Dump("topology-conf", "t.conf", LineCounts(len(leaves)), switches=switches)
    agreed, differ = found(site, dump)
    assert ("leaf modules" in agreed) == (not wrong)
    assert not wrong or differ["leaf modules"].dump == f"mixed or split: {wrong}"


def test_nodes_that_go_by_other_names_differ():
    dump = read_text(xtprocadmin(), "x.txt")
    _, differ = found(parse_site(FATTREE, "mine.toml"), dump)
    assert differ["nodes"].site == "called n1 …"
