# SPDX-License-Identifier: Apache-2.0
"""Placements are valid or refused, and mean the same whatever numbers their nodes have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nidmap
from nidmap.placement.accounting import (
    _plain_zone,
    _queued_ppn,
    _set_number,
    head_of,
    parse_duration,
    parse_moment,
    read_log,
    read_table,
)
from nidmap.placement.all_to_alls import AllToAlls, match_lines
from nidmap.placement.emit import HeaderJob, formats_for, pbs_options, slurm_options
from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.exports import topology_conf, topology_yaml
from nidmap.placement.fabrics import fabric_of, known_fabric
from nidmap.placement.machine import once
from nidmap.placement.nodelist import NodeList
from nidmap.placement.options import Options, split_figures
from nidmap.placement.placement import Origin, Placement
from nidmap.placement.plan import overfull, usual_strategy
from nidmap.placement.records import Finding
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic
from nidmap.rankmap import orders as orderings
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.predict import Job
from nidmap.rankmap.search.auto_order import order
from tests.rankmap.helpers import named, orders, slots


def placement(made):
    """Return (host, place in it) of every rank."""
    node = made.node_of_rank
    place = made.slot_of_rank - made.first_slot[node]
    return list(zip(made.host_of_rank.tolist(), place.tolist(), strict=True))


@settings(deadline=None)
@given(orders())
def test_slots_and_ranks_are_inverse(made):
    assert made.slot_of_rank[made.rank_at_slot].tolist() == list(range(made.ranks))
    assert made.rank_at_slot[made.slot_of_rank].tolist() == list(range(made.ranks))


@settings(deadline=None)
@given(orders(), st.randoms())
def test_renumbering_nodes_moves_no_rank(made, random):
    positions = list(range(len(made.names)))
    random.shuffle(positions)
    moved = made.renumbered(np.array(positions))
    assert placement(moved) == placement(made)
    assert placement(made.sorted()) == placement(made)
    assert made.sorted().names.tolist() == sorted(made.names.tolist())


def test_an_order_cannot_be_changed_from_outside():
    given_slots = np.array([1, 0])
    made = slots(named(1), 2).with_order(given_slots)
    given_slots[0] = 7
    assert made.slot_of_rank.tolist() == [1, 0]
    with pytest.raises(ValueError, match="read-only"):
        made.slot_of_rank[0] = 0


def test_orders_compare_by_value():
    on = slots(named(1, 2), 1)
    assert on.with_order(np.array([1, 0])) == slots(named(1, 2), 1).with_order(
        np.array([1, 0]), Origin("morton")
    )
    assert on.with_order(np.array([1, 0])) != on.with_order(np.array([0, 1]))
    assert on.with_order(np.array([1, 0])) != slots(named(2, 1), 1).with_order(np.array([1, 0]))
    with pytest.raises(TypeError):
        hash(on)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([0, 1, 1, 2], "slot 1 is given to ranks 1 and 2"),
        ([0, 1, 4, 2], "rank 2 has slot 4 of 0 to 3"),
        ([0, 1, -1, 2], "rank 2 has slot -1"),
        ([0, 1, 2], "3 ranks for 4 slots"),
        ([0, 1, 2, 3, 4], "5 ranks for 4 slots"),
    ],
)
def test_what_is_no_order_is_refused(values, says):
    with pytest.raises(PlanError, match=says) as caught:
        slots(named(1, 2), 2).with_order(np.array(values))
    assert caught.value.exit_code == 1


def test_the_front_door_orders_ranks_on_a_machine():
    machine = nidmap.load_machine("dragonfly:groups=3,chassis=2,blades=4,nodes=4")
    made = nidmap.order(machine, "nid[00020-00023]", Job("fft:4x4", 4), strategy="morton")
    assert isinstance(made, Placement)
    assert made.machine is machine
    assert made.host_of_rank[:4].tolist() == named(20, 20, 21, 21)
    assert (made.origin.strategy, made.origin.pattern) == ("morton", "fft:4x4")
    by_value = order(machine, [20, 21, 22, 23], Job(parse_pattern("fft:4x4"), 4))
    assert by_value.slot_of_rank.tolist() == list(range(16))


def test_ranks_that_are_not_the_slots_name_both_and_the_layout():
    with pytest.raises(UsageError) as caught:
        arrange(slots(named(1, 2), 24), "fft:8x8", "morton")
    assert (
        str(caught.value) == "pattern fft:8x8 has 64 ranks, but there are 48 slots (2 nodes x 24)"
    )
    assert caught.value.exit_code == 2


def test_an_unknown_strategy_names_those_there_are():
    with pytest.raises(
        UsageError, match=r"unknown strategy 'best'; choose from .*hilbert, morton,.* row-major"
    ):
        arrange(slots(named(1), 4), "ring", "best")


@pytest.fixture
def foreign(monkeypatch):
    """Register an ordering as another distribution would, by an entry point."""

    def install(function):
        class Entry:
            name = "foreign"

            def load(self):
                return function

        found = {"nidmap.orders": [Entry()]}
        monkeypatch.setattr("nidmap.placement.support.registry.entry_points", found.__getitem__)

    yield install
    orderings._orderings.known.pop("foreign", None)


def test_an_ordering_of_another_distribution_is_found(foreign):
    foreign(lambda pattern, on: on.with_order(np.arange(on.ranks)[::-1]))
    assert "foreign" in orderings.names()
    made = arrange(slots(named(1), 3), "ring", "foreign")
    assert (made.slot_of_rank.tolist(), made.origin.strategy) == ([2, 1, 0], "foreign")


@pytest.mark.parametrize(
    "broken",
    [
        lambda pattern, on: np.arange(on.ranks),
        lambda pattern, on: slots(named(9), 1).with_order(np.array([0])),
    ],
)
def test_a_broken_ordering_of_another_distribution_is_caught(foreign, broken):
    foreign(broken)
    with pytest.raises(PlanError, match="'foreign' returned an invalid order"):
        arrange(slots(named(1), 3), "ring", "foreign")


def test_head_of():
    assert head_of("JobID|NodeList|Start|End") == ({"id": 0, "nodes": 1, "start": 2, "end": 3}, "|")
    assert head_of("JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)") is None


def test_read_table():
    text = "JobID|NodeList|Start|End\n7|n[1-2]|1970-01-01T00:00:10|Unknown\n7.batch|n1|10|\n"
    assert (
        repr([(job.id, job.nodes.fold(), job.start, job.end) for job in read_table(text, "x")])
        == "[('7', 'n[1-2]', 10.0, inf)]"
    )


def test_parse_moment():
    assert parse_moment("1970-01-02T00:00:10") == 86410.0
    assert parse_moment("1970-01-02 02:00:10+02:00") == 86410.0
    assert parse_moment("86410") == 86410.0
    assert parse_moment("Unknown") is None


def test_plain_zone():
    assert _plain_zone("2024-05-01T12:00:00Z") == "2024-05-01T12:00:00+00:00"
    assert _plain_zone("2024-05-01T12:00:00+0200") == "2024-05-01T12:00:00+02:00"


def test_parse_duration():
    assert parse_duration("1-02:00:01") == 93601.0
    assert parse_duration("00:10") == 10.0
    assert parse_duration("7") == 7.0


def test_queued_ppn():
    assert _queued_ppn({"tasks_per_node": {"set": True, "number": 16}}, 4) == 16
    assert _queued_ppn({"tasks": 64}, 4) == 16
    assert _queued_ppn({"tasks": 4}, 4) == 0
    assert _queued_ppn({"tasks": 6}, 4) == 0


def test_set_number():
    assert _set_number({"set": True, "infinite": False, "number": 7}) == 7
    assert _set_number({"set": False}) is None


def test_read_log():
    line = "05/01/2024 12:00:00;E;7.pbs;user=ada jobname=lmp queue=workq start=10 "
    job = next(read_log(line + "exec_host=n1/0*4+n2/0*4 end=20 Exit_status=0\n", "log"))
    assert job.id == "7.pbs"
    assert job.user == "ada"
    assert job.nodes.fold() == "n[1-2]"
    assert job.end - job.start == 10.0


def test_all_to_alls_pairs():
    line = AllToAlls(np.zeros(2, int), np.array([4, 7]), np.array([1.0, 3.0]), np.ones(1))
    assert [x.tolist() for x in line.pairs()] == [[4, 7], [7, 4], [3.0, 3.0], [3.0, 3.0]]


def test_all_to_alls_rows():
    one = AllToAlls(np.zeros(3, int), np.arange(3), np.array([1.0, 2.0, 3.0]), np.ones(1))
    assert one.rows(1, 3, 3).tolist() == [[2.0, 4.0, 6.0], [3.0, 6.0, 9.0]]


def test_match_lines():
    assert [
        [x.tolist() for x in both] for both in match_lines(np.array([0, 1]), np.array([0, 2, 3]))
    ] == [[[0, 0, 1], [0, 1, 2]]]


def test_slurm_options():
    assert slurm_options(
        HeaderJob(2, ppn=4, constraint="gpu", nodelist=NodeList(["n1", "n2"]))
    ) == [
        "--nodes=2",
        "--ntasks-per-node=4",
        "--constraint=gpu",
        "--nodelist=n[1-2]",
        "--exclusive",
    ]


def test_pbs_options():
    job = HeaderJob(2, ppn=4, partition="big", nodelist=NodeList(["n1", "n2"]))
    assert pbs_options(job, "torque") == ["-q big", "-l nodes=n1:ppn=4+n2:ppn=4"]
    assert pbs_options(job, "pbs")[1:] == [
        "-l select=1:host=n1:mpiprocs=4+1:host=n2:mpiprocs=4",
        "-l place=scatter:excl",
    ]


def test_formats_for():
    assert formats_for("pbs") == [
        "nodelist",
        "lines",
        "nids",
        "cnames",
        "hostfile",
        "aprun",
        "pbs",
        "json",
    ]


def test_topology_conf():
    assert topology_conf(parse_spec("tree:2x2")).splitlines() == [
        "SwitchName=level1-0 Nodes=nid[00000-00001]",
        "SwitchName=level1-1 Nodes=nid[00002-00003]",
        "SwitchName=root Switches=level1-[0-1]",
    ]


def test_topology_yaml():
    assert topology_yaml(parse_spec("tree:2x1")).splitlines() == [
        "---",
        "- topology: nidmap",
        "  cluster_default: true",
        "  tree:",
        "    switches:",
        "      - switch: level1-0",
        "        nodes: nid[00000-00001]",
    ]


def test_known_fabric():
    assert not known_fabric(
        parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=1").topology
    ).adapts


def test_fabric_of():
    assert fabric_of(parse_spec("torus:4x4").topology).title == "Gemini"


def test_once():
    names_of = once(lambda machine: machine.names.tolist())
    assert names_of(machine := parse_spec("torus:2")) is names_of(machine)


def test_options():
    found = Options("torus:4x4,nodes=2", sizes=True)
    assert found.kind == "torus"
    assert found.dims(found.sizes, "extents", 4) == (4, 4)
    assert found.whole("nodes", 1) == 2


def test_split_figures():
    assert split_figures("shaheen2,routing=adaptive,process=2") == (
        "shaheen2",
        {"routing": "adaptive", "process": 2.0, "process_mark": "given"},
    )
    assert split_figures("torus:4x4,latency=0,bw=1", mixed=True) == (
        "torus:4x4,bw=1",
        {"latency": 0.0},
    )


def test_usual_strategy():
    assert usual_strategy("") == "compact"


def test_overfull():
    assert (
        overfull(nidmap.load_machine("shaheen2"), np.array([100]), np.array([500]))
        == "1 node gets more ranks than it has cores: nid00108 500 on 32"
    )


def test_finding():
    assert (
        str(Finding(7, "hex", "HEX 0x8 is not NID 7", source="a.txt"))
        == "a.txt:7: fault: HEX 0x8 is not NID 7"
    )


def test_traffic_sent_and_received():
    flows = Traffic.of(np.array([0, 0, 2]), np.array([1, 2, 2]), 10.0)
    assert [amounts.tolist() for amounts in flows.sent_and_received(3)] == [
        [20.0, 0.0, 0.0],
        [0.0, 10.0, 10.0],
    ]
