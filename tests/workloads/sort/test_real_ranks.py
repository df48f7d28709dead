# SPDX-License-Identifier: Apache-2.0
"""Sorts on real ranks, many cases in one launch: eight ranks, and parts of them of every size."""

import pytest

pytestmark = pytest.mark.mpi

CASES = """
import itertools
import numpy as np
from mpi4py import MPI
from nidmap.workloads.sort.data import KINDS, make_items
from nidmap.workloads.sort.partition import SortPlan, keys_of, sort_items
from nidmap.workloads.sort.ranks import Ranks
from nidmap.workloads.sort.command import Sort

world = MPI.COMM_WORLD

def whole(comm, items):
    return np.concatenate(comm.allgather(items))

def check(comm, items, **how):
    before = items.copy()
    got = sort_items(Ranks(comm), items, SortPlan(**how))
    assert items.tobytes() == before.tobytes()
    assert len(got) == len(items) and got.dtype == items.dtype
    everything = whole(comm, items)
    wanted = everything[np.argsort(keys_of(everything), kind="stable")]
    assert whole(comm, got).tobytes() == wanted.tobytes()

def options():
    for k, choice in enumerate(itertools.product(
        ("histogram", "bisection"), ("alltoallv", "sparse", "auto"), ("sort", "auto"),
        ("mpsort", "mergesort"))):
        yield k, dict(zip(("splitters", "exchange", "final", "algorithm"), choice))

def battery(comm):
    done = 0
    kinds = list(KINDS)
    for k, how in options():
        step = 3 if comm.size < 5 else 12  # ranks share cores here: few rounds of many
        if k % step != comm.size % step:
            continue
        kind, payload = kinds[k % len(kinds)], (0, 16, 3)[k % 3]
        items = make_items(kind, comm.rank, comm.size, 40 + 17 * k, payload=payload)
        check(comm, items, **how)
        done += 1
    for count in ((7 * comm.rank) % 5, 0, 1000 * (comm.rank == comm.size - 1)):
        items = make_items("groups", comm.rank, comm.size, count, payload=16)
        check(comm, items)
        done += 1
    # in many pieces, as beyond 2**31 bytes
    ranks = Ranks(comm)
    send = np.arange(comm.size) + comm.rank
    items = np.arange(send.sum()) + 1000 * comm.rank
    receive = ranks.swap(np.ascontiguousarray(send[:, None]))[:, 0]
    one, two = (np.empty(receive.sum(), items.dtype) for _ in range(2))
    ranks.alltoallv(items, send, one, receive)
    ranks.sparse(items, send, two, receive, piece=16)
    assert one.tolist() == two.tolist()
    return done + 1

for size in SIZES:
    comm = world.Split(int(world.rank >= size), world.rank)
    done = battery(comm) if world.rank < size else 0
    comm.Free()
    if world.rank == 0:
        print(size, done, flush=True)
    world.Barrier()

made = Sort(world, items=3000, data="groups", payload=16)
for _ in range(2):
    seconds = made.run()
assert list(seconds)[2:] == ["LocalSort1", "FindEdges", "SolveLayout", "Exchange", "LocalSort2"]
assert seconds["total"] >= sum(list(seconds.values())[2:]) * 0.99
made.verify()
made.result = made.result[::-1].copy()
try:
    made.verify()
except Exception as error:
    said = str(error)
assert len(set(world.allgather(said))) == 1
if world.rank == 0:
    print(said)
"""


def test_every_size_and_option_against_a_sort_of_everything(launch, sizes):
    *lines, last = launch(CASES.replace("SIZES", str(sizes)), sizes[-1]).stdout.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(sizes)
    assert all(int(line.split()[1]) >= 6 for line in lines)
    assert "out of order" in last


@pytest.mark.usefixtures("once")
def test_the_command_checks_what_it_sorted_and_counts_rounds(bench):
    import json

    words = ["sort", "--items", "1e3,2^11", "--repeat", "2", "--payload", "8", "--json"]
    document = json.loads(bench(words, 3).stdout)
    assert [case["items"] for case in document["cases"]] == [1000, 2048]
    case = document["cases"][1]
    assert {"LocalSort1", "FindEdges", "SolveLayout", "Exchange", "LocalSort2"} < set(
        case["seconds"]
    )
    assert 1 <= case["rounds"] <= 4


MEMORY = """
import numpy as np
from mpi4py import MPI
from nidmap.workloads.sort.data import make_items
from nidmap.workloads.sort.partition import sort_items
from nidmap.workloads.sort.ranks import Ranks

world = MPI.COMM_WORLD

def peak():
    with open("/proc/self/status") as stream:
        return int(next(line for line in stream if line.startswith("VmHWM")).split()[1]) * 1024

def reset():
    with open("/proc/self/clear_refs", "w") as stream:
        stream.write("5")

sort_items(Ranks(world), np.arange(10000, dtype=np.uint64))
for payload in (0, 8, 16):
    size = 96 << 20
    reset()
    before = peak()
    items = make_items("random", world.rank, world.size, size // (8 + payload), payload=payload)
    reset()
    out = sort_items(Ranks(world), items)
    ratio = world.allreduce((peak() - before) / size, op=MPI.MAX)
    del items, out
    if world.rank == 0:
        print("payload", payload, round(ratio, 2))
"""


def test_memory_is_at_most_three_and_a_half_times_the_items(place):
    import os

    from tests.workloads.conftest import started

    if "openmpi" in place or not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("counts the pages of MPI's shared memory as well, or no Linux")
    done = started(place, 2, ["-m", "mpi4py", "-c", MEMORY])
    ratios = {
        line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines()
    }
    assert len(ratios) == 3
    assert max(ratios.values()) <= 3.5, ratios
