"""A/B measurements on real ranks, on made-up nodes."""

import json

import pytest

from placement.errors import UsageError
from workloads.ab.arms import Comparison, arguments, arms_of, maker
from workloads.results import load

pytestmark = pytest.mark.mpi

NODES = {"NIDMAP_PROCESSOR_NAMES": "nid00000,nid00001"}
AB = ["ab", "--workload", "alltoall", "-w", "bytes=256", "--pattern", "stencil:2x2"]
QUICK = ["--blocks", "6", "--repeat", "1", "--json"]


def members(document):
    return {arm["name"]: arm["members"] for arm in document["arms"]}


@pytest.mark.usefixtures("once")
def test_two_orders_two_controls_and_their_samples(bench, tmp_path):
    out = tmp_path / "ab.csv"
    words = [*AB, *QUICK, "--orders", "default,row-major", "-m", "torus:2x2", "-o", str(out)]
    document = json.loads(bench(words, 4, env=NODES).stdout)
    arms = members(document)
    assert arms["default"] == arms["default again"] == [0, 1, 2, 3]
    assert arms["row-major"] == [0, 2, 1, 3]  # ranks 0 and 2 share a node
    assert sorted(arms["random"]) == [0, 1, 2, 3]
    assert document["skew"]["worst"] >= document["skew"]["median"] > 0
    assert [c["blocks"] for c in document["comparisons"]] == [6] * 6
    assert all(c["low"] <= c["ratio"] for c in document["comparisons"] if c["low"])
    header, frame = load(str(out))
    assert (header["pattern"], header["machine"], header["bytes"]) == (
        "stencil:2x2",
        "torus:2x2",
        256,
    )
    total = frame[frame["phase"] == "total"]
    assert len(total) == (6 + 1) * 4 * 2 * (1 + 1)
    assert set(total[total["block"] == 0]["warmup"]) == {1}
    assert set(total[total["repetition"] == 0]["warmup"]) == {1}
    for _, block in total.groupby("block"):
        turns = block.drop_duplicates("visit")["arm"].tolist()
        assert turns == turns[::-1]


@pytest.mark.usefixtures("once")
def test_node_sets_are_measured_while_the_others_sleep(bench):
    hosts = {"NIDMAP_PROCESSOR_NAMES": "nid00000,nid00001,nid00002"}
    sets = ["--nodes", "low=nid00000,nid00001", "--nodes", "high=nid[00001-00002]"]
    words = [*AB, *QUICK, "--orders", "default", *sets, "--no-controls"]
    document = json.loads(bench(words, 6, env=hosts).stdout)
    assert members(document) == {"low": [0, 1, 3, 4], "high": [1, 2, 4, 5]}
    assert document["comparisons"][0]["blocks"] == 6


@pytest.mark.usefixtures("once")
def test_a_planner_chooses_among_the_nodes_of_the_job(bench):
    hosts = {"NIDMAP_PROCESSOR_NAMES": "nid00000,nid00001,nid00002,nid00003"}
    words = [*AB, *QUICK, "--orders", "default", "-m", "torus:4x2", "--no-controls"]
    sets = ["--nodes", "#1-2", "--nodes", "compact:2"]
    document = json.loads(bench([*words, *sets], 4, env=hosts).stdout)
    assert members(document)["set 1"] == [1, 2]
    assert len(members(document)["compact:2"]) == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--orders", "default,nothing"], "no order nothing"),
        (["-w", "bits=4"], "-w bits=4 is not an option of the workload"),
        (["--launches", "2"], "--launches starts launches of its own"),
    ],
)
def test_wrong_wishes_are_one_error_on_all_ranks(bench, words, says):
    done = bench([*AB, "--orders", "default,random", *words], 3, env=NODES, check=False)
    lines = [line for line in done.stderr.splitlines() if line.startswith("nidmap: ")]
    assert done.returncode == 2
    assert len(lines) == 1
    assert says in lines[0]


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ({"nodes": ("x",)}, "x is not a node of this job; it has a, b"),
        ({"nodes": ("a", "a,b")}, "arms of different numbers of ranks: 2 on set 1, 4 on set 2"),
        ({"nodes": ("compact:1",)}, "compact:1 needs a machine"),
        ({"orders": ("default",), "controls": False}, "one arm alone"),
        ({"nodes": ("s=a", "s=b")}, "s is asked for twice"),
    ],
)
def test_arms_that_make_no_sense_are_refused(wish, says, monkeypatch):
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)
    with pytest.raises(UsageError, match=says):
        arms_of(HOSTS, Comparison(**{"orders": ("default",), **wish}))


def test_several_launches_are_started_and_pooled(place, tmp_path):
    import subprocess

    from tests.workloads.conftest import variables

    out = tmp_path / "pooled.csv"
    words = [*AB, *QUICK, "--orders", "default,random", "--blocks", "3", "--launches", "2"]
    command = [f"{place}/bin/python", "-m", "nidmap", "bench", *words, "-n", "2", "-o", str(out)]
    done = subprocess.run(
        command, env=variables(place), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["launches"] == 2
    assert [c["blocks"] for c in document["comparisons"]] == [6] * 4
    assert list(tmp_path.iterdir()) == [out]
    again = [f"{place}/bin/python", "-m", "nidmap", "bench", "ab", "--pool", str(out), "--json"]
    done = subprocess.run(
        again, env=variables(place), capture_output=True, text=True, timeout=600, check=True
    )
    assert json.loads(done.stdout)["comparisons"] == document["comparisons"]


HOSTS = [("a", ""), ("b", ""), ("a", ""), ("b", "")]


def test_an_order_may_come_from_a_file(tmp_path):
    slots = tmp_path / "order.slots"
    slots.write_text("3\n2\n1\n0\n")
    arms = arms_of(HOSTS, Comparison(("default", str(slots)), controls=False))
    assert arms[1].members == [3, 1, 2, 0]  # slots 0, 1 are a's ranks 0, 2; slots 2, 3 b's
    slots.write_text("3\n2\n1\n1\n")
    with pytest.raises(Exception, match=r"order\.slots"):
        arms_of(HOSTS, Comparison(("default", str(slots)), controls=False))


def test_a_random_order_depends_on_the_seed_alone():
    hosts = [("a", "")] * 64
    found = [arms_of(hosts, Comparison(("default", "random"), seed=s))[1].members for s in "112"]
    assert found[0] == found[1] != found[2]
    assert sorted(found[2]) == list(range(64))


def test_an_order_needs_a_pattern():
    with pytest.raises(UsageError, match="--pattern says it"):
        arms_of(HOSTS, Comparison(("default", "row-major")))


def test_the_same_order_is_said_to_be_the_same():
    arms = arms_of(HOSTS, Comparison(("default", "row-major"), pattern="stencil:2x2,periodic"))
    same = arms[1].members == arms[0].members
    assert bool(arms[1].notes and "same ranks" in arms[1].notes[-1]) == same


def test_options_are_read_as_the_trial_wants_them():
    def trial(comm, *, n: str = "8x8", real: bool = False, x: float = 1.0, seed=0):
        pass

    read = arguments(trial, ["n=4x8x16", "real=yes", "x=0.5"])
    assert read == {"n": "4x8x16", "real": True, "x": 0.5}
    for wrong in ("seed=3", "n", "y=1", "real=maybe", "x=wide"):
        with pytest.raises(UsageError):
            arguments(trial, [wrong])
    with pytest.raises(UsageError, match="no workload"):
        maker("os")
