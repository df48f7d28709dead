# SPDX-License-Identifier: Apache-2.0
"""Folding and expanding: a list read back is the list that was written."""

import pickle
import re
from itertools import groupby

import pytest
from ClusterShell.NodeSet import NodeSet
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement import nodelist
from nidmap.placement.errors import ParseError
from nidmap.placement.nodelist import NodeList, fold, nid_ranges

prefixes = st.sampled_from(
    ["nid", "n", "r1n", "node-", "a.b", "x1000c0s3b0n", "0x", "R", "_", "n1-"]
)
numbered = st.builds(
    lambda prefix, number, width: f"{prefix}{number:0{width}d}",
    prefixes,
    st.one_of(st.integers(0, 12), st.integers(95, 105), st.integers(0, 10**20)),
    st.integers(1, 6),
)
suffixed = st.builds(
    lambda name, end: name + end, numbered, st.sampled_from(["-ib", ".x", "a", "-ib0"])
)
anything = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,12}", fullmatch=True)
names = st.lists(st.one_of(numbered, suffixed, anything, st.just("login")), max_size=40)
runs = st.lists(
    st.builds(
        lambda prefix, start, length, width: [
            f"{prefix}{n:0{width}d}" for n in range(start, start + length)
        ],
        prefixes,
        st.one_of(st.integers(0, 120), st.integers(990, 1010)),
        st.integers(1, 15),
        st.integers(1, 5),
    ),
    max_size=6,
).map(lambda parts: [name for part in parts for name in part])


def fold_by_hand(names):
    """Fold as Slurm does, one name after the other."""
    groups = []
    for name in names:
        prefix, digits = re.fullmatch(r"(.*?)([0-9]{0,18})", name, re.DOTALL).groups()
        if digits and groups and groups[-1][0] == prefix and groups[-1][1]:
            last = groups[-1][1][-1]
            if digits == f"{int(last[1]) + 1:0{len(last[0])}d}":
                last[1] = digits
            else:
                groups[-1][1].append([digits, digits])
        else:
            groups.append((prefix, [[digits, digits]] if digits else []))
    words = []
    for prefix, ranges in groups:
        texts = [low if low == high else f"{low}-{high}" for low, high in ranges]
        alone = len(texts) == 1 and "-" not in texts[0]
        words.append(prefix + (texts[0] if alone else f"[{','.join(texts)}]" if texts else ""))
    return ",".join(words)


@given(names)
def test_a_folded_list_reads_back(given_names):
    assert NodeList.parse(NodeList(given_names).fold()) == tuple(given_names)


@given(runs)
def test_runs_read_back(given_names):
    assert NodeList.parse(NodeList(given_names).fold()) == tuple(given_names)


@given(st.one_of(names, runs))
def test_folding_is_what_one_name_after_the_other_gives(given_names):
    assert NodeList(given_names).fold() == fold_by_hand(given_names)


@given(st.one_of(names, runs))
def test_sorted_folds_hold_the_same_names(given_names):
    text = NodeList(given_names).fold(sort=True)
    assert sorted(NodeList.parse(text)) == sorted(given_names)
    assert NodeList(reversed(given_names)).fold(sort=True) == text


@given(st.one_of(names, runs), st.sampled_from([",", " ", "\n", "\r\n", ", ", "\t", ",\n", ",,"]))
def test_any_separator_will_do(given_names, separator):
    assert NodeList.parse(separator.join(given_names)) == tuple(given_names)


@given(st.lists(st.integers(0, 300), min_size=1), st.sampled_from(["nid", "n-", "x"]))
def test_sorted_sets_fold_as_clustershell_folds_them(numbers, prefix):
    ours = NodeList(f"{prefix}{n}" for n in numbers)
    assert ours.unique.fold(sort=True) == str(NodeSet.fromlist(list(ours)))


