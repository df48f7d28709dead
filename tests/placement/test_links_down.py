# SPDX-License-Identifier: Apache-2.0
"""Links that are down or degraded: routes, loads and plans without them; wrong lines are named."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import ParseError, PlanError
from nidmap.placement.load import load_machine
from nidmap.placement.network import Demand, channels, hops, loads, routings
from nidmap.placement.options import with_figures
from nidmap.placement.topologies import links, router_names
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.predict import Job
from tests.writers import write

SPECS = (
    "dragonfly:groups=3,chassis=2,blades=3,nodes=1",
    "dragonfly+:groups=3,leaves=2,spines=2,nodes=1",
    "torus:4x3,bw=2",
    "fattree:leaf=2,leaves=3,spines=3",
)


def down(tmp_path, spec, text):
    path = tmp_path / "down.txt"
    path.write_text(text)
    return load_machine(spec, f"links-down:{path}")


@pytest.mark.parametrize("spec", SPECS)
@given(data=st.data())
@settings(deadline=None, max_examples=6)
def test_routes_avoid_what_is_down(tmp_path_factory, spec, data):
    whole = load_machine(spec)
    names, found = router_names(whole), links(whole)
    row = data.draw(st.integers(0, len(found) - 1))
    a, b = str(names[found.a[row]]), str(names[found.b[row]])
    cables = sum(int(found.count[k]) for k in range(len(found)) if same(found, k, row))
    folder = tmp_path_factory.mktemp("down")
    machine = down(folder, spec, f"# a note\n{b} {a}\n" * cables)
    pairs = list(zip(links(machine).a.tolist(), links(machine).b.tolist(), strict=True))
    assert (int(found.a[row]), int(found.b[row])) not in pairs
    demand = Demand.of(machine, Traffic.everyone(np.arange(len(machine)), 1, 1.0))
    got = loads(machine, demand)
    joined = {(int(x), int(y)) for x, y in zip(found.a[[row]], found.b[[row]], strict=True)}
    for source, target in zip(got.channels.source, got.channels.target, strict=True):
        assert (min(source, target), max(source, target)) not in joined
    if machine.topology.kind != "fattree":  # there only leaves send to each other
        far = hops(machine, found.a[[row]].astype(np.int64), found.b[[row]].astype(np.int64))
        assert far.sum() >= 2
    assert f"{cables} link{'s' if cables > 1 else ''} down, 0 degraded" in machine.notes[-1]


def same(found, k, row):
    return found.a[k] == found.a[row] and found.b[k] == found.b[row]


def test_a_degraded_link_has_what_is_left(tmp_path):
    machine = down(tmp_path, "fattree:leaf=2,leaves=2,spines=2,links=2,bw=10", "leaf0 spine1 2.5\n")
    assert sorted(links(machine).bandwidth.tolist()) == [12.5, 20.0, 20.0, 20.0]
    assert links(machine).count.tolist() == [2] * 4
    gbs = dict(zip(channels(machine).names().tolist(), channels(machine).bandwidth, strict=True))
    slow = {"leaf0->spine1 up1", "spine1->leaf0 down1"}
    assert {name for name, found in gbs.items() if found == 2.5} == slow
    assert {found for name, found in gbs.items() if name not in slow} == {10.0}


@pytest.mark.parametrize(
    ("one", "other", "left", "said"),
    [
        ("leaf0 spine1\n", "spine1 leaf0\n", [10.0], "1 link down, 0 degraded"),
        ("leaf0 spine1\n", "leaf0 spine1 2.5\n", [10.0], "1 link down, 0 degraded"),
        ("leaf0 spine1 4\n", "leaf0 spine1 2.5\n", [2.5, 10.0], "0 links down, 1 degraded"),
        ("leaf0 spine1\n", "leaf0 spine1\nleaf0 spine1 4\n", [4.0], "1 link down, 1 degraded"),
        ("leaf0 spine1\n" * 2, "leaf0 spine1\n", [], "2 links down, 0 degraded"),
    ],
)
def test_a_cable_that_two_files_name_is_one(tmp_path, one, other, left, said):
    files = tmp_path / "one.txt", tmp_path / "other.txt"
    for path, text in zip(files, (one, other), strict=True):
        path.write_text(text)
    spec = "fattree:leaf=2,leaves=2,spines=2,links=2,bw=10"
    machine = load_machine(spec, *(f"links-down:{path}" for path in files))
    found = channels(machine, "single")
    here = (found.source == 0) & (found.target == 3)
    assert sorted(found.bandwidth[here].tolist()) == left
    assert said in machine.notes[-1]


@pytest.mark.parametrize("strategy", ["compact", "spread", "nid-order", "random"])
def test_a_node_that_is_cut_off_is_left_out_of_a_plan(tmp_path, strategy):
    path = tmp_path / "down.txt"
    path.write_text("x0y0 x1y0\nx0y0 x3y0\nx0y0 x0y1\nx0y0 x0y3\n")
    machine = load_machine("torus:4x4", f"links-down:{path}")
    found = nidmap.plan(machine, 15, strategy=strategy)
    assert sorted(found.rows.tolist()) == [*range(1, 16)]
    assert "nid00000 left out" in found.warnings[0]
    with pytest.raises(PlanError, match="16 nodes wanted, 15 free"):
        nidmap.plan(machine, 16, strategy=strategy)
    assert 0 in nidmap.plan(machine, 4, strategy="slurm-none").rows


def test_an_order_of_the_ranks_goes_round_it(tmp_path):
    machine = down(tmp_path, "torus:4,bw=1", "x0 x1\nx2 x3\n")
    plan = nidmap.plan(with_figures(machine, latency=0), 2, job=Job("ring"), include=[0])
    assert plan.nodes.fold() == "nid[00000,00003]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x0y0 x1y0\nx0y0 x9y9\n", r":2: torus:4x3 has no router x9y9; there are x0y0 to x3y2"),
        ("x0y0 x2y0\n", ":1: no link joins x0y0 and x2y0"),
        ("x0y0 x1y0\nx1y0 x0y0\n", ":2: x1y0 and x0y0 have no further links"),
        ("x0y0\n", ":1: 'x0y0' is not a link; two routers"),
        ("x0y0 x1y0 fast\n", ":1: 'x0y0 x1y0 fast' is not a link"),
        ("x0y0 x1y0 -1\n", ":1: 'x0y0 x1y0 -1' is not a link"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, text, said):
    with pytest.raises(ParseError, match=said):
        down(tmp_path, "torus:4x3", text)


FABRIC = """Switch\t36 "S-00000000000000aa"\t\t# "leaf1" base port 0 lid 4 lmc 0
[1]\t"H-0000000000000001"[1](01) \t\t# "node1 HCA-1" lid 7 4xEDR
[2]\t"S-00000000000000cc"[1]\t\t# "spine" lid 9 4xEDR
[3]\t"S-00000000000000cc"[2]\t\t# "spine" lid 9 4xEDR
Switch\t36 "S-00000000000000bb"\t\t# "leaf2" base port 0 lid 5 lmc 0
[1]\t"H-0000000000000002"[1](02) \t\t# "node2 HCA-1" lid 8 4xEDR
[2]\t"S-00000000000000cc"[3]\t\t# "spine" lid 9 4xEDR
Switch\t36 "S-00000000000000cc"\t\t# "spine" base port 0 lid 9 lmc 0
[1]\t"S-00000000000000aa"[2]\t\t# "leaf1" lid 4 4xEDR
[2]\t"S-00000000000000aa"[3]\t\t# "leaf1" lid 4 4xEDR
[3]\t"S-00000000000000bb"[2]\t\t# "leaf2" lid 5 4xEDR
"""


def test_links_alone_are_no_machine():
    with pytest.raises(ParseError, match=r"down\.txt: only adds to a machine"):
        load_machine("links-down:down.txt")


def test_a_list_of_todays_links_says_what_is_down(tmp_path):
    whole, today = tmp_path / "whole.txt", tmp_path / "today.txt"
    whole.write_text(FABRIC)
    gone = [line for line in FABRIC.splitlines() if "[3]\t" not in line or "leaf2" in line]
    slow = "\n".join(gone).replace('"leaf2" lid 5 4xEDR', '"leaf2" lid 5 4xQDR')
    slow = slow.replace('[2]\t"S-00000000000000aa"[3]\t\t# "leaf1" lid 4 4xEDR\n', "")
    today.write_text(slow.replace('[3]\t\t# "spine" lid 9 4xEDR', '[3]\t\t# "spine" lid 9 4xQDR'))
    machine = load_machine(str(whole), f"links-down:{today}")
    before = links(load_machine(str(whole)))
    assert before.count.tolist() == [2, 1]
    assert links(machine).count.tolist() == [1, 1]
    assert links(machine).bandwidth[1] < before.bandwidth[1]
    assert "1 link down, 1 degraded" in machine.notes[-1]


def test_todays_dump_of_a_dragonfly_plus_counts_under_every_routing(tmp_path):
    spec = "dragonfly+:groups=4,leaves=3,spines=3,nodes=2,injection=25"
    listed = down(tmp_path, spec, "g0leaf0 g0spine0\ng0spine1 g1spine1\ng2leaf1 g2spine0 12.5\n")
    today = tmp_path / "today.txt"
    today.write_text(write(listed, "ibnetdiscover"))
    found = load_machine(spec, f"links-down:{today}")
    assert "2 links down, 1 degraded" in found.notes[-1]
    demand = [Demand.of(one, Traffic.everyone(np.arange(24), 1, 1e9)) for one in (listed, found)]
    for routing in routings(listed):
        want, got = loads(listed, demand[0], routing), loads(found, demand[1], routing)
        np.testing.assert_allclose(got.seconds(), want.seconds())
        gone = {"g0leaf0->g0spine0 local", "g0spine1->g1spine1 global"}
        assert not gone & set(got.channels.names().tolist())


def bundle_of(*rates):
    """Return a list of two leaves with four hosts each, joined by a cable of each rate."""
    lines = []
    for leaf, other in ((1, 2), (2, 1)):
        lines.append(f'Switch\t36 "S-000000000000000{leaf}"\t\t# "leaf{leaf}" base port 0 lid 4')
        lines += [
            f'[{n}]\t"H-00000000000000{leaf}{n}"[1](1) \t\t# "node{leaf}{n} HCA-1" lid 7 4xEDR'
            for n in range(4)
        ]
        lines += [
            f'[{9 + k}]\t"S-000000000000000{other}"[{9 + k}]\t\t# "leaf{other}" lid 9 {rate}'
            for k, rate in enumerate(rates)
        ]
    return "\n".join((*lines, ""))


def test_a_slow_cable_of_a_bundle_has_its_share_of_the_bytes(tmp_path):
    sound, slow = tmp_path / "sound.txt", tmp_path / "slow.txt"
    sound.write_text(bundle_of(*["4xEDR"] * 4))
    slow.write_text(bundle_of("4xEDR", "4xDDR", "4xEDR", "4xEDR"))
    degraded = tmp_path / "degraded.txt"
    degraded.write_text("leaf1 leaf2 2.0\n")
    fabrics = (str(slow),), (str(sound), f"links-down:{slow}"), (sound, f"links-down:{degraded}")
    for fabric in fabrics:
        machine = load_machine(*map(str, fabric))
        demand = Demand.of(machine, Traffic.everyone(np.arange(8), 1, 1e6))
        for routing in routings(machine):
            # 16 MB cross each way, by four cables; 4xDDR is 4 lanes of 4 Gbit/s, 2 GB/s
            assert loads(machine, demand, routing).worst().seconds == pytest.approx(4e6 / 2e9)
    same = load_machine(str(slow), f"links-down:{slow}")
    assert "0 links down, 0 degraded" in same.notes[-1]


def test_the_routers_of_a_dragonfly_plus_deal_bytes_out_to_slow_cables_too(tmp_path):
    spec = "dragonfly+:groups=2,leaves=2,spines=1,nodes=2,links=3,injection=100,local-bw=10"
    machine = down(tmp_path, spec, "g0leaf0 g0spine0 2.5\n")
    demand = Demand.of(machine, Traffic.of(np.array([0]), np.array([2]), 9e9))
    assert loads(machine, demand, "minimal").worst().seconds == pytest.approx(3e9 / 2.5e9)


def test_routers_that_choose_for_each_packet_use_what_all_cables_have(tmp_path):
    spec = "dragonfly:groups=1,chassis=2,blades=1,nodes=1,black=15,injection=100"
    text = "g0c0b0 g0c1b0 1\n"
    machine = down(tmp_path, spec, text)
    left = float(links(machine).bandwidth[0])
    demand = Demand.of(machine, Traffic.of(np.array([0]), np.array([1]), 1e9))
    assert left == pytest.approx(15 - 15 / links(machine).count[0] + 1)
    assert loads(machine, demand, "minimal").worst().seconds == pytest.approx(1 / left)


def test_a_site_scales_every_cable_of_a_bundle(tmp_path):
    slow, site = tmp_path / "slow.txt", tmp_path / "site.toml"
    slow.write_text(bundle_of("4xEDR", "4xSDR", "4xEDR"))
    site.write_text('[bandwidth]\nib = { value = 25, mark = "assumed", source = "a guess" }\n')
    machine = load_machine(str(slow), str(site))
    assert sorted(channels(machine).bandwidth.tolist()) == [2.0, 2.0, *[25.0] * 4]


@pytest.mark.parametrize("strange", ["hosts alone", "another machine"])
def test_a_list_without_one_link_of_the_machine_is_refused(tmp_path, strange):
    whole, today = tmp_path / "whole.txt", tmp_path / "today.txt"
    whole.write_text(FABRIC)
    hosts = "\n".join(line for line in FABRIC.splitlines() if "spine" not in line)
    today.write_text(hosts if strange == "hosts alone" else bundle_of("4xEDR"))
    with pytest.raises(ParseError, match=r"today\.txt: no link of .* is in this list; is it"):
        load_machine(str(whole), f"links-down:{today}")
