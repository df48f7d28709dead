# SPDX-License-Identifier: Apache-2.0
"""Whether two machines are the same, whatever they are called and were made from."""

from dataclasses import fields

import numpy as np

from nidmap.placement.machine import LISTED, Links, Switches, Topology


def same_machine(one, two):
    """Return whether all but name, sources and notes of two machines is equal.

    The file that a link list came from is a source too: ``links of A``
    and ``links of B`` are the same wiring when the links are.
    """
    apart = {"name", "sources", "notes", "_cache"}
    names = [field.name for field in fields(one) if field.name not in apart]
    return all(_equal(getattr(one, name), getattr(two, name)) for name in names)


def _equal(x, y):
    """Compare two fields, arrays by value, NaN equal to NaN."""
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        floats = x.dtype.kind == "f" and y.dtype.kind == "f"
        return x.shape == y.shape and bool(np.array_equal(x, y, equal_nan=floats))
    if type(x) is type(y) and isinstance(x, (Links, Switches, Topology)):
        return all(_equal(getattr(x, f.name), getattr(y, f.name)) for f in fields(x))
    if isinstance(x, str) and x.startswith(LISTED):
        return isinstance(y, str) and y.startswith(LISTED)
    return bool(x == y)
