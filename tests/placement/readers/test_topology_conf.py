# SPDX-License-Identifier: Apache-2.0
"""topology.conf against trees made by hand and at random, and against what Slurm refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.check import check_sources
from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import ParseError
from nidmap.placement.load import open_sources
from nidmap.placement.readers import read_text
from nidmap.placement.readers.topology_conf import read, sniff, statements
from tests.placement.readers.fabric_shapes import Tree, topology_conf, trees
from tests.real_slurm import needs_slurm, real_slurm


def matches(dump, tree):
    """Assert that a dump says what a tree does."""
    assert dump.findings == ()
    assert dump.fabric == "tree"
    assert [s.name for s in dump.switches] == [name for name, _, _ in tree.switches]
    for switch, (name, nodes, children) in zip(dump.switches, tree.switches, strict=True):
        assert switch.nodes == nodes
        assert switch.children == children
        assert switch.level == tree.level(name)
    assert dump.nodes.name.tolist() == tree.nodes
    leaf = {n: name for name, nodes, _ in tree.switches for n in nodes}
    assert dump.nodes.router.tolist() == [leaf[n] for n in tree.nodes]


@given(trees())
def test_any_tree(tree):
    text = topology_conf(tree)
    dump = read(text, "topology.conf")
    matches(dump, tree)
    assert [s.line for s in dump.switches] == list(range(1, len(tree.switches) + 1))
    assert dump.counts.rows == dump.counts.total == len(tree.switches)
    assert read_text(text).format == "topology-conf"


KEYS = st.sampled_from([str, str.lower, str.upper])


@given(trees(), st.data())
def test_slurms_other_spellings(tree, data):
    """Case, blanks around =, quotes, comments, blank lines and continued lines change nothing."""
    text, lines = "# made by hand\n\n", 2
    for name, nodes, children in tree.switches:
        case = data.draw(KEYS)
        gap = data.draw(st.sampled_from(["", " ", "\t"]))
        broken = data.draw(st.booleans())
        listed = ",".join(nodes or children)
        listed = f'"{listed}"' if data.draw(st.booleans()) else listed
        word = case("Nodes") if nodes else case("Switches")
        text += f"  {case('SwitchName')}{gap}={gap}{name}" + (" \\\n   " if broken else " ")
        text += f"{word}={listed} {case('LinkSpeed')}=7 # of {name}\n"
        lines += 1 + broken
        if data.draw(st.booleans()):
            text += "   # another\n \t\n"
            lines += 2
    dump = read(text, "t")
    matches(dump, tree)
    assert dump.counts.total == lines
    rows = [x for x in text.splitlines() if x.strip() and not x.lstrip().startswith("#")]
    assert dump.counts.rows == len(rows)


def test_a_statement_stands_on_its_first_line():
    dump = read("# one\nSwitchName=s0 \\\n Nodes=a\nSwitchName=s1 Switches=s0\n", "t")
    assert [s.line for s in dump.switches] == [2, 4]
    assert dump.nodes.line.tolist() == [2]


def test_escaped_hash_is_no_comment_and_escaped_backslash_no_continuation():
    with pytest.raises(ParseError, match="t:1: Nodes"):
        read("SwitchName=s0 Nodes=a\\#b\n", "t")
    with pytest.raises(ParseError, match="t:1"):
        read("SwitchName=s0 Nodes=a\\\\\nSwitchName=s1 Nodes=b\n", "t")


def test_lists_are_expanded_in_order():
    dump = read("SwitchName=s0 Nodes=n[3,1-2],m[01-02]x[1,3]\n", "t")
    assert dump.switches[0].nodes == ("n3", "n1", "n2", "m01x1", "m01x3", "m02x1", "m02x3")


def test_an_empty_leaf_is_a_leaf():
    dump = read("SwitchName=s0\nSwitchName=s1 Nodes=a\nSwitchName=top Switches=s[0-1]\n", "t")
    assert [(s.level, s.nodes) for s in dump.switches] == [(0, ()), (0, ("a",)), (1, ())]


def test_uneven_tree_without_a_common_root():
    tree = Tree(
        (
            ("hall", (), ("row", "lone")),
            ("row", (), ("a", "b")),
            ("a", ("n1", "n2"), ()),
            ("b", ("n3",), ()),
            ("lone", ("n4",), ()),
            ("other", ("n5",), ()),
        )
    )
    matches(read(topology_conf(tree), "t"), tree)


def test_blocks():
    text = "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-9]\nBlockSizes=4,8,16\n"
    dump = read(text, "t")
    assert (dump.fabric, dump.parameters) == ("block", {"block_sizes": (4, 8, 16)})
    assert [(s.name, len(s.nodes), s.level) for s in dump.switches] == [("b1", 4, 0), ("b2", 5, 0)]
    assert dump.findings == ()
    assert "block_sizes" not in read("BlockName=b1 Nodes=n[1-4]\n", "t").parameters


def test_rings():
    dump = read("RingName=r1 Nodes=n[4,2,3]\nRingName=r2 Nodes=n[5-20]\n", "t")
    assert (dump.fabric, dump.switches[0].nodes) == ("ring", ("n4", "n2", "n3"))
    assert not dump.findings


GOOD = """\
SwitchName=a Nodes=n[1-2]
SwitchName=b Nodes=n[3-4]
SwitchName=top Switches=a,b
"""


def test_a_node_below_two_leaves_counts_below_the_first():
    text = "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[3-6]\nSwitchName=top Switches=a,b\n"
    dump = read(text, "t")
    assert {s.name: s.nodes for s in dump.switches[:2]} == {
        "a": ("n1", "n2", "n3", "n4"),
        "b": ("n5", "n6"),
    }
    assert [(f.line, f.kind, f.fault) for f in dump.findings] == [(2, "two-leaves", False)]
    said = "node n3 and 1 more are below b and, on line 1, below a; a, the first, counts; Slurm "
    machine = assemble([dump])
    assert [note for note in machine.notes if said in note]
    assert machine.coords[:, 0].tolist() == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "SwitchName=c Switches=a9\n", "t:4: switch c has a child a9 that is not defined"),
        (GOOD + "SwitchName=c Switches=c\n", "t:4: the switches are not a tree: c are below"),
        (
            GOOD + "SwitchName=c Switches=d\nSwitchName=d Switches=c\n",
            "t:4: the switches are not a tree: c, d are below",
        ),
        (GOOD + "SwitchName=a Nodes=n9\n", "t:4: a is already defined on line 1"),
    ],
)
def test_what_makes_no_machine(text, message):
    with pytest.raises(ParseError) as raised:
        read(text, "t")
    assert str(raised.value).startswith(message)


def test_depth_is_limited_as_in_slurm():
    def chain(levels):
        rows = "".join(f"SwitchName=s{i} Switches=s{i + 1}\n" for i in range(levels))
        return read(rows + f"SwitchName=s{levels} Nodes=n\n", "t").findings

    assert chain(20) == ()
    with pytest.raises(ParseError, match=r"^t:1: switch s0 is more than 20 levels"):
        chain(21)


def test_repeats_in_one_list_are_one():
    dump = read("SwitchName=a Nodes=n[1-2],n1\nSwitchName=top Switches=a,a\n", "t")
    assert dump.switches[0].nodes == ("n1", "n2")
    assert dump.switches[1].children == ("a",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t: has no"),
        ("# only\n\n", "t: has no"),
        ("SwitchName=a Nodes=n[1-\n", "t:1: Nodes: 'n[1-' has an unmatched bracket"),
        ("SwitchName=a Nodes=,\n", "t:1: Nodes: ',' lists no names"),
        ("SwitchName=a Nodes=ALL\n", "t:1: a has Nodes=ALL, which names no node here"),
        ("SwitchName=a Nodes=n1*3\n", "t:1: Nodes: 'n1*3' is not a list of names"),
        (GOOD + "SwitchName=c Node=n9\n", "t:4: unknown keyword 'node'"),
        (GOOD + "Nodes=n9 SwitchName=c\n", "t:4: unknown keyword 'nodes'"),
        (GOOD + "SwitchName=c Nodes=n9 junk\n", "t:4: 'junk' is not Key=value"),
        (GOOD + "hello\n", "t:4: 'hello' is not Key=value"),
        (
            GOOD + "BlockName=c Nodes=n9\n",
            "t:4: a block topology here and a tree topology on line 1",
        ),
        (GOOD + "Include other.conf\n", "t:4: Include is not supported"),
        ("BlockSizes=4\n", "t:1: no block of its own"),
        ("BlockName=c Nodes=a\nBlockSizes=4,x\n", "t:2: 'x' is not a block size"),
        ("BlockName=c Nodes=a\nBlockSizes=0\n", "t:2: '0' is not a block size"),
        (
            GOOD + "2 c0-0c0s1n0 compute 0 0 1\n",
            "t:4: two formats in one file: this line looks like",
        ),
        ("SwitchName=a\x1b[31m Nodes=n[\n", "t:1: Nodes"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(ParseError) as raised:
        read(text, "t")
    assert str(raised.value).startswith(message)
    assert raised.value.exit_code == 3


@pytest.mark.parametrize(
    "text",
    [
        "SwitchName=a Nodes=n[0-999999999]\n",
        "SwitchName=a Nodes=n[0-9999][0-9999]\n",
        "SwitchName=a Nodes=" + "n[0-1]" + "[0-1]" * 20_000 + "\n",
        "SwitchName=a Nodes=" + "[" * 2_000_000 + "\n",
        "".join(f"SwitchName=a{i} Nodes=n{i}x[0-99999]\n" for i in range(30)),
        "".join(f"SwitchName=a{i} Switches=b[0-65000]\n" for i in range(40)),
        "SwitchName=a\n" * 140_000,
        "SwitchName=a" + " Nodes=a" * 100_000 + "\n",
        "\n" * 2_100_000,
    ],
)
def test_bombs_are_refused(text):
    with pytest.raises(ParseError):
        read(text, "t")


def test_a_chain_as_long_as_slurm_can_count_is_no_recursion():
    rows = "".join(f"SwitchName=s{i} Switches=s{i + 1}\n" for i in range(20_000))
    with pytest.raises(ParseError, match="levels"):
        read(rows + "SwitchName=s20000 Nodes=n\n", "t")


def test_sniff_looks_for_a_statement_at_the_start_of_a_line():
    assert sniff("# ours\n\tblockname = b Nodes=n1\n")
    assert not sniff("# SwitchName=s0\n")
    assert not sniff("x SwitchName=s0\n")


@pytest.mark.parametrize(
    "text",
    [
        "SwitchName=a Nodes=m[0-\u00b20]\n",
        "\\\x0b\\",
        "\\",
        "\x0b\n",
        "include\x0bx",
        "Include a\n",
    ],
)
def test_what_fuzzing_found_is_refused_in_one_line(text):
    with pytest.raises(ParseError, match=r"^x(:1)?: ") as caught:
        read(text, "x")
    assert str(caught.value).isprintable()


#: Files of which a machine can be made, and what a slurmctld refuses in them.
REFUSED = [
    ("SwitchName=a Nodes=n1 Switches=b\nSwitchName=b Nodes=n2\n", 1, "switch a: it has both"),
    ("SwitchName=a\nSwitchName=b Nodes=n2\n", 1, "switch a: it has neither"),
    ("SwitchName=a\nSwitchName=b Nodes=n2\nSwitchName=t Switches=a,b\n", 1, "a: it has neither"),
    ("SwitchName=b Nodes=n2\nSwitchName=a Nodes=n1 LinkSpeed=fast\n", 2, "LinkSpeed 'fast'"),
    ("BlockName=a Nodes=n[1-4]\nBlockName=b Nodes=n[5-8]\nBlockSizes=4,6\n", 3, "size 6: not"),
    ("RingName=r Nodes=n[1-17]\n", 1, "ring r: it has 17 nodes, more than 16"),
]


def checked(text, tmp_path):
    (tmp_path / "topology.conf").write_text(text)
    machine, findings = check_sources(open_sources(str(tmp_path / "topology.conf")))
    return machine, [(f.line, f.text) for f in findings if f.fault]


@pytest.mark.parametrize(("text", "line", "said"), REFUSED)
def test_a_check_says_what_slurmctld_refuses(text, line, said, tmp_path):
    machine, faults = checked(text, tmp_path)
    assert machine is not None
    assert [at for at, _ in faults] == [line]
    assert "slurmctld refuses " in faults[0][1]
    assert said in faults[0][1]


TAKEN = [
    "SwitchName=s[0-1] Nodes=n1\n",
    "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[2-3]\n",
    "SwitchName=a Nodes=n1\nSwitchName=b Switches=a\nSwitchName=c Switches=a,b\n",
    "SwitchName=a Nodes=n1 LinkSpeed=0x10\nSwitchName=b Switches=a,a LinkSpeed=UNLIMITED\n",
]


@pytest.mark.parametrize("text", TAKEN)
def test_what_slurmctld_takes_has_no_fault(text, tmp_path):
    assert checked(text, tmp_path)[1] == []


@needs_slurm
@pytest.mark.parametrize(("text", "refused"), [(x[0], True) for x in REFUSED[:4]]
                         + [(text, False) for text in TAKEN])  # fmt: skip
def test_a_real_slurmctld_agrees(text, refused):
    try:
        with real_slurm(["n1", "n2", "n3"], plugin="tree", topology_conf=text, real=0) as slurm:
            slurm.run(["scontrol", "show", "topology"])
            ended = False
    except AssertionError as error:
        ended = "slurmctld ended" in str(error)
    assert ended == refused


def test_statements():
    assert next(statements(["SwitchName=s0 \\", "  Nodes=a,b # two"], "f")).rest == {"nodes": "a,b"}
