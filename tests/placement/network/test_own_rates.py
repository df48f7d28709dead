# SPDX-License-Identifier: Apache-2.0
"""Each cable of a host has a rate of its own: in times, plans, exports, checks and links-down."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import nidmap
from nidmap.placement import exports
from nidmap.placement.check import check_sources
from nidmap.placement.load import load_machine, open_sources
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.views import to_networkx
from nidmap.rankmap.predict import Job

#: GB/s a direction of what ibnetdiscover prints, by hand: lanes times Gbit/s over 8.
GBS = {"1xHDR": 6.25, "2xHDR": 12.5, "4xHDR": 25.0, "4xQDR": 4.0}


def fabric_lines(rates, ports=False):
    """Print two leaves of hosts n0, n1, … below one spine, each host's cable at its rate."""
    half, lines = len(rates) // 2, []
    for leaf in range(2):
        hosts = [(h, rates[h]) for h in range(leaf * half, (leaf + 1) * half) if rates[h]]
        lines.append(f'Switch\t40 "S-00000000000000a{leaf}"\t\t# "leaf{leaf}" base port 0 lid 1')
        for h, rate in hosts:
            lines.append(
                f'[{h + 1}]\t"H-00000000000000c{h}"[1](c{h})\t\t# "n{h} mlx5_0" lid 9 {rate}'
            )
        lines.append(f'[30]\t"S-00000000000000b0"[{leaf + 1}]\t\t# "spine" lid 5 4xHDR')
    lines.append('Switch\t40 "S-00000000000000b0"\t\t# "spine" base port 0 lid 5')
    lines += [f'[{k + 1}]\t"S-00000000000000a{k}"[30]\t\t# "leaf{k}" lid 1 4xHDR' for k in (0, 1)]
    return "\n".join(lines) + "\n"


def port_lines(rates):
    """Print the same as ``ibnetdiscover --ports`` does."""
    half, lines = len(rates) // 2, []
    for h, rate in enumerate(rates):
        leaf, (width, speed) = h // half, (rate[:2], rate[2:])
        names = f"( 'n{h} mlx5_0' - 'leaf{leaf}' )"
        lines.append(f"CA 9 1 0x00000000000000c{h} {width} {speed} - SW 1 {h + 1} "
                     f"0x00000000000000a{leaf} {names}")  # fmt: skip
    names = "( 'leaf{0}' - 'spine' )"
    row = "SW 1 30 0x00000000000000a{0} 4x HDR - SW 5 {0} 0x00000000000000b0 " + names
    lines += [row.format(leaf) for leaf in (0, 1)]
    return "\n".join(lines) + "\n"


SLOW = ["4xHDR", "1xHDR", "4xHDR", "4xHDR", *["4xHDR"] * 4]
MIXED = [*["2xHDR"] * 4, *["4xHDR"] * 4]


@pytest.fixture
def fabric(tmp_path):
    def write(rates, name="fabric.txt", lines=fabric_lines):
        (tmp_path / name).write_text(lines(rates))
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize("lines", [fabric_lines, port_lines])
@pytest.mark.parametrize("rates", [SLOW, MIXED, ["1xHDR", "4xQDR", "2xHDR", "4xHDR"]])
def test_a_node_sends_what_its_own_cable_carries(fabric, rates, lines):
    machine = load_machine(fabric(rates, lines=lines))
    assert injection_bandwidth(machine).tolist() == [GBS[rate] for rate in rates]
    pair = np.array([0, 1])
    for a in range(len(rates) - 1):
        nodes = machine.names[pair + a].tolist()
        time = nidmap.predict(machine, ",".join(nodes), Job("alltoall", bytes=1e9)).time_s
        assert time == pytest.approx(1 / min(GBS[rates[a]], GBS[rates[a + 1]]), rel=0.01)


def test_exports_and_the_summary_have_each_rate(fabric):
    machine = load_machine(fabric(SLOW))
    rows = csv.reader(io.StringIO(exports.write(machine, "links-csv")))
    assert {row[0]: float(row[4]) for row in rows if row[0].startswith("n")} == {
        f"n{h}": GBS[rate] for h, rate in enumerate(SLOW)
    }
    graph = to_networkx(machine)
    assert graph.edges["n1", "leaf0"]["bandwidth"] == 6.25
    assert '"bandwidth": 6.25' in exports.write(machine, "edgelist")
    data = json.loads(exports.write(machine, "node-link"))
    assert sorted(e["bandwidth"] for e in data["edges"] if e["class"] == "up0")[0] == 6.25


