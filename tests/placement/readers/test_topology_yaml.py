# SPDX-License-Identifier: Apache-2.0
"""topology.yaml against trees at random, the other kinds, and YAML's own traps."""

import pytest
from hypothesis import given

import nidmap
from nidmap.placement.commands import run
from nidmap.placement.errors import ParseError, PlanError, UsageError
from nidmap.placement.load import load_machine
from nidmap.placement.readers import read_text
from nidmap.placement.readers.topology_conf import read as read_conf
from nidmap.placement.readers.topology_yaml import describe_topology, read, sniff
from tests.placement.readers.fabric_shapes import topology_conf, topology_yaml, trees

HEAD = "- topology: t\n  cluster_default: true\n"


@given(trees())
def test_it_says_what_the_conf_says(tree):
    text = topology_yaml(tree)
    dump, conf = read(text, "t"), read_conf(topology_conf(tree), "t")
    for switch, other in zip(dump.switches, conf.switches, strict=True):
        assert (switch.name, switch.nodes, switch.children, switch.level) == (
            other.name,
            other.nodes,
            other.children,
            other.level,
        )
        assert text.splitlines()[switch.line - 1].strip() == f"- switch: {switch.name}"
    assert dump.findings == ()
    assert dump.counts.rows == dump.counts.total == len(text.splitlines())
    assert read_text(text).format == "topology-yaml"


def test_flow_style_quotes_and_comments():
    text = "---\n# ours\n- {topology: 't', tree: {switches: [{switch: \"a\", nodes: 'n[1-2]'}]}}\n"
    dump = read(text, "t")
    assert dump.switches[0].nodes == ("n1", "n2")
    assert (dump.counts.rows, dump.counts.comments) == (2, 1)


def test_one_dictionary_stands_for_a_list_of_one():
    dump = read(HEAD + "  tree:\n    switches:\n      switch: a\n      nodes: n1\n", "t")
    assert dump.switches[0].nodes == ("n1",)


def test_the_default_topology_is_taken_and_the_others_named():
    text = (
        "- topology: one\n  flat: true\n"
        "- topology: two\n  cluster_default: true\n  tree:\n    switches:\n"
        "      - switch: a\n        nodes: n1\n"
        "- topology: three\n  cluster_default: yes\n  ring: {rings: [{ring: r, nodes: n9}]}\n"
    )
    dump = read(text, "t")
    assert dump.fabric == "tree"
    assert [(f.line, f.kind, f.fault) for f in dump.findings] == [
        (1, "other-topology", False),
        (9, "other-topology", False),
    ]
    first = read("- topology: one\n  flat: true\n- topology: two\n  flat: true\n", "t")
    assert (first.fabric, first.nodes) == ("flat", None)


def test_blocks_and_their_sizes():
    text = HEAD + (
        "  block:\n    block_sizes:\n      - 2\n      - 4\n    blocks:\n"
        "      - block: b1\n        nodes: n[1-2]\n      - block: b2\n        nodes: n[3-4]\n"
    )
    dump = read(text, "t")
    assert (dump.fabric, dump.parameters["block_sizes"]) == ("block", (2, 4))
    assert [s.nodes for s in dump.switches] == [("n1", "n2"), ("n3", "n4")]


def test_rings():
    dump = read(HEAD + "  ring:\n    rings:\n      - ring: r\n        nodes: n[3,1]\n", "t")
    assert (dump.fabric, dump.switches[0].nodes) == ("ring", ("n3", "n1"))


def test_a_leaf_with_children_keeps_its_nodes_as_slurm_does():
    text = HEAD + "  tree:\n    switches:\n      - {switch: a, nodes: n1, children: b}\n"
    dump = read(text, "t")
    assert (dump.switches[0].nodes, dump.switches[0].children) == (("n1",), ())


