# SPDX-License-Identifier: Apache-2.0
"""Order files: what stands in them, that they read back, and that broken ones are refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import NidmapError, ParseError, UsageError
from nidmap.placement.nodelist import NodeList
from nidmap.placement.placement import Origin
from nidmap.rankmap import emit as formats
from nidmap.rankmap.emit import emit, format_of, names, read_order
from nidmap.rankmap.emit.text import BrokenOrderError, line_of_number, parse_numbers
from nidmap.rankmap.orders import arrange
from tests.rankmap.helpers import layouts, levelled, named, orders, slots

#: Two nodes in descending order, so that Slurm's sorting matters.
ON = slots(named(45, 12), [2, 3])
MADE = ON.with_order(np.array([4, 0, 2, 1, 3]), Origin("morton", "ring"))


def bare(text):
    """Return a text's lines without comments."""
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_slots_has_the_slot_of_rank_r_on_line_r():
    assert emit(MADE, "slots") == "4\n0\n2\n1\n3\n"


def test_mpich_given_has_the_rank_at_every_slot_a_line_a_node():
    assert bare(emit(MADE, "mpich", "given")) == ["1,3", "2,4,0"]


def test_mpich_sorted_is_for_the_nodes_as_slurm_sorts_them():
    assert bare(emit(MADE, "mpich", "sorted")) == ["2,4,0", "1,3"]
    assert emit(MADE, "mpich") == emit(MADE, "mpich", "sorted")


def test_mpich_names_the_nodes_it_is_for():
    assert "# nid[00012,00045]\n" in emit(MADE, "mpich", "sorted")
    assert "# nid[00045,00012]\n" in emit(MADE, "mpich", "given")
    assert "# nidmap order: morton for ring\n" in emit(MADE, "mpich")


def test_mpich_has_no_long_line_however_long_the_list():
    scattered = slots(named(*range(1, 4000, 2)), 100)
    made = arrange(scattered, "ring", "row-major")
    lines = emit(made, "mpich").splitlines()
    assert max(map(len, lines)) <= 64 * 7
    assert max(len(line) for line in lines if line.startswith("#")) <= 78
    comments = [line[2:] for line in lines if line.startswith("# ")]
    assert NodeList.parse("".join(comments[2:-1])) == NodeList(scattered.names.tolist())
    assert read_order(emit(made, "mpich"), "mpich", scattered) == made
    assert [len(line.split(",")) for line in bare("\n".join(lines))[:4]] == [64, 36, 64, 36]


def test_slurm_has_the_node_of_rank_r_on_line_r():
    assert emit(MADE, "slurm") == "nid00012\nnid00045\nnid00012\nnid00045\nnid00012\n"


def test_json_has_all_of_it():
    document = json.loads(emit(MADE, "json"))
    assert document == {
        "schema": "nidmap.order/1",
        "strategy": "morton",
        "pattern": "ring",
        "ranks": 5,
        "nodelist": "nid[00045,00012]",
        "nodes": named(45, 12),
        "counts": [2, 3],
        "slots": [4, 0, 2, 1, 3],
    }


def test_the_papers_morton_table_as_a_rank_order_file():
    made = arrange(slots(named(0, 1, 2, 3), 4), "fft:4x4", "morton")
    assert bare(emit(made, "mpich")) == ["0,1,4,5", "2,3,6,7", "8,9,12,13", "10,11,14,15"]


def test_slots_and_mpich_are_inverse_and_not_the_same():
    made = arrange(slots(named(0, 1), 16), "fft:4x8", "hilbert")
    slot_of = [int(line) for line in emit(made, "slots").split()]
    rank_at = [int(word) for line in bare(emit(made, "mpich")) for word in line.split(",")]
    assert [rank_at[s] for s in slot_of] == list(range(32))
    assert slot_of != rank_at


def test_sorted_and_given_differ_exactly_for_unsorted_lists():
    pattern = "stencil:4x4"
    unsorted = arrange(slots(named(9, 3), 8), pattern, "morton")
    ascending = arrange(slots(named(3, 9), 8), pattern, "morton")
    assert bare(emit(unsorted, "mpich", "sorted")) != bare(emit(unsorted, "mpich", "given"))
    assert bare(emit(ascending, "mpich", "sorted")) == bare(emit(ascending, "mpich", "given"))


#: Formats that say the node of each rank, not the place in it.
NODE_ONLY = ("slurm", "seq", "hydra", "intel", "torchrun", "deepspeed")


@pytest.mark.parametrize("form", sorted(set(names()) - {"torchrun", "deepspeed"}))
@pytest.mark.parametrize("launcher_order", ["sorted", "given"])
@settings(deadline=None)
@given(orders())
def test_every_format_reads_back(form, launcher_order, made):
    read = read_order(emit(made, form, launcher_order), form, made, "-", launcher_order)
    assert read == (levelled(made) if form in NODE_ONLY else made)


