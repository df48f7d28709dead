"""Sorts on real ranks, many cases in one launch: eight ranks, and parts of them of every size."""

import pytest

pytestmark = pytest.mark.mpi

CASES = """
import itertools
import numpy as np
from mpi4py import MPI
from workloads.sort import mpsort
from workloads.sort.data import DTYPES, KINDS, make
from workloads.sort.keys import key_words
from workloads.sort.ranks import Ranks
from workloads.sort.trial import trial

world = MPI.COMM_WORLD

def whole(comm, items):
    return np.concatenate(comm.allgather(items))

def expected(items, key):
    words = key_words(items, key)[0]
    return items[np.lexsort(tuple(words[::-1]))]

def check(comm, items, key, counts=None, **how):
    before = items.copy()
    got = mpsort(items, key, comm, counts, **how)
    assert items.tobytes() == before.tobytes()
    wanted = len(items) if counts is None else int(np.broadcast_to(counts, comm.size)[comm.rank])
    assert len(got) == wanted and got.dtype == items.dtype
    assert whole(comm, got).tobytes() == expected(whole(comm, items), key).tobytes()

def options():
    for k, choice in enumerate(itertools.product(
        ("histogram", "bisection"), ("alltoallv", "sparse", "auto"), ("merge", "sort", "auto"),
        ("mpsort", "mergesort"))):
        yield k, dict(zip(("splitters", "exchange", "final", "algorithm"), choice))

def battery(comm):
    done = 0
    kinds, dtypes = list(KINDS), list(DTYPES)
    for k, how in options():
        step = 3 if comm.size < 5 else 12  # ranks share cores here: few rounds of many
        if k % step != comm.size % step:
            continue
        kind, dtype = kinds[k % len(kinds)], dtypes[k % len(dtypes)]
        payload = (0, 16, 3)[k % 3]
        items = make(kind, comm.rank, comm.size, 40 + 17 * k, seed=k, dtype=dtype, payload=payload)
        brought = np.array(comm.allgather(len(items)))
        counts = brought if k % 4 else np.append(brought.sum(), 0 * brought[1:])  # all on one
        check(comm, items, "key" if payload else None, counts, **how)
        check(comm, items, "key" if payload else None, **how)
        done += 2
    rng = np.random.default_rng(comm.rank)
    for count in ((7 * comm.rank) % 5, 0, 1000 * (comm.rank == comm.size - 1)):
        rows = rng.normal(size=(count, 3))
        keys = rng.integers(-2, 2, count, np.int8)
        got = mpsort(rows, lambda given: keys, comm)
        mine = np.concatenate([keys[:, None], rows], axis=1)
        everything = whole(comm, mine)
        order = np.argsort(everything[:, 0], kind="stable")
        assert whole(comm, got).tobytes() == everything[order, 1:].tobytes()
        got = mpsort(rows, keys, comm, len(rows))
        done += 2
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

made = trial(world, items=3000, data="groups", payload=16, seed=3)
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

WRONG = """
import numpy as np
from mpi4py import MPI
from placement.errors import NidmapError
from workloads.sort import mpsort

world = MPI.COMM_WORLD
me, last = world.rank, world.rank == world.size - 1
ints = np.arange(4)

def pairs(kind):
    return np.zeros(4, [("key", kind), ("x", "f8")])