@given(st.lists(st.integers(0, 300), min_size=1), st.integers(3, 6))
def test_clustershell_expands_our_folds_to_the_same_set(numbers, width):
    ours = NodeList(f"nid{n:0{width}d}" for n in numbers)
    assert set(NodeSet(ours.fold())) == set(ours)
    assert NodeList.parse(str(NodeSet.fromlist(list(ours)))) == ours.unique.sorted()


def test_a_seam_between_chunks_does_not_show():
    """More names than are compared at once still make one range."""
    many = NodeList(f"nid{n:06d}" for n in range(140_000))
    assert many.fold() == "nid[000000-139999]"
    assert NodeList(reversed(many)).fold(sort=True) == "nid[000000-139999]"
    assert NodeList.parse(many.fold()) == many
    odd = NodeList(many[:65_536] + many[65_537:])
    assert odd.fold() == "nid[000000-065535,065537-139999]"


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("", ""),
        ("  \n\n", ""),
        ("nid[00045,00012]", "nid00045 nid00012"),
        ("r[1-2]n[01-03]", "r1n01 r1n02 r1n03 r2n01 r2n02 r2n03"),
        ("a[1-2]b[3,5-6]x", "a1b3x a1b5x a1b6x a2b3x a2b5x a2b6x"),
        ("n[9-11]", "n9 n10 n11"),
        ("n[09-11]", "n09 n10 n11"),
        ("n[009-11]", "n009 n010 n011"),
        ("n[1-02]", "n1 n2"),
        ("n[98-102]", "n98 n99 n100 n101 n102"),
        ("[45-47]", "45 46 47"),
        ("45-47", "45-47"),
        ("a,b;c".replace(";", " "), "a b c"),
        ("a[1-2],b,c[7]", "a1 a2 b c7"),
        ("n[1-2]-ib,n[1-2].site.org", "n1-ib n2-ib n1.site.org n2.site.org"),
        ("nid00045*3,nid00001", "nid00045 nid00045 nid00045 nid00001"),
        ("a[1-2]*2,b", "a1 a2 a1 a2 b"),
        ("a[1-2]:2,b:1", "a1 a1 a2 a2 b"),
        ("a[1-2] slots=2\nb slots=1 max_slots=4", "a1 a1 a2 a2 b"),
        ("a[2,1] slots=2", "a2 a2 a1 a1"),
        ("b slots=2 max-slots=3 # c\n# d\n\te\n", "b b e"),
        ("a[1, 2,\n 4-5]", "a1 a2 a4 a5"),
        ("nid00001 # the first\r\nnid00002\r\n", "nid00001 nid00002"),
        ("nid1#spare", "nid1"),
        ("# all gone\n", ""),
        ("SLURM_JOB_NODELIST='n[1-2]'", "n1 n2"),
        ("#0-3", "#0 #1 #2 #3"),
        ("#[0,5],n1,#7", "#0 #5 n1 #7"),
        ("c0-0c1s3, x1000c0s0b0n0", "c0-0c1s3 x1000c0s0b0n0"),
        ("(Priority)", ""),
        ("(Resources)\nn[1-2]\n", "n1 n2"),
    ],
)
def test_expanding(text, expanded):
    assert NodeList.parse(text) == tuple(expanded.split())


@pytest.mark.parametrize(
    ("given_names", "folded"),
    [
        ("", ""),
        ("login", "login"),
        ("n1", "n1"),
        ("nid00045 nid00012 nid00013", "nid[00045,00012-00013]"),
        ("n3 n2 n1", "n[3,2,1]"),
        ("n1 n1 n1 m2", "n[1,1,1],m2"),
        ("n1 n2 n1 n2", "n[1-2,1-2]"),
        ("n9 n10 n09 n010", "n[9-10,09,010]"),
        ("n99 n100 n099 n0100", "n[99-100,099,0100]"),
        ("n1 m1 n2", "n1,m1,n2"),
        ("n1-ib n2-ib", "n1-ib,n2-ib"),
        ("r1n1 r1n2 r2n1", "r1n[1-2],r2n1"),
        ("45 46 48", "[45-46,48]"),
        ("#5 #6", "#[5-6]"),
    ],
)
def test_folding(given_names, folded):
    assert NodeList(given_names.split()).fold() == folded
    assert str(NodeList(given_names.split())) == folded


