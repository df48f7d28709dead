"""Write a recorded matrix: bytes from rank to rank, as ``matrix:FILE`` reads it."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import numpy as np

from placement.commands.common import write_output

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["write_matrix"]


def write_matrix(
    path: str, ranks: int, sender: NDArray[np.int64], table: NDArray[np.int64]
) -> None:
    """Write a matrix, whole or not at all; the name's ending says the format.

    Parameters
    ----------
    path : str
        ``.csv`` for lines of from, to, bytes, messages; else npz: the sparse
        matrix as ``scipy.sparse.save_npz`` writes it, its ``messages`` beside.
    ranks : int
    sender : int64 (m,)
        Ascending.
    table : int64 (m, 3)
        To, bytes, messages; ``to`` ascending for each sender.

    Raises
    ------
    OutputError
        Where it cannot be written.
    """
    is_csv = os.path.splitext(path)[1].lower() == ".csv"
    write_output(_csv(ranks, sender, table) if is_csv else _npz(ranks, sender, table), path)


def _csv(ranks: int, sender: NDArray[np.int64], table: NDArray[np.int64]) -> str:
    pairs = zip(sender.tolist(), table[:, :2].tolist(), strict=True)
    lines = "".join(f"{a},{b},{many}\n" for a, (b, many) in pairs)
    return f"# ranks={ranks}\nsource,target,bytes\n{lines}"


def _npz(ranks: int, sender: NDArray[np.int64], table: NDArray[np.int64]) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(
        out,
        indices=table[:, 0],
        indptr=np.searchsorted(sender, np.arange(ranks + 1)),
        format=np.array(b"csr"),
        shape=np.array([ranks, ranks]),
        data=table[:, 1],
        messages=table[:, 2],
    )
    return out.getvalue()