nan = np.array([1.0, np.nan])
other_counts = [3, 5] + [4] * (world.size - 2)
two_keys = np.zeros(4, [("key", "i8"), ("x", "i8")])
CASES = {
    "floats": lambda: mpsort(np.ones(3)),
    "nan": lambda: mpsort(nan),
    "objects": lambda: mpsort(np.array([1, "a"], object)),
    "object field": lambda: mpsort(np.zeros(2, [("key", "i8"), ("o", "O")]), "key"),
    "strings": lambda: mpsort(np.array(["b", "a"])),
    "bools": lambda: mpsort(np.array([True])),
    "dates": lambda: mpsort(np.array(["2001-01-01"], "M8[D]")),
    "scalar": lambda: mpsort(np.int64(3)),
    "no field": lambda: mpsort(pairs("i8"), "kay"),
    "no key": lambda: mpsort(pairs("i8")),
    "float field": lambda: mpsort(pairs("f8"), "x"),
    "few keys": lambda: mpsort(ints, ints[:3] if last else ints),
    "failing key": lambda: mpsort(ints, lambda given: 1 // 0),
    "sum": lambda: mpsort(ints, None, None, 5 if last else 4),
    "sum of all": lambda: mpsort(ints, None, None, [1] * world.size),
    "negative": lambda: mpsort(ints, None, None, -1 if last else 4),
    "shape": lambda: mpsort(ints, None, None, [4]),
    "fraction": lambda: mpsort(ints, None, None, 4.5),
    "different counts": lambda: mpsort(ints, None, None, np.roll(other_counts, me)),
    "different dtype": lambda: mpsort(ints.astype("i4") if last else ints),
    "different key": lambda: mpsort(two_keys, "x" if last else "key"),
    "different options": lambda: mpsort(ints, splitters="bisection" if last else "histogram"),
    "unknown option": lambda: mpsort(ints, splitters="guess"),
    "one rank's rows": lambda: mpsort(np.zeros((4, 2), int) if last else ints, key=ints),
}
for name, call in CASES.items():
    try:
        call()
        said = "no error"
    except NidmapError as error:
        said = f"{type(error).__name__} {error.exit_code} {error}"
    told = set(world.allgather(said))
    if me == 0:
        print(f"{name}: {told.pop() if len(told) == 1 else told}")
assert mpsort(ints).tolist() == sorted(np.tile(ints, world.size).tolist())[4 * me : 4 * me + 4]
"""


def test_every_size_and_option_against_a_sort_of_everything(launch, sizes):
    *lines, last = launch(CASES.replace("SIZES", str(sizes)), sizes[-1]).stdout.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(sizes)
    assert all(int(line.split()[1]) > 12 for line in lines)
    assert "out of order" in last


@pytest.mark.usefixtures("once")
def test_wrong_input_is_the_same_error_on_all_ranks(launch):
    said = dict(line.split(": ", 1) for line in launch(WRONG, 3).stdout.splitlines())
    assert len(said) == 24
    for name, text in said.items():
        assert text.startswith("UsageError 2 "), (name, text)
    assert "NaN among them" in said["nan"]
    assert "no field 'kay'; they have key, x" in said["no field"]
    assert "out_counts add up to 13, but there are 12 items" in said["sum"]
    assert "Python objects" in said["objects"]
    assert "the key function failed on 4 items (ZeroDivisionError" in said["failing key"]


def test_the_command_checks_what_it_sorted_and_counts_messages(bench):
    import json

    words = ["sort", "--items", "1e3,2^11", "--repeat", "2", "--payload", "8", "--json"]
    document = json.loads(bench(words, 3).stdout)
    assert [case["items"] for case in document["cases"]] == [1000, 2048]
    case = document["cases"][1]
    assert {"LocalSort1", "FindEdges", "SolveLayout", "Exchange", "LocalSort2"} < set(
        case["seconds"]
    )
    assert case["counted"]["mean"] == case["predicted"]["mean"] == pytest.approx(2048 / 3)
    assert 1 <= case["rounds"] <= 4


MEMORY = """
import numpy as np
from mpi4py import MPI
from workloads.sort import mpsort
from workloads.sort.data import make

world = MPI.COMM_WORLD

def peak():
    with open("/proc/self/status") as stream:
        return int(next(line for line in stream if line.startswith("VmHWM")).split()[1]) * 1024

def reset():
    with open("/proc/self/clear_refs", "w") as stream:
        stream.write("5")

mpsort(np.arange(10000), comm=world)
for dtype, payload in (("u8", 0), ("u8", 16), ("pair", 0)):
    size = 96 << 20
    reset()
    before = peak()
    count = size // ({"u8": 8, "pair": 16}[dtype] + payload)
    items = make("random", world.rank, world.size, count, dtype=dtype, payload=payload, bits=64)
    reset()
    out = mpsort(items, "key" if payload else None, world)
    ratio = world.allreduce((peak() - before) / size, op=MPI.MAX)
    del items, out
    if world.rank == 0:
        print(dtype, payload, round(ratio, 2))
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
