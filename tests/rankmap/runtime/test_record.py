"""What real programs send is what the recorded matrix says."""

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import OutputError, ParseError
from rankmap.collectives.usual import steps
from rankmap.pattern import parse_pattern
from rankmap.readers import read
from rankmap.recording import Messages, Phase, Recording
from rankmap.recording.file import save_recording
from tests.effort import examples
from tests.rankmap.mpis import place, ranks

__all__ = ["place"]

PROGRAM = """
    import numpy as np
    from mpi4py import MPI
    from rankmap.runtime.record import record
    world = MPI.COMM_WORLD
    n, r = world.size, world.rank
    right, left = (r + 1) % n, (r - 1) % n
    with record(world, {path!r}) as comm:
        {body}
    assert comm.log.unmeasured == 0
"""


def matrix(body, count, place, tmp_path, name="m.npz"):
    path = str(tmp_path / name)
    body = body.replace("\n", "\n        ")
    ranks(PROGRAM.format(path=path, body=body), count, place)
    found = np.zeros((count, count), dtype=np.int64)
    if name.endswith(".csv"):
        with open(path) as stream:
            for line in stream.read().splitlines()[2:]:
                a, b, many = map(int, line.split(","))
                found[a, b] = many
        return found
    with np.load(path) as file:
        assert bytes(file["format"]) == b"csr"
        assert file["shape"].tolist() == [count, count]
        for a in range(count):
            row = slice(file["indptr"][a], file["indptr"][a + 1])
            found[a, file["indices"][row]] = file["data"][row]
    return found


def write_matrix(path, ranks, sender, table):
    """Write a matrix as rank 0 does: from, and (to, bytes, messages) of each entry."""
    phase = Phase("point-to-point", "mpi4py", 1, 1, Messages(sender, *table.T))
    save_recording(Recording(ranks, 1.0, (phase,)), path)


def ring(n, many):
    return many * np.roll(np.eye(n, dtype=int), 1, axis=1)


@pytest.mark.mpi
def test_point_to_point_of_every_kind(place, tmp_path):
    body = """a, b = np.ones(10), np.empty(10)
comm.Sendrecv(a, right, recvbuf=b, source=left)
comm.Sendrecv([a, 4, MPI.DOUBLE], dest=right, recvbuf=b, source=left)
q = comm.Isend([a, 5, MPI.DOUBLE], dest=right, tag=3); comm.Recv(b, left, 3); q.Wait()
q = comm.isend(a, right); assert (comm.recv(source=left) == a).all(); q.wait()
p = comm.Send_init(a, right, 5)
for _ in range(3):
    p.Start(); comm.Recv(b, left, 5); p.Wait()
p.Free()
comm.Sendrecv_replace(b, right, source=left)
comm.Send(a, MPI.PROC_NULL)
assert comm.sendrecv({"rank": r}, right, source=left) == {"rank": left}
if r == 0:
    comm.send(b"x" * 100, 1); comm.ssend(bytearray(50), dest=1)
elif r == 1:
    assert len(comm.recv(source=0)) == 100; comm.recv(source=0)"""
    import pickle

    more = len(pickle.dumps({"rank": 1}, protocol=pickle.HIGHEST_PROTOCOL))
    found = matrix(body, 3, place, tmp_path)
    expected = ring(3, 80 + 32 + 40 + 80 + 3 * 80 + 80 + more)
    expected[0, 1] += 150
    assert found.tolist() == expected.tolist()


@pytest.mark.mpi
def test_collectives_are_the_messages_they_are_said_to_be(place, tmp_path):
    body = """a, b = np.full(n * 2, r, dtype=np.int32), np.empty(n * 2, dtype=np.int32)
comm.Alltoall(a, b)
assert b.tolist() == [k for k in range(n) for _ in (0, 1)]
counts = [k + 1 for k in range(n)]
comm.Alltoallv([np.zeros(99, "b"), counts, MPI.BYTE], [np.zeros(99, "b"), [r + 1] * n, MPI.BYTE])
assert comm.alltoall([np.zeros(3)] * n)
out = np.zeros(4 * n)
comm.Allgather(np.ones(4), out)
assert out.sum() == 4 * n
comm.Gather(np.ones(1), np.empty(n) if r == 1 else None, root=1)
comm.Scatter(np.ones(n * 5) if r == 2 else None, np.empty(5), 2)
comm.Scatterv([np.ones(n), [1] * n, MPI.DOUBLE] if r == 0 else None, np.empty(1))
comm.Reduce_scatter_block(np.ones(n), np.empty(1))
comm.Scan(np.ones(2), np.empty(2))
comm.Barrier()"""
    n = 4
    off = 1 - np.eye(n, dtype=int)
    expected = 8 * off + np.arange(1, n + 1) * off + 24 * off + 8 * off
    expected += ring(n, 32 * (n - 1)) + np.diag([16] * (n - 1), 1)
    expected[[0, 2, 3], 1] += 8
    expected[2, [0, 1, 3]] += 40
    expected[0, 1:] += 8
    assert matrix(body, n, place, tmp_path).tolist() == expected.tolist()


