# SPDX-License-Identifier: Apache-2.0
"""numpy files: ``.npy`` and dense ``.npz`` matrices, and sparse ones saved by scipy.sparse."""

from __future__ import annotations

import io
import warnings
import zipfile
from functools import partial
from typing import Any

import numpy as np

from nidmap.placement.errors import NidmapError, ParseError, printable
from nidmap.placement.placement import MOST_RANKS
from nidmap.placement.support.array_types import Array
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.readers.entries import Entries, check_entries

#: Bytes of one array at most, dense or not.
MOST_BYTES = 1 << 30

#: Names under which other programs save a dense matrix, tried in turn.
_DENSE = ("matrix", "bytes", "volume", "weights", "data", "arr_0")


def read(raw: bytes, source: str) -> Entries:
    """Return the entries of a ``.npy`` or ``.npz`` file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy's, on headers of other times
            if raw[:2] != b"PK":
                matrix = np.lib.format.read_array(io.BytesIO(raw), allow_pickle=False)
                return _dense_entries(matrix, source)
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                return _read_archive(archive, source)
    except NidmapError:
        raise
    except Exception as error:  # zipfile and numpy's header parser may raise anything
        text = f"damaged numpy file: {printable(str(error), 80)}"
        raise ParseError(source, 0, text) from None


def _read_archive(archive: zipfile.ZipFile, source: str) -> Entries:
    members = dict.fromkeys(name.removesuffix(".npy") for name in archive.namelist())
    load = partial(read_member, archive, source=source)
    if {"row", "col", "data", "shape"} <= members.keys():
        n = _check_square(load("shape").tolist(), source)
        return _sparse_entries(n, load("row"), load("col"), load("data"), source)
    if {"indptr", "indices", "data"} <= members.keys():
        indptr, column, data = load("indptr"), load("indices"), load("data")
        shape = load("shape").tolist() if "shape" in members else [len(indptr) - 1] * 2
        form = str(load("format")) if "format" in members else "csr"
        n, lengths = _check_square(shape, source), np.diff(indptr)
        if "csr" not in form and "csc" not in form:
            fault = f"sparse format {printable(form, 20)} is not csr, csc or coo"
            raise ParseError(source, 0, fault)
        if len(indptr) != n + 1 or (lengths < 0).any() or int(lengths.sum()) != len(column):
            raise ParseError(source, 0, "indptr does not match indices", "is the file damaged?")
        row = np.repeat(np.arange(n), lengths)
        if "csc" in form:
            row, column = column, row
        return _sparse_entries(n, row, column, data, source)
    named = next((name for name in _DENSE if name in members), None)
    if named is None and len(members) != 1:
        there = printable(", ".join(members), 60) or "nothing"
        raise ParseError(source, 0, f"not a matrix: it holds {there}", f"call it {_DENSE[0]}")
    return _dense_entries(load(named or next(iter(members))), source)


def _sparse_entries(n: int, row: Array, column: Array, data: Array, source: str) -> Entries:
    if not row.shape == column.shape == data.shape or row.ndim != 1:
        raise ParseError(source, 0, "rows, columns and values differ in length")
    if row.dtype.kind not in "iu" or column.dtype.kind not in "iu":
        raise ParseError(source, 0, "rows and columns are not whole numbers")
    if data.dtype.kind not in "biuf":
        raise ParseError(source, 0, f"values of type {data.dtype} cannot be weights")
    a, b = (end.astype(np.int64, copy=False) for end in (row, column))
    weight = data.astype(np.float64, copy=False)
    return check_entries(Entries(n, Traffic.of(a, b, weight)), source)


def _dense_entries(matrix: Array, source: str) -> Entries:
    n = _check_square(list(matrix.shape), source)
    row, column = np.nonzero(matrix)
    return _sparse_entries(n, row, column, matrix[row, column], source)


def read_member(archive: zipfile.ZipFile, name: str, source: str, most: int = MOST_BYTES) -> Any:
    """Return an array of a ``.npz`` file, up to a limit in bytes."""
    member = f"{name}.npy"
    if archive.getinfo(member).file_size > most:
        raise ParseError(source, 0, f"{name} is larger than {most >> 30} GB")
    with archive.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _check_square(shape: list[Any], source: str) -> int:
    if len(shape) != 2 or shape[0] != shape[1]:
        text = "x".join(str(s) for s in shape) or "a number"
        raise ParseError(source, 0, f"{printable(text, 40)}: not a square matrix")
    if not 0 <= int(shape[0]) <= MOST_RANKS:
        raise ParseError(source, 0, f"{shape[0]} ranks, at most {MOST_RANKS} are supported")
    return int(shape[0])
