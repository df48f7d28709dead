"""numpy files: ``.npy`` and dense ``.npz`` matrices, sparse ones as scipy.sparse saves them.

Dense matrices are unpacked a few rows at a time and only what is not 0 is
kept, so that a file which claims to be enormous costs nothing.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from placement.errors import NidmapError, ParseError, printable
from rankmap.readers.entries import Entries, checked
from rankmap.slots import MOST_SLOTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Shape = tuple[int, ...]

__all__ = ["read"]

#: Bytes of one array at most, dense or not.
MOST_BYTES = 1 << 30

#: Bytes of a dense matrix that are looked at in one go.
_ROWS = 1 << 24

#: Names under which other programs save a dense matrix, tried in turn.
_DENSE = ("matrix", "bytes", "volume", "weights", "data", "arr_0")


def read(raw: bytes, source: str) -> Entries:
    """Return the entries of a ``.npy`` or ``.npz`` file.

    Raises
    ------
    ParseError
        A damaged file, pickled objects, no square matrix, more than a
        gigabyte, values that are no weights.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> np.savez(file, matrix=np.array([[0, 3], [4, 0]]))
    >>> read(file.getvalue(), "a.npz").weight.tolist()
    [3.0, 4.0]
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy's, on headers of other times
            if raw[:2] != b"PK":
                return _dense(io.BytesIO(raw), source)
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                return _archive(archive, source)
    except NidmapError:
        raise
    except Exception as error:  # zipfile and numpy's header parser raise what comes
        text = f"damaged numpy file: {printable(str(error), 80)}"
        raise ParseError(source, 0, text) from None


def _archive(archive: zipfile.ZipFile, source: str) -> Entries:
    members = {name.removesuffix(".npy"): name for name in archive.namelist()}
    if {"row", "col", "data", "shape"} <= members.keys():
        return _triples(archive, members, source)
    if {"indptr", "indices", "data"} <= members.keys():
        return _compressed(archive, members, source)
    named = next((name for name in _DENSE if name in members), None)
    if named is None and len(members) != 1:
        there = printable(", ".join(members), 60) or "nothing"
        raise ParseError(source, 0, f"no matrix: it holds {there}", f"call it {_DENSE[0]}")
    with archive.open(members[named] if named else next(iter(members.values()))) as stream:
        return _dense(stream, source)


def _triples(archive: zipfile.ZipFile, members: dict[str, str], source: str) -> Entries:
    n = _square(_array(archive, members["shape"], source).tolist(), source)
    row, column, data = (_array(archive, members[k], source) for k in ("row", "col", "data"))
    return _sparse(n, row, column, data, source)


def _compressed(archive: zipfile.ZipFile, members: dict[str, str], source: str) -> Entries:
    """Return the entries of a matrix by rows or by columns (scipy's csr and csc)."""
    indptr = _array(archive, members["indptr"], source)
    column, data = (_array(archive, members[k], source) for k in ("indices", "data"))
    shape = _array(archive, members["shape"], source) if "shape" in members else None
    n = _square([len(indptr) - 1] * 2 if shape is None else shape.tolist(), source)
    form = str(_array(archive, members["format"], source)) if "format" in members else "csr"
    if "csr" not in form and "csc" not in form:
        raise ParseError(source, 0, f"sparse format {printable(form, 20)} is not csr, csc or coo")
    steps = np.diff(indptr)
    if len(indptr) != n + 1 or (steps < 0).any() or int(steps.sum()) != len(column):
        raise ParseError(source, 0, "indptr does not fit indices", "is the file damaged?")
    row = np.repeat(np.arange(n), steps)
    if "csc" in form:
        row, column = column, row
    return _sparse(n, row, column, data, source)


def _sparse(
    n: int, row: NDArray[Any], column: NDArray[Any], data: NDArray[Any], source: str
) -> Entries:
    if not row.shape == column.shape == data.shape or row.ndim != 1:
        raise ParseError(source, 0, "rows, columns and values are not as many")
    if row.dtype.kind not in "iu" or column.dtype.kind not in "iu":
        raise ParseError(source, 0, "rows and columns are no whole numbers")
    weight = _real(data, source)
    return checked(Entries(n, row.astype(np.int64), column.astype(np.int64), weight), source)


def _array(archive: zipfile.ZipFile, name: str, source: str) -> NDArray[Any]:
    """Return one small or sparse array of an archive."""
    with archive.open(name) as stream:
        shape, dtype, _ = _header(stream, source)
    if _size(shape, dtype) > MOST_BYTES:
        raise ParseError(source, 0, f"{printable(name, 30)} is larger than {MOST_BYTES >> 20} MB")
    with archive.open(name) as stream:
        found: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
        return found


def _dense(stream: IO[bytes], source: str) -> Entries:
    shape, dtype, by_column = _header(stream, source)
    n = _square(list(shape), source)
    if _size(shape, dtype) > MOST_BYTES:
        raise ParseError(
            source, 0, f"a dense matrix of {n}x{n} is too large", "save it as scipy.sparse does"
        )
    rows = max(1, _ROWS // max(1, n * dtype.itemsize))
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    for low in range(0, n, rows):
        count = min(rows, n - low)
        raw = _exactly(stream, count * n * dtype.itemsize, source)
        part = _real(np.frombuffer(raw, dtype=dtype).reshape(count, n), source)
        row, column = np.nonzero(part)
        found.append((row.astype(np.int64) + low, column.astype(np.int64), part[row, column]))
    a, b, weight = (np.concatenate(c) for c in zip(*found, strict=True)) if found else _nothing()
    if by_column:
        a, b = b, a
    return checked(Entries(n, a, b, weight), source)


def _nothing() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)


def _exactly(stream: IO[bytes], size: int, source: str) -> bytes:
    raw = stream.read(size)
    if len(raw) < size:
        raise ParseError(source, 0, "the matrix is cut short")
    return raw


def _header(stream: IO[bytes], source: str) -> tuple[Shape, np.dtype[Any], bool]:
    """Return shape, type and whether columns come first; the stream stands at the data after."""
    version = np.lib.format.read_magic(stream)
    reader = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if reader is None:
        raise ParseError(source, 0, f"numpy format {version} is not known")
    shape, by_column, dtype = reader(stream)
    if dtype.hasobject:
        raise ParseError(source, 0, "pickled objects are not read")
    return shape, dtype, by_column


def _size(shape: Shape, dtype: np.dtype[Any]) -> int:
    total = dtype.itemsize
    for extent in shape:
        total *= int(extent)
    return total


def _square(shape: list[Any], source: str) -> int:
    if len(shape) != 2 or shape[0] != shape[1]:
        text = "x".join(str(s) for s in shape) or "a number"
        raise ParseError(source, 0, f"{printable(text, 40)}: not a square matrix")
    if not 0 <= int(shape[0]) <= MOST_SLOTS:
        raise ParseError(source, 0, f"{shape[0]} ranks, at most {MOST_SLOTS} are supported")
    return int(shape[0])


def _real(values: NDArray[Any], source: str) -> NDArray[np.float64]:
    if values.dtype.kind not in "biuf":
        raise ParseError(source, 0, f"values of type {values.dtype} are no weights")
    return values.astype(np.float64)
