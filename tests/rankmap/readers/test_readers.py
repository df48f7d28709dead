# SPDX-License-Identifier: Apache-2.0
"""Readers of graphs: the same matrix through every format, and files that are wrong."""

from __future__ import annotations

import gzip
import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import NidmapError, ParseError
from nidmap.placement.traffic import NO_TRAFFIC
from nidmap.rankmap import readers
from nidmap.rankmap.pattern.graph import from_entries
from nidmap.rankmap.readers import recognise
from nidmap.rankmap.readers.csv import read, read_messages
from nidmap.rankmap.readers.entries import gather_numbers, whole
from tests.effort import examples
from tests.rankmap.mpis import ranks, with_mpi4py


def dense(entries):
    out = np.zeros((entries.ranks, entries.ranks))
    sent = entries.sent
    np.add.at(out, (sent.source, sent.target), sent.bytes)
    return out


def npz(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def coo(m):
    a, b = np.nonzero(m)
    return npz(row=a, col=b, data=m[a, b], shape=np.array(m.shape), format=np.array("coo"))


def csr(m):
    a, b = np.nonzero(m)
    ptr = np.searchsorted(a, np.arange(len(m) + 1))
    return npz(
        indptr=ptr, indices=b, data=m[a, b], shape=np.array(m.shape), format=np.array(b"csr")
    )


def table(m):
    return "\n".join(",".join(f"{x:g}" for x in row) for row in m).encode()


def edges(m):
    a, b = np.nonzero(m)
    lines = "".join(f"{i},{j},{m[i, j]:g}\n" for i, j in zip(a, b, strict=True))
    return f"# ranks={len(m)}\nsource,target,bytes\n{lines}".encode()


def prof(m):
    a, b = np.nonzero(m)
    lines = "".join(
        f"E\t{i}\t{j}\t{int(m[i, j])} bytes\t1 msgs sent\t1\n" for i, j in zip(a, b, strict=True)
    )
    return f"# POINT TO POINT\n{lines}# COLLECTIVES\nC\t0\t1\t999 bytes\t1 msgs sent\n".encode()


WRITERS = {
    "a.npz": lambda m: npz(matrix=m),
    "b.npz": coo,
    "c.npz": csr,
    "d.npy": npy,
    "e.npy": lambda m: npy(np.asfortranarray(m)),
    "h.csv": table,
    "i.csv": edges,
    "j.prof": prof,
    "l.csv.gz": lambda m: gzip.compress(edges(m)),
}


@pytest.mark.parametrize("name", WRITERS)
@examples(33)
@given(st.integers(4, 9), st.randoms(use_true_random=False))
def test_one_matrix_through_every_format(name, tmp_path_factory, n, rng):
    m = np.array([[rng.choice((0, 0, 0, 7, 123456)) for _ in range(n)] for _ in range(n)], float)
    m[n - 1, 0] = 5  # the last rank is always named
    file = tmp_path_factory.mktemp("m") / name
    file.write_bytes(WRITERS[name](m))
    found = readers.read(str(file))
    assert dense(found).tolist() == m.tolist()
    graph = from_entries(found, both=True, spec="matrix:x")
    both = m + m.T
    np.fill_diagonal(both, 0)
    for edge in graph.edges():
        assert both[edge.source, edge.target].tolist() == edge.bytes.tolist()
    assert sum(e.bytes.sum() for e in graph.edges()) == both.sum() / 2


METIS = "% four vertices\n4 4 1\n2 5 3 1\n1 5 4 2\n1 1 4 9\n2 2 3 9\n"


def test_metis(tmp_path):
    file = tmp_path / "a.graph"
    file.write_text(METIS)
    graph = from_entries(readers.read(str(file)), both=False, spec="graph:a")
    assert [x.tolist() for x in graph.upper()] == [[0, 0, 1, 2], [1, 2, 3, 3], [5, 1, 2, 9]]


@pytest.mark.parametrize(
    ("head", "lines"),
    [
        ("3 2", ["2", "1 3", "2"]),
        ("3 2 10", ["4 2", "4 1 3", "4 2"]),
        ("3 2 11 2", ["4 4 2 1", "4 4 1 1 3 1", "4 4 2 1"]),
        ("3 2 100", ["9 2", "9 1 3", "9 2"]),
    ],
)
def test_metis_formats(tmp_path, head, lines):
    file = tmp_path / "a.graph"
    file.write_text("\n".join([head, *lines]) + "\n")
    graph = from_entries(readers.read(str(file)), both=False, spec="graph:a")
    assert [x.tolist() for x in graph.upper()] == [[0, 1], [1, 2], [1, 1]]


def test_a_blank_line_is_a_vertex_without_neighbours(tmp_path):
    file = tmp_path / "a.graph"
    file.write_text("3 1\n3\n\n1\n")
    assert readers.read(str(file)).sent.source.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.graph", METIS[:-9], "3 lines for 4 vertices; is the file cut short"),
        ("a.graph", METIS + "1 1\n", "a line for vertex 5, but the header says 4"),
        ("a.graph", METIS.replace("9\n2", "\n2", 1), "a neighbour without an edge weight"),
        ("a.graph", METIS.replace("4 4 1", "4 7 1"), "edges, but the header says 7"),
        ("a.graph", METIS.replace("2 5 3", "8 5 3"), "ranks are 0 to 3"),
        ("a.graph", METIS.replace("2 5 3", "2 -5 3"), "less than 0"),
        ("a.graph", METIS.replace("4 4 1", "4 4 7"), "format 7 is not one of"),
        ("a.graph", "999999999999 1\n", "at most"),
        ("a.graph", "0 0\n", "has no vertices"),
        ("a.graph", "4 4 one\n", "'one' is not a number"),
        (
            "a.mtx",
            "%%MatrixMarket matrix coordinate real general\n3 3 0\n",
            "save_npz.* writes npz",
        ),
        ("a.prof", "E\t0\t1\t108 by", "cut short"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, name, text, said):
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(ParseError, match=said):
        readers.read(str(file))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (npz(matrix=np.zeros((2, 3))), "2x3: not a square matrix"),
        (npz(x=np.zeros(2), y=np.zeros(2)), "not a matrix: it holds x, y; call it matrix"),
        (npz(matrix=np.array([["a"]])), "cannot be weights"),
        (npz(matrix=np.array([[np.nan]])), "not a number"),
        (npz(matrix=np.eye(4))[:-30], "damaged"),
        (npy(np.eye(4))[:-8], "expected 128 bytes got 120"),
        (npz(indptr=np.array([0, 5]), indices=np.array([0]), data=np.array([1.0])), "indptr"),
        (
            npz(row=np.array([0]), col=np.array([9]), data=np.ones(1), shape=np.array([2, 2])),
            "0 to 1",
        ),
    ],
)
def test_bad_numpy_files(tmp_path, raw, said):
    file = tmp_path / "a.npz"
    file.write_bytes(raw)
    with pytest.raises(ParseError, match=said):
        readers.read(str(file))


