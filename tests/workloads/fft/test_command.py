# SPDX-License-Identifier: Apache-2.0
"""``nidmap bench fft`` on real ranks."""

import json

import pytest

from nidmap.workloads.fft.command import parse_extents
from tests.workloads.fft.test_ranks import YIELD
from tests.workloads.samples import load


@pytest.mark.usefixtures("once")
def test_ways_and_samples(bench, tmp_path):
    name = tmp_path / "fft.csv"
    words = ["fft", "--shape", "12x8x10", "--grid", "pencil", "--kind", "r2c", "--transpose", "all"]
    done = bench([*words, "--repeat", "3", "--json", "-o", str(name)], 4, env=YIELD)
    found = json.loads(done.stdout)
    assert {case["transpose"] for case in found["cases"]} == {"alltoall", "vector"}
    assert {case["ranks"] for case in found["cases"]} == {4}
    phases = ["total", "communication", "transform", "rearrange", "forward", "backward"]
    assert all(list(case["seconds"]) == phases for case in found["cases"])
    header, frame = load(str(name))
    assert header["workload"] == "fft"
    assert len(frame) == 2 * (3 + 1) * len(phases)
    assert set(frame["n"]) == {"12x8x10"}


@pytest.mark.usefixtures("once")
def test_real_data_are_verified(bench):
    done = bench(["fft", "--shape", "9x8x6", "--kind", "r2c", "--repeat", "1"], 3)
    assert "alltoall" in done.stdout


@pytest.mark.usefixtures("once")
def test_bad_words_are_said_once(bench):
    done = bench(["fft", "--shape", "8x8x8", "--grid", "2x2"], 3, check=False)
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if line.startswith("nidmap:")]
    assert said == [
        "nidmap: a process grid of 2x2 does not match 3 ranks; "
        "rows times columns must be the number of ranks"
    ]


def test_parse_extents():
    assert parse_extents("8x6x4") == (8, 6, 4)
    assert parse_extents("64") == (64, 64, 64)
    assert parse_extents("8x6") == (8, 1, 6)
