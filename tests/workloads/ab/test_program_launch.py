# SPDX-License-Identifier: Apache-2.0
"""``nidmap ab`` with a real mpiexec: every launch has its ranks where its arm says."""

import sys

import pytest

from tests.rankmap.mpis import ROOT, mpi, patiently
from tests.workloads.samples import load

pytestmark = pytest.mark.mpi
__all__ = ["mpi"]

NODES = ["nid00009", "nid00003", "nid00007"]
SLOTS = [2, 0, 1]
RANK = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK", "intel": "PMI_RANK"}
HOSTS = {
    "openmpi": ["--host", ",".join(f"{node}:1" for node in NODES)],
    "mpich": ["-hosts", ",".join(NODES), "-ppn", "1"],
    "intel": ["-hosts", ",".join(NODES), "-ppn", "1"],
}


def places(text):
    """Return the node of each rank, as the program said."""
    said = [line.split()[1:] for line in text.splitlines() if line.startswith("at ")]
    return [node for _, node in sorted(said)]


def test_both_arms_run_and_are_compared(mpi, tmp_path):
    name, _, env, words = mpi
    (tmp_path / "odd.slots").write_text("".join(f"{slot}\n" for slot in SLOTS))
    program = f'printf "at %s %s\\ntook 1.5\\n" "${RANK[name]}" "$(uname -n)"'
    command = [
        sys.executable, "-m", "nidmap", "ab", "--order", "odd.slots", "--blocks", "1",
        "--warmup", "0", "--time-regex", "took (.*)", "-o", "ab.csv", "--",
        "mpiexec", *words, *HOSTS[name], "-n", "3", "sh", "-c", program,
    ]  # fmt: skip
    env = {**env, "PYTHONPATH": ROOT}
    code, out, talk = patiently(command, env, tmp_path, lambda out: "not enough" in out)
    assert code == 0, talk + out
    header, frame = load(str(tmp_path / "ab.csv"))
    assert header["hosts"] == NODES
    assert frame.set_index("arm")["max"].to_dict() == {"default": 1.5, "order": 1.5}
    for arm, expected in (("default", NODES), ("order", [NODES[slot] for slot in SLOTS])):
        (path,) = (tmp_path / header["folder"]).glob(f"*-{arm}.out")
        assert places(path.read_text()) == expected
