"""Node names from a template such as ``nid{nid:05}`` or ``x{cabinet}c{chassis}s{slot}b0n0``."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from placement.errors import printable
from placement.names.numbered import nid_names
from placement.sites.shared import WrongFigure

__all__ = ["FIELDS", "node_names"]

#: What a template may name: the NID or the number within the partition, and an xname's parts.
FIELDS = ("nid", "number", "cabinet", "chassis", "slot", "board")

_FIELD = re.compile(r"\{([^{}]*)\}")
_FORM = re.compile(r"([a-z]+)(?::0?([1-9]\d?))?", re.ASCII)


def node_names(
    key: str, template: str, numbers: Mapping[str, NDArray[np.int64]]
) -> NDArray[np.str_]:
    """Return one name a node.

    Parameters
    ----------
    key : str
        The template's key, for the error.
    template : str
        Text with ``{field}`` or ``{field:05}`` (at least 5 digits) in it.
    numbers : mapping of str to int64 (n,)
        The fields there are.

    Returns
    -------
    str (n,)

    Raises
    ------
    WrongFigure
        A field that is unknown, or that this partition does not number.

    Examples
    --------
    >>> import numpy as np
    >>> node_names("node_name", "nid{nid:05}", {"nid": np.array([7, 6183])}).tolist()
    ['nid00007', 'nid06183']
    """
    pieces = _FIELD.split(template)
    if len(pieces) == 1:
        raise WrongFigure(key, f"'{printable(template)}' has no {{nid}} or other number in it")
    fields = [_digits(key, text, numbers) for text in pieces[1::2]]
    values, width = fields[0]
    names = nid_names(values, width, prefix=pieces[0])
    for text, (values, width) in zip(pieces[2:-1:2], fields[1:], strict=True):
        names = np.char.add(names, nid_names(values, width, prefix=text))
    return np.char.add(names, pieces[-1]) if pieces[-1] else names


def _digits(
    key: str, text: str, numbers: Mapping[str, NDArray[np.int64]]
) -> tuple[NDArray[np.int64], int]:
    """Return the numbers of one field and the width asked for."""
    form = _FORM.fullmatch(text)
    if form is None or form[1] not in FIELDS:
        there = ", ".join(FIELDS)
        raise WrongFigure(key, f"'{{{printable(text)}}}' is no field; there are {there}")
    if form[1] not in numbers:
        raise WrongFigure(key, f"'{{{text}}}' is used but the nodes have no {form[1]} number")
    return numbers[form[1]], int(form[2] or 1)
