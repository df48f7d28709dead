# SPDX-License-Identifier: Apache-2.0
"""Which adapter says where a node is: whatever the order of the lines, and as ``rails=`` says."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.check import check_sources
from nidmap.placement.errors import ParseError, UsageError
from nidmap.placement.geometry.host_rails import HostCables, attach_hosts
from nidmap.placement.load import load_machine, open_sources
from nidmap.placement.network.channel_loads import injection_bandwidth

HOSTS = "abcdef"


def fabric(names, joined, rates=("4xHDR", "4xHDR"), servers=2, stores=1):
    """Return the paragraphs of a fabric: compute leaves 0 and 1, a spine, and storage switches.

    `names` are the adapters of each host to compute and to storage; servers have one adapter.
    """
    switches = {"leaf0": "a0", "leaf1": "a1", "spine": "a2"}
    switches |= {f"store{k}": f"b{k}" for k in range(stores)}
    rows = {name: [] for name in switches}

    def attach(switch, guid, text, rate):
        port = len(rows[switch]) + 1
        rows[switch].append(
            f'[{port}]\t"H-{guid:016x}"[1]({guid:x})\t\t# "{text}" lid {port} {rate}'
        )

    guid = itertools.count(0xC0)
    for k, host in enumerate(HOSTS):
        attach(f"leaf{k // 3}", next(guid), f"{host} {names[0]}", rates[0])
        attach(f"store{k % stores}", next(guid), f"{host} {names[1]}", rates[1])
    for k in range(servers):
        attach("store0", next(guid), f"oss{k} {names[0]}", rates[1])
    pairs = [("leaf0", "spine"), ("leaf1", "spine")]
    pairs += [(f"store{k}", "spine" if joined else "store0") for k in range(joined ^ 1, stores)]
    for a, b in pairs:
        here, there = len(rows[a]) + 1, len(rows[b]) + 1
        rows[a].append(f'[{here}]\t"S-{switches[b]:0>16}"[{there}]\t\t# "{b}" lid 1 4xHDR')
        rows[b].append(f'[{there}]\t"S-{switches[a]:0>16}"[{here}]\t\t# "{a}" lid 1 4xHDR')
    return [
        "\n".join([f'Switch\t40 "S-{key:0>16}"\t\t# "{name}" base port 0 lid 1', *rows[name]])
        for name, key in switches.items()
    ]


def leaf_names(machine):
    """Return the first switch of each host, by name."""
    first = machine.router_names[machine.router[:, 0]].tolist()
    return dict(zip(machine.names.tolist(), first, strict=True))


COMPUTE = {host: f"leaf{k // 3}" for k, host in enumerate(HOSTS)}


@pytest.mark.parametrize(
    "names", [("mlx5_0", "mlx5_1"), ("mlx5_1", "mlx5_0"), ("mlx5_10", "mlx5_9")]
)
@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize(
    "more", [{}, {"servers": 0}, {"rates": ("4xNDR", "4xHDR"), "servers": 0, "stores": 2}]
)
def test_compute_is_told_from_storage_in_any_order_of_the_paragraphs(tmp_path, names, joined, more):
    paragraphs, notes = fabric(names, joined, **more), set()
    for order in list(itertools.permutations(paragraphs))[::7]:
        path = tmp_path / "fabric.txt"
        path.write_text("\n\n".join(order) + "\n")
        machine = load_machine(str(path))
        found = leaf_names(machine)
        assert {host: found[host] for host in HOSTS} == COMPUTE
        notes.add(next(note for note in machine.notes if "placed by" in note))
    assert len(notes) == 1
    text = f"nodes are placed by {names[0]}, not by {names[1]}: "
    assert text in (note := notes.pop())
    assert f"rails={names[1]} selects another" in note


def test_rails_are_chosen_by_the_names_of_adapters(tmp_path):
    path = tmp_path / "fabric.txt"
    path.write_text("\n\n".join(fabric(("mlx5_0", "mlx5_1"), True)) + "\n")
    store = dict.fromkeys(HOSTS, "store0")
    compute = load_machine(f"{path},rails=mlx5_0")
    assert {h: s for h, s in leaf_names(compute).items() if h in HOSTS} == COMPUTE
    assert injection_bandwidth(compute).tolist() == [25.0] * 8
    assert compute.nics.tolist() == [1] * 8
    assert leaf_names(load_machine(f"{path},rails=mlx5_1")) == store
    both = load_machine(f"{path},rails=mlx5_[1,0],latency=2")
    assert {h: s for h, s in leaf_names(both).items() if h in HOSTS} == store
    assert injection_bandwidth(both)[:6].tolist() == [50.0] * 6
    assert both.topology.parameters["latency"] == 2.0
    assert [n for n in both.notes if "placed by" in n] == []
    ports = load_machine(f"{path},rails=mlx5_0:mlx5_[2-3]")
    assert injection_bandwidth(ports).tolist() == [25.0] * 8


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("rails=mlx5_[2-3]", r"no host has an adapter 'mlx5_\[2-3\]'; choose from mlx5_\[0-1\]"),
        ("rails=mlx5_[0", "unmatched bracket"),
        ("topology=ib", "there is nothing to choose from; topology= goes with topology.yaml"),
    ],
)
def test_what_cannot_be_chosen_is_refused(tmp_path, word, said):
    path = tmp_path / "fabric.txt"
    path.write_text("\n\n".join(fabric(("mlx5_0", "mlx5_1"), True)) + "\n")
    with pytest.raises((ParseError, UsageError), match=said):
        load_machine(f"{path},{word}")


@pytest.mark.parametrize("machine", ["shaheen2,rails=hsn0", "slurm:,rails=hsn0"])
def test_rails_of_what_lists_no_cables_are_refused(machine):
    with pytest.raises(UsageError, match="chooses from a file"):
        load_machine(machine)


def test_both_ports_of_an_adapter_are_rails_of_its_name(tmp_path):
    rows = [
        '[1]\t"H-00000000000000c1"[1](c1)\t\t# "n1 mlx5_0" lid 1 4xHDR',
        '[2]\t"H-00000000000000c1"[2](c2)\t\t# "n1 mlx5_0" lid 1 4xHDR',
        '[3]\t"H-00000000000000c3"[1](c3)\t\t# "n1 mlx5_1" lid 1 4xHDR',
    ]
    path = tmp_path / "fabric.txt"
    head = 'Switch\t40 "S-00000000000000a0"\t\t# "leaf" base port 0 lid 1'
    path.write_text("\n".join([head, *rows]) + "\n")
    for word, count in (("mlx5_0", 2), ("mlx5_[0-1]", 3), ("mlx5_1", 1)):
        assert load_machine(f"{path},rails={word}").nics.tolist() == [count]


@given(st.data())
def test_the_order_of_the_cables_alters_nothing(data):
    hosts, switches = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
    rows = data.draw(
        st.lists(
            st.tuples(
                st.integers(0, hosts - 1),
                st.integers(0, switches - 1),
                st.sampled_from(["", "mlx5_0", "mlx5_1", "mlx5_10"]),
                st.sampled_from([6.25, 25.0]),
            ),
            min_size=1,
            max_size=14,
        )
    )
    part = np.array(data.draw(st.lists(st.integers(0, 1), min_size=switches, max_size=switches)))
    made = []
    for cables in (rows, data.draw(st.permutations(rows))):
        columns = [np.array(column) for column in zip(*cables, strict=True)]
        made.append(attach_hosts(HostCables(*columns), part, hosts))
    assert made[0].switch.tolist() == made[1].switch.tolist()
    assert made[0].notes == made[1].notes
    want = [sorted(s for h, s, *_ in rows if h == host) for host in range(hosts)]
    assert [sorted(s for s in row if s >= 0) for row in made[0].switch.tolist()] == want


def test_servers_on_a_storage_network_of_its_own_are_on_no_leaf_of_compute_nodes(tmp_path):
    """They share their switch with clients of all leaves; rates are compared in each network."""
    path = tmp_path / "fabric.txt"
    rates = ("4xHDR", "2xHDR")
    path.write_text("\n\n".join(fabric(("mlx5_0", "mlx5_1"), False, rates=rates)) + "\n")
    machine, findings = check_sources(open_sources(str(path)))
    leaf = dict(zip(machine.names.tolist(), machine.coords[:, 0].tolist(), strict=True))
    assert len({leaf["a"], leaf["d"], leaf["oss0"]}) == 3
    assert (leaf["b"], leaf["f"], leaf["oss1"]) == (leaf["a"], leaf["d"], leaf["oss0"])
    chosen = nidmap.plan(machine, 6)
    assert sorted(machine.names[chosen.rows].tolist()) == [*HOSTS]
    assert [f.text for f in findings if f.kind == "cable-rate"] == []
    (cut_off,) = [f.text for f in findings if f.kind == "no-link"]
    assert (
        cut_off == "router store0 has no link: its 2 nodes, oss0 the first, reach no other router"
    )