@settings(deadline=None)
@given(orders())
def test_a_simulated_launch_puts_every_rank_where_the_order_says(made):
    """Do what Cray MPICH does under native Slurm: sorted nodes, blocks, renumbered by the file."""
    ordered = sorted(zip(made.names.tolist(), made.counts.tolist(), strict=True))
    block = [host for host, count in ordered for _ in range(count)]
    file = [int(r) for line in bare(emit(made, "mpich")) for r in line.split(",")]
    hosts = [""] * made.ranks
    for position, rank in enumerate(file):
        hosts[rank] = block[position]
    assert hosts == made.host_of_rank.tolist()


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("mpich", "# of CrayPat\n0-2\n3,4  # the rest\n\n"),
        ("mpich", "0 1 2 3 4"),
        ("mpich", "0,1,2,\r\n3,4\r\n"),
        ("slots", "# none of ours\n0\n1\n\n2\n3\n4\n"),
        ("slots", "0\r\n1\r\n2\r\n3\r\n4"),
        ("slurm", "nid00012*3\nnid[00045,00045]\n"),
        ("slurm", "nid00012 nid00012,nid00012\nnid00045 # twice\nnid00045"),
    ],
)
def test_what_others_write_is_read(form, text):
    on = slots(named(12, 45), [3, 2])
    assert read_order(text, form, on).slot_of_rank.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("form", "text", "error", "line", "says"),
    [
        ("mpich", "0,1\n2,x,4\n", ParseError, 2, "'x' is not a rank"),
        ("mpich", "0,1\n2,-3,4\n", BrokenOrderError, 2, "rank -3 is outside 0 to 4"),
        ("mpich", "0,1\n2\n4-3\n", ParseError, 3, "runs backwards"),
        ("mpich", "0,1\n2,3\n7\n", BrokenOrderError, 3, "rank 7 is outside 0 to 4"),
        ("mpich", "0-99999999999\n", BrokenOrderError, 1, "is outside 0 to 4"),
        ("mpich", "0-3\n0-3\n", BrokenOrderError, 2, "more than 5 ranks"),
        ("mpich", "0,1\n2\n3,1\n", BrokenOrderError, 3, "rank 1 is listed twice, first on line 1"),
        ("mpich", "# c\n0-2\n2\n", BrokenOrderError, 3, "rank 2 is listed twice, first on line 2"),
        ("mpich", "0,1,2\n", BrokenOrderError, 1, "3 ranks for 5 slots: rank 3 and 1 more missing"),
        ("mpich", "", BrokenOrderError, 1, "0 ranks for 5 slots"),
        ("mpich", "9" * 40, BrokenOrderError, 1, "is outside 0 to 4"),
        ("mpich", "\x00\x01\x02", ParseError, 1, "\\x00\\x01\\x02"),
        ("slots", "0,1,2,3,4\n", ParseError, 1, "is this --format mpich?"),
        ("slots", "0\n1 2\n3\n4\n", ParseError, 2, "is this --format mpich?"),
        ("slots", "0\n1\nx\n", ParseError, 3, "'x' is not a slot"),
        ("slots", "0\n1\n-1\n", BrokenOrderError, 3, "slot -1 is outside 0 to 4"),
        ("slots", "0\n1\n5\n2\n3\n", BrokenOrderError, 3, "rank 2 has slot 5, outside 0 to 4"),
        ("slots", "0\n1\n1\n2\n3\n", BrokenOrderError, 3, "ranks 1 and 2 both have slot 1"),
        ("slots", "0\n1\n", BrokenOrderError, 2, "2 ranks for 5 slots: slot 2 and 2 more"),
        ("slots", "0\n1\n2\n3\n4\n5\n", BrokenOrderError, 6, "rank 5 has slot 5"),
        ("slurm", "nid00012\nnid00013\n", ParseError, 2, "'nid00013' is not one of the job's 2"),
        ("slurm", "nid00045\n" * 3, BrokenOrderError, 3, "nid00045 gets 3 ranks and has 2 slots"),
        ("slurm", "nid00012\n" * 3, BrokenOrderError, 3, "nid00045 gets 0 ranks and has 2 slots"),
        ("slurm", "nid00012*9\n", BrokenOrderError, 1, "nid00012 gets 9 ranks and"),
        ("slurm", "", BrokenOrderError, 1, "0 ranks for 5 slots"),
        ("json", "{", ParseError, 0, "not a JSON order"),
        ("json", "[" * 100_000, ParseError, 0, "not a JSON order"),
        ("json", "[1,2]", ParseError, 0, "expected an object, got a list"),
        ("json", '{"slots": [0,1,2,"3",4]}', ParseError, 0, "expected a whole number, got text"),
        (
            "json",
            '{"slots": [0,1,2,true,4]}',
            ParseError,
            0,
            "expected a whole number, got true or false",
        ),
        ("json", '{"slots": [0,1,2,1e400,4]}', ParseError, 0, "not a JSON order"),
        ("json", '{"slots": [0,1,2]}', BrokenOrderError, 0, "3 ranks for 5 slots"),
        ("json", '{"slots": [0,1,2,2,4]}', BrokenOrderError, 0, "ranks 2 and 3 both have slot 2"),
        ("json", '{"slots": [0,1,2,9,4]}', BrokenOrderError, 0, "rank 3 has slot 9"),
        ("json", '{"slots": [0,1,2,3,4], "counts": [4,1]}', ParseError, 0, "its counts are not"),
        ("json", '{"slots": [0,1,2,3,4], "schema": "x\\u001b"}', ParseError, 0, "x\\x1b"),
    ],
)
def test_broken_files_are_refused_with_their_line(form, text, error, line, says):
    with pytest.raises(error) as caught:
        read_order(text, form, slots(named(12, 45), [3, 2]), "ranks.txt")
    assert type(caught.value) is error
    assert caught.value.line == line
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"ranks.txt:{line}: " if line else "ranks.txt: ")
    assert str(caught.value).isprintable()
    assert caught.value.exit_code == 3