@pytest.mark.mpi
def test_persistent_and_neighbour_collectives_count_at_each_start(place, tmp_path):
    body = """a, b = np.full(n * 2, r, dtype=np.int32), np.empty(n * 2, dtype=np.int32)
if hasattr(comm, "Alltoall_init"):
    p = comm.Alltoall_init(a, b)
    for _ in range(3):
        p.Start(); p.Wait()
    p.Free()
    assert b.tolist() == [k for k in range(n) for _ in (0, 1)]
    p = comm.Bcast_init(a, 1); p.Free()  # never started
else:
    for _ in range(3):
        comm.Alltoall(a, b)
cart = comm.Create_cart([n], periods=[True])
cart.Neighbor_allgather(np.ones(1), np.empty(2))
cart.Neighbor_alltoall(np.ones(4), np.empty(4))"""
    n = 4
    expected = 3 * 8 * (1 - np.eye(n, dtype=int)) + ring(n, 8 + 16) + ring(n, 8 + 16).T
    assert matrix(body, n, place, tmp_path).tolist() == expected.tolist()


@pytest.mark.mpi
@pytest.mark.parametrize("count", [3, 8])
def test_trees_and_doubling(place, tmp_path, count):
    body = """a = np.ones(10)
comm.Bcast(a, root=1)
assert comm.bcast(np.ones(2) if r == 0 else None) is not None
comm.Reduce(a, np.empty(10) if r == 0 else None)
comm.Allreduce(MPI.IN_PLACE, a)
comm.allreduce(np.ones(3))"""
    expected = np.zeros((count, count), dtype=int)
    for kind, root, many in (
        ("bcast", 1, 80), ("bcast", 0, 16), ("reduce", 0, 80), ("allreduce", 0, 104),
    ):  # fmt: skip
        for rank in range(count):
            for to, times in steps(kind, count, rank, root):
                expected[rank, to] += many * times
    assert matrix(body, count, place, tmp_path).tolist() == expected.tolist()


@pytest.mark.mpi
def test_communicators_made_of_it_count_by_its_ranks(place, tmp_path):
    body = """row = comm.Split(r // 2, -r)
assert (row.rank, row.size) == (1 - r % 2, 2)
row.Sendrecv(np.ones(1), 1 - row.rank, recvbuf=np.empty(1), source=1 - row.rank)
cart = comm.Create_cart((2, 2), (True, True))
column = cart.Sub((True, False)).Dup()
column.sendrecv(bytes(7), 1 - column.rank, source=1 - column.rank)
got = np.empty(4)
cart.Neighbor_alltoall(np.ones(4), got)
none = comm.Split(MPI.UNDEFINED if r else 0, 0)
assert (none == MPI.COMM_NULL) == bool(r)"""
    expected = np.zeros((4, 4), dtype=int)
    for a in range(4):
        expected[a, a ^ 1] += 8 + 16
        expected[a, a ^ 2] += 7 + 16
    assert matrix(body, 4, place, tmp_path).tolist() == expected.tolist()


@pytest.mark.mpi
def test_the_file_reads_as_a_pattern_and_csv_says_the_same(place, tmp_path):
    body = "comm.Sendrecv(np.ones(3), right, recvbuf=np.empty(3), source=left)"
    found = matrix(body, 3, place, tmp_path)
    assert found.tolist() == matrix(body, 3, place, tmp_path, "m.csv").tolist()
    entries = read(str(tmp_path / "m.csv"))
    assert entries.ranks == 3
    assert dict(zip(zip(entries.a.tolist(), entries.b.tolist(), strict=True),
                    entries.weight.tolist(), strict=True)) == {
        (0, 1): 24, (1, 2): 24, (2, 0): 24,
    }  # fmt: skip


