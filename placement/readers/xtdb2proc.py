"""``xtdb2proc``: NIDs, cnames, roles, states and coordinates, of the system database.

``#`` comments, then one record a node of ``field=value`` pairs. The cname is
made of ``cab_position`` (column), ``cab_row``, ``cage``, ``slot`` and ``cpu``
(node); ``processor_id`` is the NID; the coordinates are (group, chassis,
slot) on an XC. All records have the same fields: one that lacks some was cut.
Facts checked on Edison's table (499 records, no exception).
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from placement.errors import NidmapError
from placement.readers import dump_format, sniffing
from placement.readers import rows as r
from placement.readers.cray import cray_dump
from placement.readers.rows import numbers_in
from placement.records import Dump

sniff = sniffing(r"^[ \t]*[a-z_]+=[^,\n]*,(?:[a-z_]+=[^,\n]*,)*(?:processor_id|cab_position)=[0-9]")
_PAIR = re.compile(r"([a-z_][a-z0-9_]*)=('[^']*'|[^,']*)(?:,|$)", re.I | re.A)
_VALUE = re.compile(r"-?[0-9]+|null|'[^']*'", re.I | re.A)

#: Fields that make a node: what they are called in `rows`.
_NUMBERS = {
    "cab_position": "col",
    "cab_row": "row",
    "cage": "cage",
    "slot": "slot",
    "cpu": "node",
    "processor_id": "nid",
    "x_coord": "x",
    "y_coord": "y",
    "z_coord": "z",
}
_WORDS = {"processor_type": "role", "processor_status": "state", "alloc_mode": "mode"}
_NEEDED = [name for name in _NUMBERS if not name.endswith("coord")] + ["processor_type"]


@dump_format("xtdb2proc", "inventory", sniff)
def read(text: str, source: str) -> Dump:
    """Read the output of ``xtdb2proc``.

    Parameters
    ----------
    text : str
    source : str
        Named in errors.

    Returns
    -------
    Dump
        Nodes with nid, cname, role, state, mode and coordinates; fabric
        ``aries`` where the coordinates are an XC's, else ``gemini``. Faults:
        ``duplicate-nid``, ``duplicate-cname``, ``cname``, ``coordinates``.

    Raises
    ------
    ParseError
        At the first record that is malformed or has other fields than the
        first.

    Examples
    --------
    >>> dump = read("cpu=0,slot=2,cage=0,cab_position=2,cab_row=3,x_coord=13,y_coord=0,z_coord=2,"
    ...             "processor_status='up',processor_type='compute',processor_id=5000", "edison")
    >>> dump.nodes.cname.tolist(), dump.nodes.coords.tolist(), dump.fabric
    (['c2-3c0s2n0'], [[13, 0, 2]], 'aries')
    """
    return cray_dump(r.Rows.read(text, source, "xtdb2proc", _Records()))


class _Records:
    """Interprets one record after the other; the first one says which fields there are."""

    fields: AbstractSet[str] = frozenset()

    def __call__(self, line: str) -> r.Row:
        """Return how to read a record."""
        values, at = _split_record(line.strip())
        self._same_fields(values.keys())
        for name in (name for name in _NUMBERS if name in values):
            if not (values[name].isascii() and values[name].isdigit()):
                raise NidmapError(f"{name}={values[name]} is not a number")
        return r.Row(
            {short: at[name] for name, short in _NUMBERS.items() if name in values},
            {short: _column_word(values, name) for name, short in _WORDS.items() if name in values},
        )

    def _same_fields(self, fields: AbstractSet[str]) -> None:
        missing = [name for name in _NEEDED if name not in fields]
        if missing:
            raise NidmapError(f"the record lacks {missing[0]}", "was the dump cut short?")
        self.fields = self.fields or fields
        other = sorted(fields ^ self.fields)
        if other:
            name = other[0]
            if other[0] in self.fields:
                raise NidmapError(f"the record lacks {name}, which all above have")
            raise NidmapError(f"the record has {name}, which none above has")


def _split_record(line: str) -> tuple[dict[str, str], dict[str, int]]:
    """Return the values of a record, and how many numbers stand before each value."""
    values: dict[str, str] = {}
    at: dict[str, int] = {}
    end = passed = 0
    while end < len(line):
        pair = _PAIR.match(line, end)
        if pair is None:
            raise NidmapError(f"'{line[end:].split(',')[0]}' is not field=value")
        if not _VALUE.fullmatch(pair[2]):
            shown = pair[0].rstrip(",")
            raise NidmapError(f"{shown} is not a number, null or a quoted word")
        name = pair[1].lower()
        if name in values:
            raise NidmapError(f"the record has {name} twice")
        passed += numbers_in(pair[1])
        values[name], at[name] = pair[2], passed
        passed += numbers_in(pair[2])
        end = pair.end()
    return values, at


def _column_word(values: dict[str, str], name: str) -> str:
    word = values[name].strip("'").lower()
    word = "" if word == "null" else word
    if name == "processor_type" and word not in ("service", "compute"):
        raise NidmapError(f"processor_type={values[name]} is not service or compute")
    if not re.fullmatch(r"[a-z_-]*", word, re.A):
        raise NidmapError(f"{name}={values[name]} is not a word")
    return word
