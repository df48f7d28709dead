# SPDX-License-Identifier: Apache-2.0
"""Every kind of inconsistency is found, with its line, and nothing is where all is well."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.check import check, check_sources
from nidmap.placement.load import Sources
from nidmap.placement.readers import read_text
from nidmap.placement.specs import parse_spec
from tests.placement import machine_shapes as shapes

XC = shapes.xc_cells(4, 1)


def checked(*texts):
    dumps = [read_text(text, f"dump{i}") for i, text in enumerate(texts)]
    return check_sources(Sources(dumps=dumps))


def faults(*texts):
    return [x for x in checked(*texts)[1] if x.fault]


def test_a_sound_dump_has_no_fault():
    machine, findings = checked(shapes.xtprocadmin(XC))
    assert len(machine) == len(XC)
    assert [x.kind for x in findings] == ["note"]


@pytest.mark.parametrize(
    "spec",
    [
        "dragonfly:groups=4,chassis=3,blades=4,nodes=2,injection=10",
        "torus:4x4x4,nodes=2,injection=10",
        "fattree:leaf=4,leaves=4,spines=2",
        "tree:4x4",
        "slingshot:groups=4,switches=8,nodes=2,injection=25",
    ],
)
def test_a_synthetic_machine_has_no_finding(spec):
    assert check(parse_spec(spec)) == []


def test_hex_that_is_not_the_nid():
    text = shapes.xtprocadmin(XC).replace("     7      0x7", "     7      0x8")
    [found] = faults(text)
    assert (found.kind, found.line, found.source) == ("hex", 9, "dump0")


def test_a_nid_twice():
    cells = [*XC[:20], (5, *XC[20][1:]), *XC[21:]]
    found = faults(shapes.xtprocadmin(cells))
    assert [(x.kind, x.line) for x in found] == [("duplicate-nid", 22)]


def test_a_cname_twice():
    cells = [*XC[:20], (XC[20][0], *XC[5][1:]), *XC[21:]]
    found = faults(shapes.xtprocadmin(cells))
    assert ("duplicate-cname", 22) in [(x.kind, x.line) for x in found]


@given(st.sets(st.integers(0, len(XC) - 1), min_size=1, max_size=20))
def test_every_nid_that_is_not_its_cname_s_is_listed(rows):
    cells = list(XC)
    for row in rows:
        cells[row] = (cells[row][0] + 10_000, *cells[row][1:])
    found = faults(shapes.xtprocadmin(cells))
    assert sorted(x.line for x in found) == sorted(row + 2 for row in rows)
    assert {x.kind for x in found} == {"nid"}


def test_wrong_nids_of_an_xe():
    cells = shapes.xe_cells(4, 2)
    cells[30] = (30_000, *cells[30][1:])
    cells[31] = (30_001, *cells[31][1:])
    found = faults(shapes.xtprocadmin(cells))
    assert [(x.kind, x.line) for x in found] == [("nid", 32), ("nid", 33)]


def test_coordinates_that_a_cname_contradicts():
    cells = [(nid, name, at) for nid, name, at in XC[:64]]
    cells[9] = (*cells[9][:2], (0, 0, 15))
    found = faults(shapes.meshcoords(cells))
    assert [(x.kind, x.line) for x in found] == [("coordinates", 11)]


def test_dumps_that_contradict_one_another():
    cells = shapes.xc_cells(4, 2)
    [found] = faults(shapes.xtprocadmin(cells), shapes.xtprocadmin(shapes.xc_cells(8, 1)))
    assert (found.kind, found.source) == ("contradiction", "dump1")


ROUTERS = sorted({place[:3] for _, _, place in XC})


def cut(lines):
    del lines[100]


def one_end(lines):
    lines[48] = lines[48].split(" ")[0] + " green -> unused"


@pytest.mark.parametrize("damage", [cut, one_end])
def test_a_link_with_one_end(damage):
    text = shapes.rtr_aries(ROUTERS, shapes.aries_links(ROUTERS), 4, damage)
    machine, findings = checked(text)
    assert machine is None
    kinds = {x.kind for x in findings if x.fault}
    assert "one-ended-link" in kinds
    assert all(x.line for x in findings if x.kind == "one-ended-link")


def test_more_blue_links_than_ports():
    blue = Counter({((0, 0, 0), (1, 0, s), "blue"): 2 for s in range(6)})
    text = shapes.rtr_aries(ROUTERS, blue, 4)
    machine, findings = checked(text)
    [found] = [x for x in findings if x.fault]
    assert found.kind == "ports"
    assert "c0-0c0s0a0 has 12" in found.text
    assert machine is not None


def test_holes_are_remarks():
    cells = shapes.xc_cells(4, 2, absent={(0, 0), (1, 0)}, keep=lambda c: c[2][2] != 3)
    cells = [c for c in cells if c[2][2] or c[2][3] in (1, 2)]
    machine, findings = checked(shapes.xtprocadmin(cells))
    assert machine is not None
    assert not [x for x in findings if x.fault]
    text = " ".join(x.text for x in findings if x.kind == "hole")
    assert "absent groups: 1" in text
    assert "blades missing from chassis that have others: 18" in text
    assert "nodes missing from blades that have others: 36" in text


def test_holes_of_a_torus():
    cells = [c for c in shapes.xe_cells(4, 2) if c[2] != (1, 2, 3)]
    cells.remove(cells[40])
    _, findings = checked(shapes.coordinate_file(cells))
    text = " ".join(x.text for x in findings)
    assert "routers without a node: 1" in text
    assert "nodes missing from routers that have others: 1" in text
    assert not [x for x in findings if x.fault]


def test_groups_that_no_link_joins():
    cells = shapes.xc_cells(4, 1, keep=lambda c: c[2][2] in ((1, 2) if c[2][0] else (8, 9)))
    _, findings = checked(shapes.xtprocadmin(cells))
    assert "groups-apart" in [x.kind for x in findings]


def test_nodes_on_no_switch():
    _, findings = checked(shapes.xtprocadmin(XC), "SwitchName=s Nodes=nid[00000-00003]\n")
    [found] = [x for x in findings if x.kind == "no-switch"]
    assert not found.fault
    assert found.text.startswith(f"{len(XC) - 4} compute nodes")


def test_a_cname_that_says_another_place():
    machine, _ = checked(shapes.xtprocadmin(XC))
    cname = machine.cname.copy()
    cname[[4, 8]] = cname[[8, 4]]
    found = [x for x in check(replace(machine, cname=cname)) if x.fault]
    assert [x.kind for x in found] == ["coordinates"] * 2


def test_many_faults_are_counted_not_all_listed():
    cells = [(nid + 9 * (nid % 3 == 0), name, at) for nid, name, at in XC]
    found = faults(shapes.xtprocadmin(cells))
    assert len(found) < 310
    assert "more of kind" in " ".join(x.text for x in found)


def test_a_finding_is_one_line():
    _, findings = checked(shapes.xtprocadmin(XC).replace("0x7 ", "0x8 "))
    text = str(findings[0])
    assert text.startswith("dump0:9: fault: HEX")
    assert findings[0].fault is True
    assert np.all(["\n" not in str(x) for x in findings])
