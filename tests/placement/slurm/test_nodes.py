# SPDX-License-Identifier: Apache-2.0
"""Which nodes are free: a real Slurm in every state it can be put into, and answers that lie."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import LaunchError, NidmapError, ParseError, UsageError
from nidmap.placement.readers import topology_conf
from nidmap.placement.scheduler.availability import slurm_availability
from nidmap.placement.slurm import command
from nidmap.placement.slurm.nodes import _parse_record, free_nodes, reservations, unknown_partition
from tests.real_slurm import needs_slurm, real_slurm
from tests.waiting import wait_until

NAMES = [f"nid{i:05d}" for i in range(64)]
KINDS = [("a,gpu", 4, 1), ("b", 8, 1), ("b,gpu", 8, 3)]

QUERY_HEADER = "NODELIST|PARTITION|AVAIL|STATE|CPUS|MEMORY|SOCKETS|CORES|WEIGHT|GRES|AVAIL_FEATURES"


@pytest.fixture(scope="module")
def cluster():
    """Return a cluster of unlike nodes: some busy, drained, reserved, in a downed partition."""
    kind = {name: KINDS[i % 3] for i, name in enumerate(NAMES)}
    with real_slurm(
        NAMES,
        real=0,
        features={n: k[0] for n, k in kind.items()},
        cores={n: k[1] for n, k in kind.items()},
        weights={n: k[2] for n, k in kind.items()},
        partitions={"main": NAMES[:60], "sub": NAMES[:16]},
        extra="PartitionName=off Nodes=nid[00060-00063] State=DOWN\n",
    ) as slurm:
        slurm.occupy(NAMES[3:6])
        slurm.drain(NAMES[8:10])
        slurm.scontrol(
            [
                "create reservation reservationname=r1 starttime=now duration=60 users=root "
                "nodes=nid[00020-00023]",
                "create reservation reservationname=m1 starttime=now duration=60 users=root "
                "flags=maint nodes=nid[00030-00031]",
                "create reservation reservationname=later starttime=now+3600 duration=60 "
                "users=root nodes=nid[00040-00041]",
            ]
        )
        yield slurm


@pytest.fixture
def asked(cluster, monkeypatch):
    """Point our own queries to the cluster, in an environment full of the user's habits."""
    hostile = {
        "SINFO_FORMAT": "x", "SINFO_PARTITION": "nope", "SLURM_TIME_FORMAT": "relative",
        "SINFO_ALL": "1", "SBATCH_PARTITION": "nope", "SQUEUE_STATES": "PD", "LANG": "de_DE",
    }  # fmt: skip
    for name, value in {**hostile, "SLURM_CONF": cluster.env["SLURM_CONF"]}.items():
        monkeypatch.setenv(name, value)
    return cluster


BUSY = {3, 4, 5, 8, 9, 20, 21, 22, 23, 30, 31, 60, 61, 62, 63}


def free_numbers(found):
    return {int(name.removeprefix("nid")) for name in found.names[found.free]}


def free_names():
    found = free_nodes()
    return found.names[found.free].tolist()


@needs_slurm
def test_everything(asked):
    found = free_nodes()
    assert found.names.tolist() == NAMES  # each once, though two partitions have it
    assert free_numbers(found) == set(range(64)) - BUSY
    assert slurm_availability(None, found).counts() == {
        "allocated": 3, "drained": 2, "idle": 49, "inactive": 4, "reserved": 6,
    }  # fmt: skip
    assert found.features[:3].tolist() == [k[0] for k in KINDS]
    assert found.weight[:3].tolist() == [k[2] for k in KINDS]
    assert set(found.partitions[0].split(",")) == {"main", "sub"}
    assert found.default_partition == "main"
    assert found.notes == ()


