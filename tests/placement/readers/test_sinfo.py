# SPDX-License-Identifier: Apache-2.0
"""sinfo in all its shapes, made by plain loops as slurmctld 22.05 prints them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import read_text
from nidmap.placement.readers.node_states import ORDER, badness_of, node_state
from nidmap.placement.readers.sinfo import QUERY, gpus_of, read, sniff

# --- states ------------------------------------------------------------------

#: What sinfo prints under %t and %T, and the word for it.
PAIRS = [
    ("alloc", "allocated"),
    ("comp", "completing"),
    ("down", "down"),
    ("drain", "drained"),
    ("drng", "draining"),
    ("fail", "fail"),
    ("failg", "failing"),
    ("futr", "future"),
    ("idle", "idle"),
    ("inval", "inval"),
    ("maint", "maint"),
    ("mix", "mixed"),
    ("npc", "perfctrs"),
    ("plnd", "planned"),
    ("resv", "reserved"),
    ("unk", "unknown"),
]


@pytest.mark.parametrize(("short", "full"), PAIRS)
def test_short_and_long_words_are_one(short, full):
    planned = full == "planned"
    for word in (short, full, short.upper(), f"{short}+"):
        assert node_state(word) == (full, planned)
    assert full in ORDER


@pytest.mark.parametrize(
    ("text", "state", "planned"),
    [
        ("idle*", "not_responding", False),
        ("idle~", "powered_down", False),  # Slurm wakes it for a job
        ("idle#", "powering_up", False),
        ("idle!", "power_down", False),
        ("idle%", "powering_down", False),
        ("mix~", "mixed", False),
        ("plnd~", "powered_down", True),
        ("idle$", "maint", False),
        ("idle@", "reboot", False),
        ("idle^", "reboot", False),
        ("idle-", "idle", True),
        ("mix-", "mixed", True),
        ("plnd*", "not_responding", True),
        ("drain*", "drained", False),
        ("alloc*", "allocated", False),
        ("down~", "down", False),
        ("idle+drain+not_responding", "drained", False),
        ("idle+not_responding", "not_responding", False),
        ("idle+planned", "planned", True),
        ("idle+cloud+powered_down", "powered_down", False),
        ("idle+dr", "unknown", False),
        ("mixed+reserved", "reserved", False),
        ("powering_do", "powering_down", False),  # cut at the eleven characters of %.11T
        ("idle+maintenance+res", "maint", False),  # cut at the twenty of -O
        ("gremlin", "gremlin", False),  # a state of some later version: never free
    ],
)
def test_signs_and_joined_words(text, state, planned):
    assert node_state(text) == (state, planned)


@pytest.mark.parametrize("text", ["", "7", "n/a", "idle?", "i le", "*", "idle+", "nid00001"])
def test_what_is_no_state(text):
    found = node_state(text)
    assert found is None or (text, found) == ("idle+", ("idle", False))


def test_only_idle_and_up_are_free_and_the_order_begins_with_them():
    assert sorted(ORDER, key=badness_of)[:2] == ["up", "idle"]
    assert badness_of("gremlin") > badness_of("drained")


# --- shapes ------------------------------------------------------------------

STATES = st.sampled_from(["idle", "alloc", "mix-", "drng", "idle*", "plnd", "resv", "down~"])


@st.composite
def clusters(draw):
    """Draw rows (node, partition, state): each node in one to three partitions."""
    count = draw(st.integers(1, 12))
    numbers = draw(st.permutations(range(count)))
    rows = []
    for number in numbers:
        name = f"nid{number:05d}"
        partitions = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
        rows += [(name, p, draw(STATES)) for p in partitions]
    return rows


def merged(rows):
    """Return {node: (state, planned, partitions)} by brute force."""
    found = {}
    for name, partition, state in rows:
        word, planned = node_state(state)
        before = found.get(name)
        if before is None:
            found[name] = (word, planned, [partition])
        else:
            bad = max(before[0], word, key=ORDER.index)
            found[name] = (bad, before[1] or planned, [*before[2], partition])
    return found


def star(partition):
    return partition + "*" if partition == "a" else partition


def long_rows(rows):
    return "".join(
        f"{n:<10}       1 {star(p):>9} {s:>11} 64     2:16:2 128000        0     10 haswell, none\n"
        for n, p, s in rows
    )


HEADER_NL = (
    "NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON\n"
)
DATE = "Sat Nov 21 11:34:18 2026\n"
SHAPES = {
    "-N": lambda rows: (
        "NODELIST   NODES PARTITION STATE \n"
        + "".join(f"{n:<10}     1 {star(p):>9} {s:<6}\n" for n, p, s in rows)
    ),
    "-N -l": lambda rows: DATE + HEADER_NL + long_rows(rows),
    "default": lambda rows: (
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
        + "".join(f"{star(p):<9} up   1-00:00:00      1  {s:>5} {n}\n" for n, p, s in rows)
        + "empty     up   infinite      0    n/a \n"
    ),
    "-l": lambda rows: (
        DATE
        + "PARTITION AVAIL  TIMELIMIT   JOB_SIZE ROOT OVERSUBS GROUPS  NODES   STATE NODELIST\n"
        + "".join(f"{star(p)} up infinite 1-infinite no NO all 1 {s} {n}\n" for n, p, s in rows)
    ),
    "QUERY": lambda rows: (
        "NODELIST|PARTITION|AVAIL|STATE|CPUS|MEMORY|SOCKETS|CORES|WEIGHT|GRES|AVAIL_FEATURES\n"
        + "".join(f"{n}|{star(p)}|up|{s}|64|128000|2|16|10|gpu:a100:4|(null)\n" for n, p, s in rows)
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@given(clusters())
def test_every_shape_merges_to_the_same(shape, rows):
    text = SHAPES[shape](rows)
    dump, expected = read(text, "t"), merged(rows)
    assert dump.nodes.name.tolist() == list(expected)
    assert dump.nodes.state.tolist() == [state for state, _, _ in expected.values()]
    assert dump.nodes.planned.tolist() == [planned for _, planned, _ in expected.values()]
    partitions = [",".join(p) for _, _, p in expected.values()]
    assert dump.parameters["partitions"].tolist() == partitions
    assert dump.counts.total == len(text.splitlines())
    assert dump.counts.rows == len(rows) + (shape == "default")
    assert sniff(text)
    assert read_text(text).format == "sinfo"
    firsts = [[r[0] for r in rows].index(name) for name in expected]
    assert dump.nodes.line.tolist() == [1 + dump.counts.headers + i for i in firsts]


@given(clusters())
def test_two_columns(rows):
    text = "NODELIST STATE\n" + "".join(f"{n} {s}\n" for n, _, s in rows)
    dump, expected = read(text, "t"), merged(rows)
    assert dict(zip(dump.nodes.name.tolist(), dump.nodes.state.tolist(), strict=True)) == {
        name: state for name, (state, _, _) in expected.items()
    }
    assert read_text(text).format == "sinfo"
    assert "partitions" not in dump.parameters


def test_folded_lists():
    text = (
        "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\n"
        "a* up infinite 2 alloc n[3,1]\nb up infinite 3 idle n[1-2],m7\n"
    )
    dump = read(text, "t")
    assert dump.nodes.name.tolist() == ["n3", "n1", "n2", "m7"]
    assert dump.nodes.state.tolist() == ["allocated", "allocated", "idle", "idle"]
    assert dump.nodes.line.tolist() == [2, 2, 3, 3]
    assert dump.parameters["partitions"].tolist() == ["a", "a,b", "b", "b"]
    assert dump.parameters["default_partition"] == "a"


def test_what_is_in_a_node():
    dump = read(
        "NODELIST|STATE|CPUS|MEMORY|SOCKETS|CORES|WEIGHT|GRES|AVAIL_FEATURES\n"
        "n1|idle|64|1031523|2|16|7|gpu:a100:4(S:0-1),nic:2|haswell,dw\n"
        "n2|idle|64+|1K|1|8+|1|gpu:2,gpu:h100:1|(null)\n"
        "n3|idle|N/A|N/A|N/A|N/A|N/A|(null)|\n",
        "t",
    ).nodes
    assert dump.memory_mb.tolist() == [1031523, 1024, 0]
    assert (dump.sockets.tolist(), dump.cores.tolist()) == ([2, 1, 0], [32, 8, 0])
    assert (dump.weight.tolist(), dump.gpus.tolist()) == ([7, 1, 0], [4, 3, 0])
    assert dump.features.tolist() == ["haswell,dw", "", ""]


def test_nodes_that_sinfo_has_merged_have_no_weight():
    """Without -e one row holds nodes of 16 to 21 cores and weights 1 to 9: ``16+``, ``1+``."""
    head = "NODELIST|STATE|MEMORY|SOCKETS|CORES|WEIGHT\n"
    dump = read(head + "n[0-1]|idle|1000|1|16+|1+\nn2|idle|1000|1|8|5\n", "t")
    assert (dump.nodes.cores.tolist(), dump.nodes.weight) == ([16, 16, 8], None)
    assert [(f.kind, f.fault) for f in dump.findings] == [("merged-nodes", False)]
    cores = read(head + "n[0-1]|idle|1000|1|16+|1\n", "t")
    assert (cores.nodes.weight.tolist(), len(cores.findings)) == ([1, 1], 1)


def test_sockets_and_cores_of_the_long_form():
    nodes = read(SHAPES["-N -l"]([("n1", "a", "idle")]), "t").nodes
    assert (nodes.sockets.tolist(), nodes.cores.tolist()) == ([2], [32])
    assert (nodes.memory_mb.tolist(), nodes.weight.tolist()) == ([128000], [10])


def test_features_that_may_be_cut_are_left_out():
    """Sinfo -N -l prints eight characters of the features: 'haswell,dw' shows as 'haswell,'."""
    dump = read(SHAPES["-N -l"]([("n1", "a", "idle"), ("n2", "a", "idle")]), "t")
    assert dump.nodes.features is None


def test_columns_that_are_not_there_are_none():
    nodes = read("NODELIST STATE\nn1 idle\n", "t").nodes
    assert (nodes.cores, nodes.memory_mb, nodes.features, nodes.weight) == (None,) * 4


def test_a_reason_may_hold_anything_but_not_shift_columns():
    text = SHAPES["-N -l"]([("n1", "a", "down")]).replace("none\n", "bad | memory, see ticket 7\n")
    assert read(text, "t").nodes.state.tolist() == ["down"]
    barred = "NODELIST|STATE|REASON\nn1|down|bad | memory\n"
    assert read(barred, "t").nodes.state.tolist() == ["down"]
    with pytest.raises(ParseError, match=r"t:2: .* leave %E out"):
        read("NODELIST|REASON|STATE\nn1|bad | memory|down\n", "t")


@pytest.mark.parametrize(
    ("a", "b", "state"),
    [
        ("up", "down", "idle"),
        ("down", "up", "idle"),
        ("inact", "down", "inactive"),
        ("drain", "drain", "inactive"),
    ],
)
def test_an_idle_node_needs_one_partition_that_is_up(a, b, state):
    head = "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\n"
    dump = read(f"{head}a {a} infinite 1 idle n1\nb {b} infinite 1 idle n1\n", "t")
    assert dump.nodes.state.tolist() == [state]


def test_no_node_in_any_partition():
    dump = read("PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\na up infinite 0 n/a \n", "t")
    assert dump.nodes is None
    assert [(f.kind, f.fault) for f in dump.findings] == [("no-nodes", True)]
    assert dump.counts.rows == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t: has no"),
        ("\n\n", "t: has no"),
        ("NODELIST STATE\n", "t: has no"),
        ("PARTITION AVAIL NODES(A/I/O/T) NODELIST\n", "t:1: sinfo output without column %T"),
        ("REASON USER TIMESTAMP NODELIST\n", "t:1: sinfo output without column %T"),
        ("NODELIST STATE\nn1 idle\nn2\n", "t:3: 'n2' is not a row of 2 columns"),
        ("NODELIST STATE\nn1 idle up\n", "t:2: 'n1 idle up' is not a line of sinfo"),
        ("NODELIST STATE\nn1 7\n", "t:2: '7' is not a node state"),
        ("NODELIST STATE\nn2 idle\nn3 =1+1\n", "t:3: '=1+1' is not a node state"),
        ("NODELIST STATE\nn[2- idle\n", "t:2: NODELIST: 'n[2-'"),
        ("NODELIST STATE\nn;2 idle\n", "t:2: NODELIST: 'n;2'"),
        ("n1 idle\n", "t:1: 'n1 idle' is not a line of sinfo"),
        ("NODELIST|STATE|MEMORY\nn1|idle|lots\n", "t:2: memory: 'lots' is not a number"),
        ("NODELIST STATE S:C:T\nn1 idle 2:16\n", "t:2: sct: '2:16' is not a number"),
        ("slurm_load_partitions: Unable to contact slurm controller\n", "t:1: "),
        (
            "NODELIST STATE\nn[1-999999999] idle\n",
            "t:2: NODELIST: 'n[1-999999999]' makes 999999999",
        ),
        ("n1 idle\n" * 2_100_000, "t: more than 2,097,152 lines"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(ParseError) as raised:
        read(text, "t")
    assert str(raised.value).startswith(message)


def test_more_nodes_than_any_machine_has_are_refused(monkeypatch):
    monkeypatch.setattr("nidmap.placement.readers.sinfo.MOST_NODES", 2000)
    with pytest.raises(ParseError, match="t:3: more than 2,000 nodes"):
        read("NODELIST STATE\nn[1-1100] idle\nm[1-1100] idle\n", "t")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello world\n",
        "2 c0-0c0s1n0 compute 0 0 1\n",
        "   115     0x73 c0-0c1s12n3  compete      down interactive\n",
        "SwitchName=s0 Nodes=n1\n",
        "n1 idle\nn2 idle\n",
        "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n",
    ],
)
def test_sniff_refuses(text):
    assert not sniff(text)


def test_our_query_names_the_columns_that_the_reader_knows():
    assert QUERY.count("|") == 10


def test_the_long_form_of_26_05_has_a_column_of_reservations():
    text = (
        "Mon Nov 23 01:46:29 2026\n"
        "PARTITION AVAIL  TIMELIMIT   JOB_SIZE ROOT OVERSUBS     GROUPS  NODES       STATE"
        " RESERVATION NODELIST\n"
        "all*         up   infinite 1-infinite   no       NO        all      1     drained"
        "             n2\n"
        "all*         up   infinite 1-infinite   no       NO        all      2    reserved"
        "       maint n[3-4]\n"
        "all*         up   infinite 1-infinite   no       NO        all      1        idle"
        "             n1\n"
    )
    nodes = read_text(text).nodes
    states = dict(zip(nodes.name.tolist(), nodes.state.tolist(), strict=True))
    assert states == {"n2": "drained", "n3": "reserved", "n4": "reserved", "n1": "idle"}


def test_gpus_of():
    assert gpus_of("gpu:a100:4(S:0-1),nic:2") == 4
    assert gpus_of("gpu:2,gpu:h100:1") == 3
    assert gpus_of("(null)") == 0


@pytest.mark.parametrize("mark", ["|", ",", ";", "/"])
def test_columns_between_any_mark(mark):
    """``sinfo -o "%N;%T;%c"``: commas inside brackets are the node list's."""
    rows = [("NODELIST", "STATE", "CPUS"), ("n[1-2,4]", "idle", "8"), ("n3", "drained*", "8")]
    nodes = read_text("".join(mark.join(row) + "\n" for row in rows), "x").nodes
    assert dict(zip(nodes.name.tolist(), nodes.state.tolist(), strict=True)) == {
        "n1": "idle", "n2": "idle", "n4": "idle", "n3": "drained"}  # fmt: skip


def test_one_cluster_is_named_above_and_several_are_refused():
    """``sinfo -M a`` and ``-M a,b``."""
    table = "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\nbatch* up infinite 2 idle n[1-2]\n"
    assert read_text(f"CLUSTER: a\n{table}", "x").nodes.name.tolist() == ["n1", "n2"]
    with pytest.raises(ParseError, match="x:5: sinfo output of several clusters"):
        read_text(f"CLUSTER: a\n{table}\nCLUSTER: b\n{table}", "x")
