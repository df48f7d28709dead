# SPDX-License-Identifier: Apache-2.0
"""Bucket sorts on real ranks: all schemes of several problems in one launch."""

import json

import pytest

pytestmark = pytest.mark.mpi

CASES = """
from mpi4py import MPI
from nidmap.placement.errors import NidmapError
from nidmap.workloads.isx import SCHEMES, STAGES, Isx

world = MPI.COMM_WORLD
PROBLEMS = (("strong", 10007, "i4"), ("weak", 500, "u8"), ("weak_iso", 90, "i4"))
for turn, size in enumerate(SIZES):
    comm = world.Split(int(world.rank >= size), world.rank)
    if world.rank < size:
        for mode, keys, dtype in PROBLEMS if size == 3 else PROBLEMS[turn % 3 :][:1]:
            made = Isx(comm, mode=mode, keys=keys, dtype=dtype)
            first = None
            for scheme in SCHEMES:
                made.exchange = scheme
                for _ in range(2):
                    seconds = made.run()
                    stages = [seconds[name] for name in STAGES]
                    assert seconds["total"] >= 0.99 * sum(stages[1:])
                    assert seconds["communication"] == stages[2] + stages[3]
                made.verify()
                first = made.result.copy() if first is None else first
                assert (first == made.result).all()
            made.free()
        if comm.rank == 0:
            print(size, flush=True)
    comm.Free()
    world.Barrier()
made = Isx(world, keys=1000)
made.run()
made.result[:1] = 2**30
try:
    made.verify()
except NidmapError as error:
    said = f"{error.exit_code} {error}"
assert len(set(world.allgather(said))) == 1
if world.rank == 0:
    print(said)
"""


def test_every_scheme_sorts_on_every_number_of_ranks(launch, sizes):
    *lines, last = launch(CASES.replace("SIZES", str(sizes)), sizes[-1]).stdout.splitlines()
    assert [int(line) for line in lines] == list(sizes)
    assert last.startswith("1 the bucket sort is wrong")
    assert "outside its rank's bucket" in last


@pytest.mark.usefixtures("once")
def test_several_schemes_in_one_job_and_right_logs(bench, tmp_path):
    from tests.workloads.samples import load

    path = tmp_path / "isx.csv"
    words = ["isx", "--keys", "1000", "--exchange", "alltoallv,naive,random"]
    done = bench([*words, "--repeat", "3", "-o", str(path), "--json"], 3)
    document = json.loads(done.stdout)
    assert document["problem"]["keys"] == 3000
    assert "PCG64DXSM" in document["generator"]
    assert len(document["cases"]) == 3
    assert document["node_bytes"]["ranks"] == pytest.approx(8000)
    _, frame = load(str(path))
    stages = ["LocalBucketing", "AssignBuckets", "KeyExchange", "LocalSort"]
    kept = frame[frame.warmup == 0]
    assert len(kept) == 3 * 3 * 7
    table = kept.pivot(index=["exchange", "repetition"], columns="phase", values="mean")
    assert len(table) == 9
    # every iteration's own stages lie in its own total, generation left out
    assert (table["total"] >= 0.999 * table[stages].sum(axis=1)).all()
    # interleaved: within a repetition no scheme is always first
    order = kept[kept.phase == "total"].groupby("repetition")["exchange"].first()
    assert len(order.drop_duplicates()) == 3