@needs_slurm
@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ({"partition": "sub"}, set(range(16)) - BUSY),
        ({"partition": "sub,main"}, set(range(60)) - BUSY),
        ({"partition": "off"}, set()),
        ({"constraint": "gpu"}, {i for i in range(64) if i % 3 != 1} - BUSY),
        ({"constraint": "b&gpu"}, {i for i in range(64) if i % 3 == 2} - BUSY),
        ({"partition": "sub", "constraint": "a|b&gpu"}, {0, 2, 6, 11, 12, 14, 15}),
        ({"reservation": "r1"}, {20, 21, 22, 23}),
        ({"reservation": "m1"}, {30, 31}),
        ({"reservation": "r1", "constraint": "b"}, {20, 22, 23}),
    ],
)  # fmt: skip
def test_narrowed(asked, options, numbers):
    assert free_numbers(free_nodes(**options)) == numbers


@needs_slurm
def test_a_reservation_that_has_not_begun(asked):
    found = free_nodes(reservation="later")
    assert free_numbers(found) == {40, 41}
    assert "reservation later is not active: it starts 2" in found.notes[0]
    assert [r.name for r in reservations() if r.active] == ["r1", "m1"]


@needs_slurm
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"partition": "nope"}, ParseError, "no partition 'nope'; choose from main, off, sub"),
        ({"partition": "main,nope"}, ParseError, "no partition 'nope'"),
        ({"partition": ""}, UsageError, "is not a name"),
        ({"partition": "a b"}, UsageError, "is not a name"),
        ({"reservation": "nope"}, ParseError, "no reservation 'nope'; choose from r1, m1, later"),
        ({"constraint": "tpu"}, ParseError, "'tpu', which no node has; choose from a, b, gpu"),
    ],
)
def test_what_slurm_does_not_have(asked, options, error, words):
    with pytest.raises(error) as caught:
        free_nodes(**options)
    assert words in str(caught.value)


@needs_slurm
def test_a_tree(monkeypatch):
    conf = (
        "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[2-3]\nSwitchName=top Switches=s[0-1]\n"
    )
    names = ["n0", "n1", "n2", "n3"]
    with real_slurm(names, real=0, plugin="tree", topology_conf=conf) as slurm:
        monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
        monkeypatch.setenv("SLURM_TOPO_LEN", "30")
        said = command.ask_slurm(["scontrol", "show", "topology"]).output
    dump = topology_conf.read(said, "scontrol")
    assert [(s.name, s.level) for s in dump.switches] == [("s0", 0), ("s1", 0), ("top", 1)]


@needs_slurm
def test_a_dead_and_a_frozen_slurm_are_errors_in_time(monkeypatch):
    assert command.TIMEOUT < 5
    monkeypatch.setattr(command, "TIMEOUT", 1.0)
    with real_slurm(["n0", "n1"], real=0) as slurm:
        monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
        slurm.freeze_controller()
        with pytest.raises(LaunchError, match=r"sinfo did not answer in 1 s; Slurm is down"):
            free_nodes()
        slurm.thaw_controller()
        slurm.stop_controller()
        with pytest.raises(LaunchError, match=r"Slurm is down"):
            free_nodes()


@needs_slurm
def test_planned_nodes_are_not_free(monkeypatch):
    """Backfill plans nodes for a large job that waits; sinfo shows them with a minus."""
    names = [f"n{i}" for i in range(8)]
    with real_slurm(
        names, real=0, scheduler="sched/backfill", scheduling="bf_interval=1,sched_interval=1"
    ) as slurm:
        monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
        slurm.run(["salloc", "--no-shell", "-N4", "--exclusive", "-t10"])
        slurm.run(["sbatch", "-N8", "--exclusive", "-t10", "--wrap=true"])
        wait_until(lambda: free_nodes().planned.any())
        found = free_nodes()
    assert found.planned.sum() == 4
    assert slurm_availability(None, found).counts() == {"allocated": 4, "planned": 4}
    assert not found.free.any()


# Answers that a real Slurm does not give on demand.


def says(fake, text, name="sinfo"):
    path = fake("", name)
    path.with_suffix(".txt").write_bytes(text.encode() if isinstance(text, str) else text)
    path.write_text(f'#!/bin/sh\ncat "{path.with_suffix(".txt")}"\n')