def test_pickled_objects_are_never_loaded(tmp_path):
    file = tmp_path / "a.npz"
    np.savez(file, matrix=np.array([[object()]]))
    with pytest.raises(ParseError, match="Object arrays cannot be loaded"):
        readers.read(str(file))


def test_a_matrix_that_claims_to_be_enormous_is_refused_at_once(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 22, 1 << 22)}
    )
    file = tmp_path / "bomb.npz"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("matrix.npy", header.getvalue())
    with pytest.raises(ParseError, match="Unable to allocate"):
        readers.read(str(file))


def test_a_gzip_bomb_is_refused(tmp_path):
    file = tmp_path / "bomb.csv.gz"
    file.write_bytes(gzip.compress(bytes(300 << 20), 1))
    with pytest.raises(ParseError, match="holds more than 256 MiB"):
        readers.read(str(file))


def test_monitoring_files_of_one_run(tmp_path):
    for rank in range(3):
        other = (rank + 1) % 3
        text = f"# POINT TO POINT\nE\t{rank}\t{other}\t{10 + rank} bytes\t1 msgs sent\t1\n"
        (tmp_path / f"run.{rank}.prof").write_text(text)
    found = readers.read(str(tmp_path))
    assert dense(found).tolist() == [[0, 10, 0], [0, 0, 11], [12, 0, 0]]
    (tmp_path / "run.1.prof").unlink()
    with pytest.raises(ParseError, match="the file for rank 1 is missing"):
        readers.read(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "report"),
    [
        (
            "@ mpiP\n@ Version: 3.5\n"
            "@--- Callsite Message Sent statistics (all, sent bytes) ---\n"
            "Name              Site Rank   Count       Max      Mean       Min       Sum\n"
            "Send                 5    0      80      6000      6000      6000   4.8e+05\n",
            "mpiP's report says how much each rank sends, not to whom",
        ),
        (
            "CrayPat/X:  Version 6.2.2 Revision 13378\n\n"
            "Table 4:  MPI Message Stats by Caller\n"
            "    MPI |MPI Msg Bytes% | MPI Msg Bytes |Caller\n 48 | 100.0% | 384.0 |Total\n",
            "CrayPat's report says how much each rank sends, not to whom",
        ),
        (
            "@ mpiP\nSource  Dest  Bytes\n0  1  5.0e+03\n",  # no mpiP ever printed this
            "nidmap record does; METIS, npz, csv",
        ),
    ],
)
def test_profiles_without_receivers_are_refused(tmp_path, text, report):
    for name in ("app.mpiP", "app.rpt", "app.csv", "app"):
        (tmp_path / name).write_text(text)
        with pytest.raises(ParseError, match=report):
            readers.read(str(tmp_path / name))