TREE = HEAD + "  tree:\n    switches:\n      - switch: a\n        nodes: n1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t: has no"),
        ("---\n", "t:2: expected a list, got text"),
        ("topology: t\nflat: true\n", "t:1: expected a list, got an object"),
        ("[]\n", "t:1: a list without a topology"),
        ("- flat: true\n", "t:1: object missing required field `topology`"),
        ("- topology: t\n", "t:1: topology t has no kind where one of"),
        ("- topology: t\n  flat: false\n", "t:1: topology t has no kind where one of"),
        (TREE + "  flat: true\n", "t:1: topology t has tree and flat where one of"),
        (TREE + "  colour: red\n", "t:1: object contains unknown field `colour`"),
        (TREE + "        node: n2\n", "t:5: object contains unknown field `node`"),
        (TREE + "        nodes: n2\n", "t:7: key 'nodes' is listed twice"),
        (TREE.replace("nodes: n1", "nodes: [n1, n2]"), "t:6: expected text, got a list"),
        (TREE.replace("nodes: n1", "nodes: n[1-"), "t:5: Nodes"),
        (HEAD + "  tree: switches\n", "t:3: expected an object, got text"),
        (HEAD + "  tree:\n    switches: a\n", "t:4: expected an object, got text"),
        (HEAD + "  tree:\n    switches: []\n", "t:1: topology t is empty"),
        (
            HEAD + "  tree:\n    switches:\n      - nodes: n1\n",
            "t:5: object missing required field `switch`",
        ),
        (
            HEAD + "  torus3d: {toruses: [{name: p, nodes: n}]}\n",
            "t:1: topology t: topology/torus3d is not supported",
        ),
        ("- topology: t\n  flat: true\n---\n- topology: u\n", "t:4: a second YAML document"),
        ("- topology: &a t\n  flat: *a\n", "t:2: alias *a is not supported"),
        ("- topology: t\n\tflat: true\n", "t:2: "),
        ("- topology: 't\n", "t:2: "),
        ("- topology: t\x00\n", "t:1: a character that YAML does not allow"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(ParseError) as raised:
        read(text, "t")
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "- " * 200_000,
        "{a: " * 200_000,
        "- a\n" * 500_000,
        TREE.replace("n1", "n[0-999999999]"),
        "- topology: &a [x]\n" + "".join(f"  k{i}: &b{i} [*a, *a]\n" for i in range(40)),
        "? " * 100_000,
        "- !!python/object/apply:os.system [true]\n",
    ],
)
def test_bombs_are_refused(text):
    with pytest.raises(ParseError):
        read(text, "t")


def test_sniff():
    assert sniff("---\n- topology: t\n")
    assert sniff("-   cluster_default: true\n    topology: t\n")
    assert not sniff("# - topology: t\n")
    assert not sniff('{"Hardware": {}}')


SEVERAL = """\
- topology: ib
  tree:
    switches:
      - {switch: a, children: "a-leaf[1-2]"}
      - {switch: a-leaf1, nodes: "g[0-3]"}
      - {switch: a-leaf2, nodes: "g[4-7]"}
      - {switch: b, children: b-leaf1}
      - {switch: b-leaf1, nodes: "h[0-3]"}
- topology: nvl
  block:
    block_sizes: [4, 8]
    blocks:
      - {block: rack1, nodes: "g[0-3]"}
      - {block: rack2, nodes: "g[4-7]"}
- topology: broken
  tree:
    switches: [{switch: x, children: y}]
- topology: eth
  cluster_default: true
  flat: true
"""


@pytest.fixture
def several(tmp_path):
    path = tmp_path / "topology.yaml"
    path.write_text(SEVERAL)
    return str(path)


def test_one_of_several_topologies_is_chosen_by_name(several):
    ib = load_machine(f"{several},topology=ib")
    assert (ib.switches.kind, len(ib)) == ("tree", 12)
    with pytest.raises(PlanError, match="at most 8 are free under one top switch"):
        nidmap.plan(ib, 9)
    assert len(nidmap.plan(ib, 8).rows) == 8
    nvl = load_machine(f"{several},topology=nvl,latency=2")
    assert (nvl.switches.kind, len(nvl), nvl.switches.block_sizes) == ("block", 8, (4, 8))
    assert nvl.topology.parameters["latency"] == 2.0


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("", "default topology eth is flat and lists no nodes; -m .*,topology=ib takes one of ib "
             r"\(tree, 12 nodes\), nvl \(block, 8 nodes\)"),
        (",topology=IB", "unknown topology 'IB'; choose from ib, nvl, broken, eth"),
        (",topology=broken", "topology.yaml:17: switch x has a child y that is not defined"),
        (",rails=mlx5_0", "rails= goes with lists of cables"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_named(several, word, said):
    with pytest.raises((ParseError, UsageError), match=said):
        load_machine(several + word)


def test_a_name_twice_is_refused():
    with pytest.raises(ParseError, match="t:2: topology a is already defined on line 1"):
        read("- {topology: a, flat: true}\n- {topology: a, flat: true}\n", "t")


@pytest.mark.parametrize(("named", "nodes"), [("ib", 12), ("nvl", 8), ("(null)", None)])
def test_the_topology_of_the_partition_is_taken(
    several, named, nodes, tmp_path, monkeypatch, capfd
):
    (tmp_path / "scontrol").write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        f"*partition*gpu*) echo 'PartitionName=gpu State=UP Topology={named} Nodes=g[0-7]' ;;\n"
        "*) echo 'ClusterName = c'; echo 'SLURM_VERSION = 25.05.1' ;;\n"
        "esac\n"
    )
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_JOB_PARTITION", "gpu")
    code = run(["machine", "show", "-m", several])
    printed = capfd.readouterr()
    if nodes is None:
        assert code == 3
        assert "default topology eth is flat" in printed.err
    else:
        assert code == 0
        assert f"{nodes} nodes" in printed.out
        assert f"topology {named}, that of partition gpu" in printed.err


def test_describe_topology():
    assert describe_topology(read("- topology: all\n  flat: true\n", "topology.yaml")) == "flat"