@pytest.mark.parametrize(
    "text",
    [
        "", "\n\n", "junk\n", "\x1b[2J\x1b[31mnid00001 idle\n", "\x7fELF\x01\x02\x03",
        QUERY_HEADER + "\n",
        QUERY_HEADER + "\nnid[00001-00004|main*|up|idle|4|1000|1|4|1|(null)|a\n",
        QUERY_HEADER + "\nnid00001|main*|up|id",
        QUERY_HEADER + "\nnid[0-999999999999]|main*|up|idle|4|1000|1|4|1|(null)|a\n",
        "<html><body>502 Bad Gateway</body></html>\n", '{"nodes": []}\n',
        "NODELIST\nnid00001\n", "nid00001 idle\n" * 3 + "x" * 100_000,
    ],
)  # fmt: skip
def test_garbage_is_a_launch_error_in_one_line(fake, text):
    says(fake, text)
    with pytest.raises(LaunchError) as caught:
        free_nodes()
    assert str(caught.value).isprintable()
    assert "sinfo" in str(caught.value)


def test_ten_megabytes_of_rows(fake):
    about = "main*|up|idle|4|1000|1|4|1|(null)|" + "f" * 120
    rows = [f"nid{i:05d}|{about}" for i in range(62_000)]
    says(fake, "\n".join([QUERY_HEADER, *rows, ""]))
    found = free_nodes()
    assert int(found.free.sum()) == 62_000
    assert "reservations are ignored: scontrol failed" in found.notes[0]


def test_a_state_that_nobody_knows_is_not_free(fake):
    says(fake, QUERY_HEADER + "\nn1|main*|up|flying|4|1000|1|4|1|(null)|a\n")
    assert not free_nodes().free.any()


def test_rows_of_two_columns(fake):
    rows = "nid00001 idle\nnid00002 alloc\nnid00001 idle\nnid00003 idle-\nnid00004 drng*\n"
    says(fake, "NODELIST STATE\n" + rows)
    assert free_names() == ["nid00001"]


def test_one_cluster_and_several(fake):
    says(fake, "CLUSTER: daint\nNODELIST STATE\nn1 idle\n")
    assert free_names() == ["n1"]
    says(fake, "CLUSTER: daint\nNODELIST STATE\nn1 idle\n\nCLUSTER: eiger\nNODELIST STATE\n")
    with pytest.raises(LaunchError, match="several clusters; set SLURM_CLUSTERS"):
        free_nodes()


def test_an_unreadable_reservation_matters_only_where_it_was_asked_for(fake):
    says(fake, "NODELIST STATE\nn1 idle\nn2 idle\n")
    says(fake, "ReservationName=\x1b[31m\nStartTime", "scontrol")
    found = free_nodes()
    assert int(found.free.sum()) == 2
    assert found.notes[0].isprintable()
    with pytest.raises(LaunchError, match="scontrol show reservation printed"):
        free_nodes(reservation="r1")


def test_no_reservations(fake):
    says(fake, "No reservations in the system\n", "scontrol")
    assert reservations() == ()


@given(st.text(max_size=200))
def test_any_line_is_a_reservation_or_an_error(line):
    try:
        found = _parse_record(line)
    except NidmapError as error:
        assert isinstance(error, LaunchError)  # noqa: PT017  # the other way is an answer too
        assert str(error).isprintable()  # noqa: PT017
    else:
        assert isinstance(found.nodes, tuple)


def test_states_are_counted(fake):
    says(fake, "NODELIST STATE\nn[1-3] idle\nn[4-5] alloc\nn6 idle~\nn7 idle*\nn8 plnd\n")
    found = free_nodes()
    assert slurm_availability(None, found).counts() == {
        "allocated": 2,
        "idle": 3,
        "not_responding": 1,
        "planned": 1,
        "powered_down": 1,
    }
    assert found.free.tolist() == [True] * 3 + [False] * 2 + [True] + [False] * 2


def test_unknown_partition():
    assert unknown_partition("gpu", ["short", "long"]) == (
        "Slurm has no partition 'gpu'",
        "choose from long, short",
    )
