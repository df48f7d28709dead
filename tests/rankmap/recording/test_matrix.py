# SPDX-License-Identifier: Apache-2.0
"""The matrix in a recording's file: read back here as a pattern, and by scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import OutputError, ParseError
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.recording import RecordedPhase, Recording
from nidmap.rankmap.recording.file import save_recording
from tests.effort import examples


def write_matrix(path, ranks, sender, table):
    """Write a matrix as rank 0 does: from, and (to, bytes, messages) of each entry."""
    phase = RecordedPhase("point-to-point", "mpi4py", 1, 1, Traffic(sender, *table.T))
    save_recording(Recording(ranks, 1.0, (phase,)), path)


def ring(n, many):
    return many * np.roll(np.eye(n, dtype=int), 1, axis=1)


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
        found[edges.source, edges.target] = found[edges.target, edges.source] = edges.bytes
    assert found.tolist() == both.tolist()


def test_a_matrix_of_no_messages_is_one_of_zeros(tmp_path):
    write_matrix(str(tmp_path / "m.npz"), 3, np.empty(0, int), np.empty((0, 3), int))
    with np.load(tmp_path / "m.npz") as file:
        assert file["indptr"].tolist() == [0, 0, 0, 0]
    with pytest.raises(OutputError):
        write_matrix(str(tmp_path / "no" / "m.csv"), 3, np.empty(0, int), np.empty((0, 3), int))