def test_sorting_is_by_value():
    mixed = NodeList.parse("r10n1 r9n10 r9n9 login b n010 n9 n10 n09 n9")
    assert " ".join(mixed.sorted()) == "b login n9 n9 n09 n10 n010 r9n9 r9n10 r10n1"
    assert mixed.fold(sort=True) == "b,login,n[9,9,09-10,010],r9n[9-10],r10n1"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("nid[00012-00003]", 0, ["'00012-00003'", "backwards"]),
        ("nid[1,,2]", 0, ["an empty entry", "nid[1,,2]"]),
        ("nid[]", 0, ["an empty entry"]),
        ("nid[a-c]", 0, ["'a-c'", "neither a number nor a range"]),
        ("nid[1-2-3]", 0, ["'1-2-3'"]),
        ("nid[-1]", 0, ["'-1'"]),
        ("nid[1-2", 0, ["'nid[1-2'", "unmatched bracket"]),
        ("nid1]", 0, ["unmatched bracket"]),
        ("n[[1]]", 0, ["unmatched bracket"]),
        ("n1\nn2\nn[1-\nn4", 3, ["'n[1-'"]),
        ("n1\nn2,n?3", 2, ["'n?3'", "'?' cannot be in one"]),
        ("n1*0", 0, ["'n1*0'", "not a count"]),
        ("n1*x", 0, ["not a count"]),
        ("n1:", 0, ["not a count"]),
        ("slots=4", 0, ["before any node"]),
        ("n1 slots=0", 0, ["at least 1 slot"]),
        ("n1 cores=4", 0, ["'cores=4'", "'=' cannot be in one"]),
        ("-n1", 0, ["'-n1'"]),
        ("n1\n\x00\x01\x02", 2, ["\\x00"]),
        ("n1\nn\x1b[31m2", 2, ["\\x1b"]),
        ("é1", 0, ["'é1'"]),
        ("n[1-1000000000000000000]", 0, ["19 digits"]),
        ("x" * 300, 0, ["300 characters long", "at most 255"]),
        ("n1\n#45\nn2\n", 2, ["'#45' may be an index or a comment"]),
    ],
)
def test_what_is_no_list_is_refused(text, line, words):
    with pytest.raises(ParseError) as caught:
        NodeList.parse(text)
    assert caught.value.exit_code == 3
    assert caught.value.line == line
    message = str(caught.value)
    assert message.isprintable()
    for word in words:
        assert word in message
    with pytest.raises(ParseError, match=re.escape(f"hosts.txt:{max(line, 1)}: ")):
        NodeList.parse(text, "hosts.txt")
    with pytest.raises(ParseError, match=re.escape(f"--from -:{max(line, 1)}: ")):
        NodeList.parse(text, "--from -")


def attempt(text):
    """Return the list in a text and '', or an empty list and the error."""
    try:
        return NodeList.parse(text, "f"), ""
    except ParseError as error:
        return NodeList(), str(error)


@given(st.text(alphabet="n1[]-,*:# \n(=/+'a0", max_size=30))
def test_odd_text_is_read_or_refused_in_one_line(text):
    nodes, error = attempt(text)
    assert error.isprintable()  # no second line, no terminal codes
    assert not error or error.startswith("f")
    assert NodeList.parse(nodes.fold()) == nodes


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    nodes, error = attempt(text)
    assert error.isprintable()
    assert all(name.isascii() and name for name in nodes)


