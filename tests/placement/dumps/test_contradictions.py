# SPDX-License-Identifier: Apache-2.0
"""Two dumps of one machine that say different things: each is named, none is passed over."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nidmap.placement.check import check, check_sources
from nidmap.placement.commands import run
from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.dumps.contradictions import contradictions
from nidmap.placement.errors import ParseError
from nidmap.placement.load import load_machine, open_sources
from nidmap.placement.readers import read_text
from nidmap.placement.sites import load_site
from nidmap.placement.topologies import router_count
from tests.placement.machine_shapes import aries_links, rtr_aries, xc_cells, xtprocadmin
from tests.same_machine import same_machine

CELLS = [(nid, cname) for nid, cname, _ in xc_cells(2, 1)][:24]
nodes = st.dictionaries(
    st.sampled_from(range(len(CELLS))),
    st.tuples(st.sampled_from(("compute", "service")), st.sampled_from(("up", "down"))),
    min_size=1,
)


def dump_of(chosen, source):
    rows = [(*CELLS[k], *words) for k, words in sorted(chosen.items())]
    lines = [f"{nid} {nid:#x} {cname} {role} {state} batch" for nid, cname, role, state in rows]
    return read_text("\n".join(lines) + "\n", source)


@given(nodes, nodes)
def test_every_difference_of_two_inventories_is_named(one, other):
    assume(set(one) & set(other))
    parts = 2 * len(set(one) & set(other)) < min(len(one), len(other))
    expected = set() if parts else {CELLS[k][1] for k in set(one) ^ set(other)}
    words = {
        (CELLS[k][1], word)
        for k in set(one) & set(other)
        for before, word in zip(one[k], other[k], strict=True)
        if before != word
    }
    dumps = [dump_of(one, "a"), dump_of(other, "b")]
    found = contradictions(dumps).findings
    assert {c.text.split()[0] for c in found if "not in" in c.text} == expected
    assert {
        tuple(c.text.split(",")[0].split(" is ")) for c in found if "not in" not in c.text
    } == words
    if found:
        with pytest.raises(ParseError, match="-m prefer:last"):
            assemble(dumps)
    machine = assemble(dumps, prefer="last")
    last = assemble([dumps[1]])
    if not found:
        assert machine.notes == last.notes
    elif not parts:
        assert same_machine(machine, last)


def test_the_error_says_both_places_and_the_check_all_of_them(tmp_path, capsys):
    for name, role in (("a", "compute"), ("b", "service")):
        rows = [(nid, cname) for nid, cname in CELLS]
        text = xtprocadmin(rows).replace("compute", role)
        (tmp_path / name).write_text(text)
    specs = [str(tmp_path / "a"), str(tmp_path / "b")]
    with pytest.raises(ParseError) as caught:
        load_machine(*specs)
    line = re.escape(str(tmp_path / "a"))
    assert re.match(
        rf"c0-0c0s0n0 is service, but compute in {line}:2, and 23 more", caught.value.text
    )
    assert (caught.value.source, caught.value.line) == (specs[1], 2)
    machine, findings = check_sources(open_sources(*specs))
    assert machine is None
    assert len([f for f in findings if f.kind == "contradiction"]) == len(CELLS)
    options = ["-m", specs[0], "-m", specs[1]]
    assert run(["machine", "show", *options]) == 3
    capsys.readouterr()
    assert run(["machine", "show", *options, "-m", "prefer:last"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"service +24 nodes", shown)
    assert "of 24 contradictions the last dump counts" in shown


def test_formats_that_say_different_roles_contradict_and_the_last_given_counts():
    crays = read_text(xtprocadmin(CELLS), "cray")
    lines = (f" {nid} {cname} service 0 0 {k // 4} {k % 4}" for k, (nid, cname) in enumerate(CELLS))
    header = "  NID   NODENAME      TYPE   CORES   X  Y  Z\n"
    assert contradictions([crays, crays]).findings == []
    rows = [line.split() for line in lines]
    text = header + "".join(
        f"{n} {c} service 68 0 0 {int(k) // 1}\n" for n, c, _, _, _, k, _ in rows
    )
    mesh = read_text(text, "mesh")
    assert len(contradictions([crays, mesh]).findings) == len(CELLS)
    assert set(assemble([crays, mesh], prefer="last").role) == {"service"}
    assert set(assemble([mesh, crays], prefer="last").role) == {"compute"}


def test_slurms_states_are_no_contradiction():
    crays = read_text(xtprocadmin(CELLS), "cray")
    names = ",".join(f"nid{nid:05d}" for nid, _ in CELLS)
    slurm = read_text(f"NODELIST STATE\n{names} drained\n", "sinfo")
    assert contradictions([crays, slurm]).findings == []
    later = read_text(f"NODELIST STATE\n{names} idle\n", "later")
    assert len(contradictions([crays, slurm, later]).findings) == len(CELLS)
    assert assemble([crays, slurm, later], prefer="last").free.all()


def test_a_dump_without_a_sites_cabinets():
    """As Piz Daint of another year: the routers of absent cabinets are not kept."""
    site = load_site("pizdaint")
    records = site.records().nodes
    rows = [
        (int(nid), str(cname), str(role))
        for nid, cname, role in zip(records.nid, records.cname, records.role, strict=True)
        if not str(cname).startswith(("c8-3", "c9-3"))
    ]
    lines = "".join(f"{nid} {nid:#x} {cname} {role} up batch\n" for nid, cname, role in rows)
    dump = read_text(lines, "2018.txt")
    with pytest.raises(ParseError, match="cabinets c8-3, c9-3 of site pizdaint not in it"):
        assemble([dump], site)
    machine = assemble([dump], site, prefer="last")
    assert router_count(machine) == len({cname[:-2] for _, cname, _ in rows})
    extract = read_text("".join(lines.splitlines(keepends=True)[:500]), "extract.txt")
    assert router_count(assemble([extract], site)) > 1900


def test_the_check_names_a_router_without_links():
    cells = xc_cells(2, 1)
    routers = {cell[2][:3] for cell in cells}
    alone = (0, 0, 5)
    links = {pair: n for pair, n in aries_links(routers).items() if alone not in pair[:2]}
    dumps = [
        read_text(xtprocadmin([cell[:2] for cell in cells]), "nodes"),
        read_text(rtr_aries(routers, links, 2), "links"),
    ]
    found = [f for f in check(assemble(dumps), dumps) if f.kind == "no-link"]
    assert [f.text for f in found] == [
        "router c0-0c0s5a0 has no link: its 4 nodes, nid00020 the first, reach no other router"
    ]
