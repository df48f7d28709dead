# SPDX-License-Identifier: Apache-2.0
"""Files for Open MPI, Hydra, Intel MPI and torchrun: what stands in them, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import ParseError, UsageError
from nidmap.placement.placement import Origin
from nidmap.rankmap.emit import emit, read_order
from nidmap.rankmap.emit.hosts import RANK_FILE
from nidmap.rankmap.emit.text import BrokenOrderError
from tests.effort import examples
from tests.rankmap.helpers import layouts, levelled, named, orders, slots

ON = slots(named(45, 12), [2, 3])
#: Ranks 0, 2, 4 on nid00012 at places 2, 0, 1; ranks 1, 3 on nid00045 at places 0, 1.
MADE = ON.with_order(np.array([4, 0, 2, 1, 3]), Origin("morton", "ring"))


@st.composite
def blocks(draw):
    """Draw an order in which each node has consecutive ranks."""
    on = draw(layouts())
    nodes = draw(st.permutations(range(len(on.names))))
    node = np.repeat(np.array(nodes), on.counts[list(nodes)])
    slot = np.empty(on.ranks, dtype=np.int64)
    slot[np.argsort(node, kind="stable")] = np.arange(on.ranks)
    return on.with_order(slot)


class Runs(dict):
    """As many cores a rank, one rank's behind another's, for any count of ranks."""

    def __init__(self, cores):
        self.cores = cores

    def __bool__(self):
        return True

    def __missing__(self, ranks):
        return [range(k * self.cores, (k + 1) * self.cores) for k in range(ranks)]


def test_a_rankfile_has_the_host_and_core_of_every_rank():
    assert emit(MADE, "openmpi").splitlines() == [
        "rank 0=nid00012 slot=2",
        "rank 1=nid00045 slot=0",
        "rank 2=nid00012 slot=0",
        "rank 3=nid00045 slot=1",
        "rank 4=nid00012 slot=1",
    ]


def test_a_rankfile_for_ranks_of_several_cores_has_them_all():
    text = RANK_FILE.write(MADE, Runs(4))
    assert text.splitlines()[:3] == [
        "rank 0=nid00012 slot=8,9,10,11",
        "rank 1=nid00045 slot=0,1,2,3",
        "rank 2=nid00012 slot=0,1,2,3",
    ]
    assert read_order(text, "openmpi", ON) == MADE


def test_seq_has_the_host_of_every_rank():
    assert emit(MADE, "seq").split() == named(12, 45, 12, 45, 12)


@pytest.mark.parametrize("form", ["hydra", "intel"])
def test_hydra_and_intel_have_a_line_for_each_run_of_ranks(form):
    made = ON.with_order(np.array([2, 3, 0, 1, 4]))
    assert emit(made, form) == "nid00012:2\nnid00045:2\nnid00012:1\n"


def test_torchrun_has_node_ranks_and_says_how_to_start():
    made = ON.with_order(np.array([2, 3, 4, 0, 1]))
    lines = emit(made, "torchrun").splitlines()
    assert [line for line in lines if line[0] != "#"] == ["0 nid00012 3", "1 nid00045 2"]
    assert "--nnodes=2" in lines[1]
    assert "--master-addr=nid00012" in lines[1]


def test_torchrun_cannot_be_told_an_order_that_tears_nodes():
    with pytest.raises(UsageError, match=r"gives each node consecutive ranks.*nid00012"):
        emit(MADE, "torchrun")


@examples(60)
@given(blocks())
def test_torchrun_reads_back(made):
    assert read_order(emit(made, "torchrun"), "torchrun", made) == made


@examples(60)
@given(orders(), st.integers(1, 9), st.randoms(use_true_random=False))
def test_a_rankfile_in_any_order_of_lines_is_the_same(made, cores, random):
    lines = RANK_FILE.write(made, Runs(cores)).splitlines()
    random.shuffle(lines)
    assert read_order("\n".join(lines), "openmpi", made) == made


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("openmpi", "# c\nrank 1=nid00012 slot=1\nrank 0 = nid00012 slot=0\n"
                    "rank 2=nid00012  slot=2 # x\nrank 3=+n1 slots=0\nrank 4=+N1 slot=1\n"),
        ("openmpi", "".join(f"rank {r}=nid000{12 if r < 3 else 45}\n" for r in range(5))),
        ("openmpi", "rank 0=nid00012 slot=0:0\nrank 1=nid00012 slot=0:1\nrank 2=nid00012 slot=1:0,1"
                    "\nrank 3=nid00045 slot=0-3\nrank 4=nid00045 slot=4,5\n"),
        ("seq", "nid00012\nnid00012\nnid00012\n# c\nnid00045\nnid00045"),
        ("hydra", "nid00012:3\n\nnid00045:2 ifname=ib0\n"),
        ("intel", "nid00012\nnid00012:2\r\nnid00045:2\r\n"),
        ("torchrun", "0 nid00012 3\n1\tnid00045 2\n"),
    ],
)  # fmt: skip
def test_what_others_write_is_read(form, text):
    on = slots(named(12, 45), [3, 2])
    assert read_order(text, form, on).slot_of_rank.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("form", "text", "error", "line", "says"),
    [
        ("openmpi", "rank 0=nid00012 slot=x\n", ParseError, 1, "is not rank R=HOST slot=CORE"),
        ("openmpi", "rank 0=nid00012 slot=0\nrnk 1", ParseError, 2, "'rnk 1' is not rank"),
        ("openmpi", "rank 9=nid00012 slot=0\n", BrokenOrderError, 1, "rank 9 is outside 0 to 4"),
        ("openmpi", "rank 0=nid00012 slot=0\n" * 2, BrokenOrderError, 2, "first on line 1"),
        ("openmpi", "rank 0=nid00012 slot=0\n", BrokenOrderError, 1, "rank 1 and 3 more missing"),
        ("openmpi", "", BrokenOrderError, 1, "0 ranks for 5 slots"),
        ("openmpi", "".join(f"rank {r}=nid00012 slot={r}\n" for r in range(5)),
         BrokenOrderError, 4, "nid00012 gets 5 ranks and has 3 slots"),
        ("openmpi", "".join(f"rank {r}=+n{r} slot={r}\n" for r in range(5)),
         ParseError, 3, "'+n2' is not one of the job's 2 nodes"),
        ("openmpi", "".join(f"rank {r}=+n{r // 3} slot=0\n" for r in range(5)),
         BrokenOrderError, 2, "ranks 0 and 1 both begin on one core"),
        ("openmpi", "".join(f"rank {r}=+n{r // 3}{' slot=0' if r else ''}\n" for r in range(5)),
         ParseError, 1, "rank 0 has no slot, others have"),
        ("seq", "nid00012\nnid00099\n", ParseError, 2, "'nid00099' is not one of the job's 2"),
        ("hydra", "nid00012:3\nnid00045:3\n", BrokenOrderError, 2, "nid00045 gets 3 ranks and"),
        ("hydra", "nid00012:999999999\n", BrokenOrderError, 1, "gets 999999999 ranks"),
        ("hydra", "nid00012:3\n", BrokenOrderError, 1, "nid00045 gets 0 ranks and has 2"),
        ("hydra", "nid00012:x\n", ParseError, 1, "is not a host or host:count"),
        ("intel", "nid00013:3\n", ParseError, 1, "'nid00013' is not one of the job's 2 nodes"),
        ("torchrun", "0 nid00012\n", ParseError, 1, "is not node-rank host nproc-per-node"),
        ("torchrun", "1 nid00012 3\n", BrokenOrderError, 1, "node rank 1, 0 comes next"),
        ("torchrun", "0 nid00012 3\n", BrokenOrderError, 1, "3 ranks for 5 slots"),
    ],
)  # fmt: skip
def test_broken_files_are_refused_with_their_line(form, text, error, line, says):
    with pytest.raises(error) as caught:
        read_order(text, form, slots(named(12, 45), [3, 2]), "ranks.txt")
    assert type(caught.value) is error
    assert caught.value.line == line
    assert says in str(caught.value)


@pytest.mark.parametrize("form", ["openmpi", "seq", "hydra", "intel"])
@examples(60)
@given(orders(), st.data())
def test_a_file_cut_short_is_never_taken_for_whole(form, made, data):
    text = emit(made, form)
    cut = text[: data.draw(st.integers(0, len(text) - 2))]
    try:
        read = read_order(cut, form, made)
    except ParseError:
        return
    assert read in (made, levelled(made))


@examples(50)
@given(layouts(most=4), st.text("rank 0123456789=+nidslot:-,#\n", max_size=60))
def test_any_rankfile_is_an_order_or_one_line_of_error(on, text):
    try:
        made = read_order(text, "openmpi", on)
    except ParseError as error:
        message = str(error)
    else:
        message = ""
        assert sorted(made.slot_of_rank.tolist()) == list(range(on.ranks))
    assert not message or message.isprintable()
