# SPDX-License-Identifier: Apache-2.0
"""All-to-all bandwidth on real ranks."""

import json

import pytest

from nidmap.workloads.alltoall import bandwidths, calls
from nidmap.workloads.options import Sizes
from tests.workloads.samples import load

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [1, 3])
def test_every_block_arrives_and_the_figures_are_its_own(bench, ranks, tmp_path):
    out = tmp_path / "a2a.csv"
    words = ["alltoall", "--bytes", "0,1,8,5000", "--repeat", "3", "--json"]
    done = bench([*words, "-o", str(out)], ranks)
    document = json.loads(done.stdout)
    assert [case["bytes"] for case in document["cases"]] == [0, 1, 8, 5000]
    for case in document["cases"]:
        rate = (ranks - 1) * case["bytes"] / case["seconds"]["total"]["median"]
        assert case["bandwidth"]["process"] == pytest.approx(rate)
        assert case["bandwidth"]["node"] == pytest.approx(ranks * rate)
        assert case["bandwidth"]["off_node"] == 0
    header, frame = load(str(out))
    assert header["versions"]["mpi4py"]
    counts = frame[frame["phase"] == "total"].groupby(["bytes", "warmup"]).size()
    assert set(counts.xs(0, level="warmup")) == {3}
    assert set(counts.xs(1, level="warmup")) == {1}


@pytest.mark.usefixtures("once")
def test_figures_are_of_the_fullest_of_made_up_nodes(bench):
    env = {
        "NIDMAP_PROCESSOR_NAMES": "nid00001,nid00002,nid00001,nid00002,nid00001,nid00001,nid00002"
    }
    words = ["alltoall", "--bytes", "100", "--json"]
    document = json.loads(bench([*words, "--repeat", "2"], 7, env=env).stdout)
    assert (document["nodes"], document["ppn"], document["counts"]) == (2, 4, [4, 3])
    (case,) = document["cases"]
    assert (case["ppn"], case["ranks"], case["off_node"]) == (4, 7, 12)


def test_what_does_not_fit_is_refused_alike_on_all_ranks(bench):
    done = bench(["alltoall", "--bytes", "500GB"], 3, check=False)
    assert done.returncode == 3
    lines = [line for line in done.stderr.splitlines() if line.startswith("nidmap: ")]
    assert len(lines) == 1
    assert "an all-to-all of 500 GB per pair needs" in lines[0]


def test_sizes_are_read():
    read = Sizes().convert
    assert read("8-64", None, None) == (8, 16, 32, 64)
    assert read("1,2KiB,3kB,4MiB", None, None) == (1, 2048, 3000, 4 << 20)
    import click

    for wrong in ("x", "8-", "64-8", "0-8", "-8", "8,,9"):
        with pytest.raises(click.BadParameter):
            read(wrong, None, None)


def test_bandwidth_is_of_what_goes_to_others():
    case = {"bytes": 1 << 20, "ranks": 64, "ppn": 32, "off_node": 32 * 32}
    found = bandwidths(case, 1.0)
    assert found["process"] == 63 * 2**20
    assert found["node"] == 32 * 63 * 2**20
    assert found["off_node"] == 1024 * 2**20


def test_calls():
    assert calls(8) == 64
    assert calls(16384) == 4
    assert calls(1 << 22) == 1