@pytest.mark.mpi
def test_a_program_that_just_ends_leaves_a_matrix_too(place, tmp_path):
    program = f"""
    import os; os.chdir({str(tmp_path)!r})
    from mpi4py import MPI
    import rankmap.runtime.record
    comm = rankmap.runtime.record.record(MPI.COMM_WORLD)
    comm.sendrecv(1, 1 - comm.rank, source=1 - comm.rank)
    """
    ranks(program, 2, place, env={"SLURM_JOB_ID": "4711"})
    (name,) = os.listdir(tmp_path)
    assert name.startswith("nidmap-matrix-4711-")
    assert name.endswith(".npz")


@pytest.mark.mpi
def test_a_file_that_cannot_be_written_is_an_error_on_every_rank(place, tmp_path):
    program = """
    import json
    from mpi4py import MPI
    from rankmap.runtime.record import record
    comm = record(MPI.COMM_WORLD, "/proc/none/m.npz")
    try:
        comm.save()
    except Exception as error:
        said = MPI.COMM_WORLD.gather(f"{type(error).__name__}: {error}")
        if said:
            print(json.dumps(said))
    """
    said = json.loads(ranks(program, 2, place).stdout)
    assert len(set(said)) == 1
    assert said[0].startswith("OutputError: cannot write /proc/none/m.npz: ")


@pytest.mark.parametrize("size", range(1, 18))
@pytest.mark.parametrize("root", [0, 1, 5])
def test_a_tree_reaches_every_rank_once_and_its_reverse_is_the_reduction(size, root):
    root %= size
    down = [(r, to) for r in range(size) for to, _ in steps("bcast", size, r, root)]
    up = [(to, r) for r in range(size) for to, _ in steps("reduce", size, r, root)]
    assert sorted(to for _, to in down) == [r for r in range(size) if r != root]
    assert sorted(down) == sorted(up)


@pytest.mark.parametrize("size", range(1, 18))
def test_doubling_is_mutual_and_lets_everyone_know(size):
    pairs = {(r, to) for r in range(size) for to, _ in steps("allreduce", size, r, 0)}
    assert pairs == {(b, a) for a, b in pairs}
    assert all(a != b and 0 <= b < size for a, b in pairs)
    known = [1 << r for r in range(size)]
    for _ in range(size):
        known = [known[r] | sum_of(known, pairs, r) for r in range(size)]
    assert known == [(1 << size) - 1] * size


def sum_of(known, pairs, rank):
    found = 0
    for a, b in pairs:
        found |= known[a] if b == rank else 0
    return found


@examples(30)
@given(st.integers(2, 9), st.randoms())
def test_what_is_recorded_reads_back_here_and_by_scipy(tmp_path_factory, n, rng):
    path = str(tmp_path_factory.mktemp("matrix") / "m.npz")
    pairs = sorted({(rng.randrange(n), rng.randrange(n)) for _ in range(rng.randrange(1, 3 * n))})
    table = np.array([[b, rng.randrange(1, 1 << 40), rng.randrange(1, 9)] for _, b in pairs])
    write_matrix(path, n, np.array([a for a, _ in pairs]), table)
    full = np.zeros((n, n), dtype=np.int64)
    for (a, b), (_, many, _) in zip(pairs, table.tolist(), strict=True):
        full[a, b] = many
    scipy = pytest.importorskip("scipy.sparse")
    assert scipy.load_npz(path).toarray().tolist() == full.tolist()
    with np.load(path) as file:
        assert file["messages"].tolist() == table[:, 2].tolist()
    both = full + full.T
    np.fill_diagonal(both, 0)
    if not both.any():
        with pytest.raises(ParseError):
            parse_pattern(f"matrix:{path}")
        return
    graph = parse_pattern(f"matrix:{path}").fit(n)
    found = np.zeros((n, n))
    for edges in graph.edges():
        found[edges.a, edges.b] = found[edges.b, edges.a] = edges.weight
    assert found.tolist() == both.tolist()


def test_a_matrix_of_no_messages_is_one_of_zeros(tmp_path):
    write_matrix(str(tmp_path / "m.npz"), 3, np.empty(0, int), np.empty((0, 3), int))
    with np.load(tmp_path / "m.npz") as file:
        assert file["indptr"].tolist() == [0, 0, 0, 0]
    with pytest.raises(OutputError):
        write_matrix(str(tmp_path / "no" / "m.csv"), 3, np.empty(0, int), np.empty((0, 3), int))