class TestTuple:
    """It behaves as the tuple it is."""

    nodes = NodeList(["b2", "a1", "b2"])

    def test_comparing_and_hashing(self):
        assert self.nodes == ("b2", "a1", "b2")
        assert hash(self.nodes) == hash(("b2", "a1", "b2"))
        assert self.nodes != NodeList(["a1", "b2", "b2"])
        assert "a1" in self.nodes
        assert self.nodes.index("a1") == 1

    def test_slicing_adding_and_multiplying_give_lists(self):
        for made, expected in (
            (self.nodes[1:], ["a1", "b2"]),
            (self.nodes[::-1], ["b2", "a1", "b2"]),
            (self.nodes + NodeList(["c"]), ["b2", "a1", "b2", "c"]),
            (self.nodes.__add__(["c"]), ["b2", "a1", "b2", "c"]),
            (self.nodes + self.nodes[:1], ["b2", "a1", "b2", "b2"]),
            (self.nodes[:1] * 2, ["b2", "b2"]),
        ):
            assert type(made) is NodeList
            assert list(made) == expected
        assert self.nodes[0] == "b2"
        assert NodeList(self.nodes) is self.nodes

    def test_repeats(self):
        assert self.nodes.unique == ("b2", "a1")

    def test_writing(self):
        assert eval(repr(self.nodes)) == self.nodes
        assert pickle.loads(pickle.dumps(self.nodes)) == self.nodes
        assert type(pickle.loads(pickle.dumps(self.nodes))) is NodeList

    def test_text_is_not_taken_for_names(self):
        with pytest.raises(TypeError, match=r"NodeList\.parse"):
            NodeList("nid00045")
        with pytest.raises(TypeError):
            self.nodes + "c"

    @pytest.mark.parametrize("name", ["", "a b", "a,b", "a\n", "n[1]", "#", "#x", "é", "a" * 256])
    def test_what_is_no_name_is_refused(self, name):
        with pytest.raises(ParseError, match="not a node name"):
            NodeList(["fine", name])


def test_groups_of_equal_names_keep_their_count():
    """A host file with a line a rank, folded and read back, has as many slots of each node."""
    ranks = [f"nid{n:05d}" for n in (7, 7, 7, 3, 3, 9) for _ in range(4)]
    back = NodeList.parse(NodeList(ranks).fold())
    assert [(name, len(list(same))) for name, same in groupby(back)] == [
        ("nid00007", 12),
        ("nid00003", 8),
        ("nid00009", 4),
    ]


@given(runs)
def test_the_length_of_a_text_is_known_unexpanded(names):
    assert NodeList.length_of(NodeList(names).fold()) == len(names)
    assert NodeList.length_of(" ".join(names)) == len(names)


def test_the_length_of_a_long_text_is_known_at_once():
    assert NodeList.length_of("n[0-999999]*3,login") == 3_000_001
    with pytest.raises(ParseError, match="makes 4000001 names"):
        NodeList.length_of("login,n[0-3999999]")


def key_of(name):
    """Return what a name is sorted by: what is before its last number, then that, narrow first."""
    before, last = re.fullmatch("(.*?)([0-9]*)", name).groups()
    words = re.split("([0-9]+)", before)
    parts = [
        (text, int(n or -1), len(n)) for text, n in zip(words[::2], [*words[1::2], ""], strict=True)
    ]
    return parts, int(last or -1), len(last)


@pytest.mark.parametrize("many", [100_000, 0])
@given(st.lists(st.text("nr-019", min_size=1, max_size=7), max_size=12))
def test_numbers_are_sorted_by_value_with_numpy_and_without(many, names):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nodelist, "_MANY", many)
        order = nodelist.numeric_order(names)
    assert order == sorted(range(len(names)), key=lambda k: key_of(names[k]))


def test_fold():
    assert fold(["nid00045", "nid00012", "nid00013", "login"]) == "nid[00045,00012-00013],login"


def test_nid_ranges():
    assert nid_ranges((45, 12, 13, 14, 13)) == "45,12-14,13"