@settings(deadline=None)
@given(orders(), st.sampled_from(["mpich", "slots", "slurm"]), st.data())
def test_a_file_cut_short_is_never_taken_for_whole(made, form, data):
    text = emit(made, form)
    cut = text[: data.draw(st.integers(0, len(text) - 2))]
    try:
        read = read_order(cut, form, made)
    except ParseError:
        return
    # A cut through the last number or name can leave a shorter one: never another order.
    assert read in (made, levelled(made))


@pytest.mark.parametrize("form", names())
@settings(deadline=None)
@given(layouts(most=4), st.text(max_size=40) | st.text("0123456789,-# \n", max_size=40))
def test_any_text_is_an_order_or_one_line_of_error(form, on, text):
    try:
        made = read_order(text, form, on)
    except ParseError as error:
        message = str(error)
    else:
        message = ""
        assert sorted(made.slot_of_rank.tolist()) == list(range(on.ranks))
    assert not message or message.isprintable()


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=6))
def test_the_line_of_a_number_is_found(lines):
    text = "".join(",".join(map(str, line)) + "  # 7, 8\n" for line in lines)
    expected = [k for k, line in enumerate(lines, start=1) for _ in line]
    assert parse_numbers(text, 31, "-", "rank").tolist() == [n for line in lines for n in line]
    assert [line_of_number(text, k) for k in range(len(expected))] == expected


def test_what_a_file_is_called_may_say_its_format():
    assert format_of("MPICH_RANK_ORDER.Grid") == "mpich"
    assert [format_of(f"x/a{e}") for e in (".json", ".SLOTS", ".hosts", ".txt", "")] == [
        "json", "slots", "slurm", "slots", "slots",
    ]  # fmt: skip
    assert [format_of(f"a{e}") for e in (".rankfile", ".seq", ".machinefile", ".torchrun")] == [
        "openmpi", "seq", "intel", "torchrun",
    ]  # fmt: skip
    assert format_of("-") == "slots"


def test_an_unknown_format_names_those_there_are():
    with pytest.raises(UsageError, match="unknown format 'scotch'; choose from deepspeed, hydra"):
        emit(MADE, "scotch")


def test_a_format_of_another_distribution_is_found(monkeypatch):
    class Entry:
        name = "pairs"

        def load(self):
            class Pairs:
                @staticmethod
                def write(order):
                    return repr(order.slot_of_rank.tolist())

                @staticmethod
                def read(text, on, source):
                    return on.with_order(np.array(json.loads(text)))

            return formats.OrderFormat(Pairs, ".pairs", "a list of slots")

    monkeypatch.setattr("nidmap.placement.support.registry.entry_points", lambda group: [Entry()])
    assert "pairs" in formats.names()
    assert read_order(emit(MADE, "pairs"), "pairs", ON) == MADE


def test_the_guide_has_a_row_of_every_format():
    guide = (Path(__file__).parents[3] / "docs" / "reference" / "formats.md").read_text()
    assert [name for name in formats.FORMATS if f"\n| `{name}` |" not in guide] == []


def test_errors_are_all_ours():
    assert issubclass(BrokenOrderError, NidmapError)