def test_a_table_that_only_mentions_a_profiler_is_read(tmp_path):
    (tmp_path / "a.csv").write_text("# made from CrayPat's and mpiP's tables\n0,1,5\n1,2,7\n")
    assert readers.read(str(tmp_path / "a.csv")).sent.bytes.tolist() == [5, 7]


def test_an_empty_directory_is_no_run(tmp_path):
    with pytest.raises(ParseError, match="without Open MPI"):
        readers.read(str(tmp_path))


NAMES = st.sampled_from([*WRITERS, "x.graph", "x"])


@examples(500)
@given(NAMES, st.data())
def test_any_bytes_give_entries_or_one_error(tmp_path_factory, name, data):
    matrix = np.arange(16.0).reshape(4, 4)
    whole = WRITERS.get(name, lambda _: METIS.encode())(matrix)
    cut = data.draw(st.integers(0, len(whole)))
    junk = data.draw(st.one_of(st.binary(max_size=12), st.sampled_from([b"-1", b"1e999", b"nan"])))
    file = tmp_path_factory.mktemp("m") / name
    file.write_bytes(whole[:cut] + junk + whole[cut + data.draw(st.integers(0, 9)) :])
    try:
        found = readers.read(str(file))
    except NidmapError:
        found = readers.Entries(0, NO_TRAFFIC)
    if len(found.sent):
        a, b, weight, _ = found.sent.columns
        assert len(a) == len(b) == len(weight)
        assert np.isfinite(weight).all()
        assert (weight >= 0).all()
        assert max(a.max(), b.max()) < found.ranks


def test_what_open_mpi_really_writes_is_read(tmp_path):
    """Each rank sends so many bytes to the next: the same matrix comes out of the directory."""
    found = [where for name, where in with_mpi4py() if name == "openmpi"]
    if not found:
        pytest.skip("no Open MPI with mpi4py here")
    program = """
        import numpy as np
        from mpi4py import MPI
        world = MPI.COMM_WORLD
        after, before = (world.rank + 1) % 3, (world.rank - 1) % 3
        world.Sendrecv(np.zeros(1000 + world.rank, "b"), after, 0, np.zeros(2000, "b"), before)
    """
    switches = {
        "OMPI_MCA_pml_monitoring_enable": "2",
        "OMPI_MCA_pml_monitoring_enable_output": "3",
        "OMPI_MCA_pml_monitoring_filename": str(tmp_path / "app"),
    }
    ranks(program, 3, found[0], env=switches)
    sent = dense(readers.read(str(tmp_path)))
    assert [sent[rank, (rank + 1) % 3] for rank in range(3)] == [1000, 1001, 1002]


@pytest.mark.parametrize("rank", [2**25, 2**63 - 1, 2**63, 10**30])
def test_a_rank_that_no_machine_has_is_one_line(rank):
    from nidmap.rankmap.readers.monitoring import read

    for pair in (f"0\t{rank}", f"{rank}\t0"):
        with pytest.raises(ParseError, match=f"a.prof: rank {rank}: at most"):
            read(f"E\t{pair}\t10 bytes\t1 msgs sent\n".encode(), "a.prof")


def test_recognise():
    assert recognise(b"3 2", "a.graph") == "metis"
    assert recognise(b"0,1,17", "unknown.dat") == "csv"


def test_read():
    assert read(b"src,dst,bytes\n0,1,100\n1,2,50\n", "-").sent.bytes.tolist() == [100.0, 50.0]
    e = read(b"0 7 0\n7 0 1\n0 1 0\n", "-")
    assert e.ranks == 3
    assert e.sent.source.tolist() == [0, 1, 1, 2]
    assert e.stated


def test_read_messages():
    found = read_messages(b"src,dst,bytes\n0,1,100\n0,1,50\n", "-")
    assert found.ranks == 2
    assert found.sent.bytes.tolist() == [100.0, 50.0]
    with pytest.raises(
        ParseError, match=r"sent\.txt:1: 2 numbers, not 3: source, destination and bytes"
    ):
        read_messages(b"0 1\n1 2\n", "sent.txt")


def test_gather_numbers():
    assert [x.tolist() for x in gather_numbers(b"1,2\n# c\n\n3.5", "-")] == [
        [1.0, 2.0, 3.5],
        [1, 1, 4],
        [1, 3, 4],
    ]


def test_whole():
    with pytest.raises(ParseError, match=r"a\.csv:7: 2\.5 is not a rank: a whole number is needed"):
        whole(np.array([1.0, 2.5]), np.array([1, 7]), "a.csv", "rank")


def test_npz():
    from nidmap.rankmap.readers.npz import read

    file = io.BytesIO()
    np.savez(file, matrix=np.array([[0, 3], [4, 0]]))
    assert read(file.getvalue(), "a.npz").sent.bytes.tolist() == [3.0, 4.0]
