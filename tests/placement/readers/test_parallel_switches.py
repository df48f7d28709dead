# SPDX-License-Identifier: Apache-2.0
"""Leaves below several cores: one fabric, as a real slurmctld 22.05.8 took it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.nodelist import NodeList
from nidmap.placement.readers import read_text
from nidmap.placement.readers.parallel_switches import join_parallel
from nidmap.placement.records import SwitchRecord
from nidmap.placement.topologies import links
from tests.real_slurm import needs_slurm, real_slurm

#: Six leaves of uneven sizes below two cores.
SIZES = (6, 9, 9, 6, 9, 9)
NAMES = [f"n{k:03d}" for k in range(sum(SIZES))]


def two_cores():
    """Return the file, and the leaf of each node."""
    text, leaf, at = "", {}, 0
    for k, size in enumerate(SIZES):
        nodes = NAMES[at : at + size]
        text += f"SwitchName=leaf{k} Nodes={','.join(nodes)}\n"
        leaf |= dict.fromkeys(nodes, k)
        at += size
    return text + "".join(f"SwitchName=core{k} Switches=leaf[0-5]\n" for k in (1, 2)), leaf


def test_leaves_below_two_cores_are_one_fabric():
    text, leaf = two_cores()
    dump = read_text(text, "topology.conf")
    assert [(f.line, f.kind, f.fault) for f in dump.findings] == [(8, "parallel-switches", False)]
    machine = assemble([dump])
    assert (machine.topology.kind, machine.topology.extents) == ("tree", (6, 9))
    assert [leaf[name] for name in machine.names.tolist()] == machine.coords[:, 0].tolist()
    assert links(machine).count.tolist() == [2] * 6
    assert [note for note in machine.notes if "trees" in note] == []
    assert len(nidmap.plan(machine, 48).rows) == 48
    touched = {leaf[name] for name in nidmap.plan(machine, 15).nodes}
    assert len(touched) == 2


@needs_slurm
@pytest.mark.parametrize("first", ["core1", "core2"])
def test_slurms_own_choice_below_two_cores(first):
    """Slurm's allocations are those of the planner that simulates it."""
    text, _ = two_cores()
    lines = text.splitlines(keepends=True)
    text = "".join(lines[:6] + (lines[6:] if first == "core1" else lines[:5:-1]))
    machine = assemble([read_text(text, "topology.conf")])
    with real_slurm(NAMES, plugin="tree", topology_conf=text, real=0) as slurm:
        shown = slurm.run(["scontrol", "show", "topology"]).stdout
        for count in (6, 8, 15, 30, 48):
            plan = nidmap.plan(machine, count, strategy="slurm-tree")
            said = slurm.run(["sbatch", "--test-only", f"-N{count}", "--wrap=true"]).stderr
            taken = said.split(" on nodes ")[1].split()[0]
            assert sorted(plan.nodes) == sorted(NodeList.parse(taken)), count
    live = assemble([read_text(shown, "scontrol show topology")])
    assert live.coords.tolist() == machine.coords.tolist()
    assert links(live).count.tolist() == [2] * 6


def test_a_fat_tree_of_three_levels_has_pods_below_one_top():
    text = "".join(f"SwitchName=l{p}{k} Nodes=n{p}{k}\n" for p in range(3) for k in range(2))
    text += "".join(f"SwitchName=s{p}{k} Switches=l{p}[0-1]\n" for p in range(3) for k in range(2))
    text += "SwitchName=t0 Switches=s[0-2]0\nSwitchName=t1 Switches=s[0-2]1\n"
    machine = assemble([read_text(text, "topology.conf")])
    assert machine.topology.extents == (3, 2, 1)
    assert machine.topology.levels == ("level2", "level1", "node")
    assert sorted(links(machine).count.tolist()) == [1] * 3 + [2] * 6


def test_a_shortcut_past_a_switch_counts_below_the_lower_one():
    text = "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=mid Switches=a,b\n"
    text += "SwitchName=c Nodes=n3\nSwitchName=top Switches=a,mid,c\n"
    dump = read_text(text, "topology.conf")
    assert {s.name: s.children for s in dump.switches if s.children} == {
        "mid": ("a", "b"),
        "top": ("mid", "c"),
    }


@given(st.data())
def test_nodes_below_a_common_switch_stay_below_one(data):
    """Any two nodes that some switch is above are below one tree, and no others are."""
    leaves = data.draw(st.integers(1, 6))
    rows, names = (
        [(f"l{k}", f"Nodes=n{k}") for k in range(leaves)],
        [f"l{k}" for k in range(leaves)],
    )
    below = {f"l{k}": {f"n{k}"} for k in range(leaves)}
    for level in range(data.draw(st.integers(1, 3))):
        made = []
        for k in range(data.draw(st.integers(1, 3))):
            some = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
            name = f"s{level}x{k}"
            rows.append((name, f"Switches={','.join(some)}"))
            below[name] = set().union(*(below[child] for child in some))
            made.append(name)
        names = data.draw(st.sampled_from([made, [*names, *made]]))
    dump = read_text("".join(f"SwitchName={name} {list_}\n" for name, list_ in rows), "t")
    records = {s.name: s for s in dump.switches}
    parents = [child for s in dump.switches for child in s.children]
    assert len(parents) == len(set(parents))
    parent = {child: s.name for s in dump.switches for child in s.children}
    roots = {}
    for k in range(leaves):
        at = f"l{k}"
        while at in parent:
            assert records[at].level < records[parent[at]].level
            at = parent[at]
        roots[f"n{k}"] = at
    joined = {node: {node} for node in roots}
    for nodes in below.values():
        every = set().union(*(joined[node] for node in nodes))
        for node in every:
            joined[node] = every
    for a in roots:
        assert {b for b in roots if roots[b] == roots[a]} == joined[a]


def test_join_parallel():
    leaves = [SwitchRecord("a", ("n1",)), SwitchRecord("b", ("n2",))]
    cores = [SwitchRecord(name, (), ("a", "b")) for name in ("c1", "c2")]
    joined, _remarks = join_parallel([*leaves, *cores], [[], [], [0, 1], [0, 1]])
    assert [(s.name, s.children, s.uplinks) for s in joined] == [
        ("a", (), 2),
        ("b", (), 2),
        ("c1", ("a", "b"), 1),
    ]