@pytest.mark.parametrize("strategy", ["compact", "spread", "auto"])
@pytest.mark.parametrize(("rates", "count"), [(SLOW, 3), (SLOW, 7), (MIXED, 4)])
def test_a_plan_leaves_slow_cables_to_others_where_enough_are_free(fabric, rates, count, strategy):
    machine = load_machine(fabric(rates))
    job = Job("alltoall") if strategy == "auto" else None
    plan = nidmap.plan(machine, count, strategy=strategy, job=job)
    assert injection_bandwidth(machine)[plan.rows].tolist() == [25.0] * count
    assert any("left out: " in text and "GB/s a cable" in text for text in plan.warnings)


def test_a_plan_takes_them_where_it_has_to(fabric):
    machine = load_machine(fabric(SLOW))
    assert len(nidmap.plan(machine, 8).rows) == 8
    assert 1 in nidmap.plan(machine, 3, include=[1]).rows
    assert nidmap.plan(machine, 3, strategy="nid-order").rows.tolist() == [0, 1, 2]
    assert nidmap.plan(machine, 3, strategy="slurm-none").rows.tolist() == [0, 1, 2]


def test_a_check_names_the_slow_ones(fabric):
    for rates, said in ((SLOW, ["n1: a cable of 6.25 GB/s, most have 25"]), (["4xHDR"] * 8, [])):
        _, findings = check_sources(open_sources(fabric(rates)))
        assert [f.text for f in findings if f.kind == "cable-rate"] == said


@pytest.mark.parametrize("lines", [fabric_lines, port_lines])
def test_a_check_names_slow_cables_between_switches(fabric, lines):
    """One that has trained at fewer lanes holds up all that crosses it."""
    path = Path(fabric(["4xHDR"] * 8, lines=lines))
    text = path.read_text()
    for end in ('[2]\t\t# "spine" lid 5 ', '[30]\t\t# "leaf1" lid 1 '):
        text = text.replace(f"{end}4x", f"{end}1x")
    path.write_text(text.replace("a1 4x HDR - SW 5", "a1 1x HDR - SW 5"))
    _, findings = check_sources(open_sources(str(path)))
    (said,) = [f for f in findings if f.kind == "cable-rate"]
    assert said.text == "leaf1-spine: a cable of 6.25 GB/s, most up1 have 25"
    assert (said.fault, said.hint) == (False, "degraded, or another generation of switches?")


@pytest.mark.parametrize("lines", [fabric_lines, port_lines])
def test_links_down_compares_the_cables_of_hosts(fabric, lines):
    whole = fabric(["4xHDR"] * 8)
    today = fabric(SLOW, "today.txt", lines)
    machine = load_machine(whole, f"links-down:{today}")
    assert injection_bandwidth(machine).tolist() == [GBS[rate] for rate in SLOW]
    assert "0 links down, 1 degraded" in machine.notes[-1]


def test_a_host_that_todays_list_lacks_is_down(fabric):
    whole, gone = (
        fabric(["4xHDR"] * 8),
        fabric([None if k == 5 else "4xHDR" for k in range(8)], "b"),
    )
    machine = load_machine(whole, f"links-down:{gone}")
    assert machine.state.tolist() == ["down" if k == 5 else "up" for k in range(8)]
    assert "1 link down, 0 degraded; no cable left of n5" in machine.notes[-1]
    assert 5 not in nidmap.plan(machine, 7).rows


def test_a_line_may_name_a_node_and_its_switch(fabric, tmp_path):
    (tmp_path / "down.txt").write_text("n2 leaf0 2.5\nleaf1 n4\n")
    machine = load_machine(fabric(["4xHDR"] * 8), f"links-down:{tmp_path / 'down.txt'}")
    assert injection_bandwidth(machine)[[1, 2, 3]].tolist() == [25.0, 2.5, 25.0]
    assert machine.state[4] == "down"


def test_a_site_scales_every_cable(fabric, tmp_path):
    site = tmp_path / "site.toml"
    site.write_text('[bandwidth]\nup0 = { value = 23, mark = "measured", source = "a test" }\n')
    machine = load_machine(fabric(SLOW), str(site))
    wanted = [23 * GBS[rate] / 25 for rate in SLOW]
    assert injection_bandwidth(machine).tolist() == pytest.approx(wanted)
