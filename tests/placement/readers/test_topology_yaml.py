"""topology.yaml against trees at random, the other kinds, and YAML's own traps."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import ParseError
from placement.readers import read_text
from placement.readers.topology_conf import read as read_conf
from placement.readers.topology_yaml import cell_coords, read, sniff
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
    assert (dump.fabric, dump.parameters["topology"]) == ("tree", "two")
    assert [(f.line, f.kind, f.fault) for f in dump.findings] == [
        (1, "other-topology", False),
        (9, "other-topology", False),
    ]
    first = read("- topology: one\n  flat: true\n- topology: two\n  flat: true\n", "t")
    assert (first.fabric, first.parameters["topology"], first.nodes) == ("flat", "one", None)


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


EXTENT = st.integers(1, 4)


def torus(dims, rest):
    x, y, z = dims
    return HEAD + (
        f"  torus3d:\n    toruses:\n      - name: pod\n        dims: {{x: {x}, y: {y}, z: {z}}}\n"
        + rest
    )


@given(st.tuples(EXTENT, EXTENT, EXTENT))
def test_torus_runs_x_fastest(dims):
    x, y, z = dims
    dump = read(torus(dims, f"        nodes: n[1-{x * y * z}]\n"), "t")
    expected = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    assert [tuple(row) for row in dump.nodes.coords.tolist()] == expected
    assert dump.nodes.name.tolist() == [f"n{i + 1}" for i in range(x * y * z)]
    assert (dump.fabric, dump.parameters["extents"], dump.findings) == ("torus3d", dims, ())
    assert cell_coords(dims).tolist() == [list(row) for row in expected]


@given(st.tuples(EXTENT, EXTENT, EXTENT), st.data())
def test_regions_fill_part_of_a_torus(dims, data):
    """One box anywhere: its nodes stand x fastest from its anchor."""
    anchor = tuple(data.draw(st.integers(0, d - 1)) for d in dims)
    size = tuple(data.draw(st.integers(1, d - a)) for d, a in zip(dims, anchor, strict=True))
    count = size[0] * size[1] * size[2]
    shown = [f"{{x: {p[0]}, y: {p[1]}, z: {p[2]}}}" for p in (anchor, size)]
    rest = "        regions:\n          - anchor: {}\n            dims: {}\n".format(*shown)
    dump = read(torus(dims, rest + f"            nodes: m[1-{count}]\n"), "t")
    assert dump.findings == ()
    ranges = [range(a, a + s) for a, s in zip(anchor, size, strict=True)]
    cells = [(i, j, k) for k, j, i in itertools.product(*reversed(ranges))]
    assert [tuple(row) for row in dump.nodes.coords.tolist()] == cells
    assert dump.nodes.name.tolist() == [f"m{i + 1}" for i in range(count)]


def test_two_regions_are_sorted_into_cell_order():
    rest = (
        "        regions:\n"
        "          - {anchor: {x: 1}, dims: {x: 1, y: 2, z: 1}, nodes: 'b[1-2]'}\n"
        "          - {dims: {x: 1, y: 2, z: 1}, nodes: 'a[1-2]'}\n"
    )
    dump = read(torus((2, 2, 1), rest), "t")
    assert dump.nodes.name.tolist() == ["a1", "b1", "a2", "b2"]
    assert dump.nodes.coords.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]
    assert dump.nodes.line.tolist() == [9, 8, 9, 8]


ONE = "{x: 1, y: 1, z: 1}"


@pytest.mark.parametrize(
    ("dims", "rest", "words"),
    [
        ((4, 4, 2), "        nodes: n[1-8]\n", "8 nodes for the 32 cells of 4x4x2"),
        ((0, 4, 2), "        nodes: n[1-8]\n", "8 nodes for the 0 cells"),
        ((65535, 65535, 65535), "        nodes: n1\n", "1 nodes for the"),
        ((2, 1, 1), "        nodes: n1,n1\n", "a node in two cells"),
        ((1, 1, 1), f"        regions: {{anchor: {ONE}, dims: {ONE}, nodes: m}}\n", "out of the"),
        (
            (2, 1, 1),
            f"        regions: [{{dims: {ONE}, nodes: a}}, {{dims: {ONE}, nodes: b}}]\n",
            "two nodes in one",
        ),
        ((1, 1, 1), "        regions: []\n", "torus pod has no nodes"),
    ],
)
def test_what_makes_no_torus(dims, rest, words):
    with pytest.raises(ParseError, match=words) as raised:
        read(torus(dims, rest), "t")
    assert raised.value.line > 4


def test_the_first_torus_is_the_machine():
    more = f"        nodes: n1\n      - {{name: two, dims: {ONE}, nodes: n2}}\n"
    assert read(torus((1, 1, 1), more), "t").nodes.name.tolist() == ["n1"]


TREE = HEAD + "  tree:\n    switches:\n      - switch: a\n        nodes: n1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t: nothing in it"),
        ("---\n", "t:2: expected a list, got text"),
        ("topology: t\nflat: true\n", "t:1: expected a list, got an object"),
        ("[]\n", "t:1: a list without a topology"),
        ("- flat: true\n", "t:1: object missing required field `topology`"),
        ("- topology: t\n", "t:1: topology t has no kind where one of"),
        ("- topology: t\n  flat: false\n", "t:1: topology t has no kind where one of"),
        (TREE + "  flat: true\n", "t:1: topology t has tree and flat where one of"),
        (TREE + "  colour: red\n", "t:1: object contains unknown field `colour`"),
        (TREE + "        node: n2\n", "t:5: object contains unknown field `node`"),
        (TREE + "        nodes: n2\n", "t:7: key 'nodes' stands twice"),
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
            torus((1, 1, 1), "        nodes: n\n").replace("z: 1", "z: 99999"),
            "t:6: expected a whole number <= 65535",
        ),
        (
            HEAD + "  torus3d: {toruses: [{name: p, nodes: n}]}\n",
            "t:3: object missing required field `dims`",
        ),
        (
            HEAD + "  torus3d: {toruses: [{nodes: n}]}\n",
            "t:3: object missing required field `name`",
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
