# SPDX-License-Identifier: Apache-2.0
"""``xtdb2proc``: NIDs, cnames, roles, states and coordinates from the system database.

``#`` comments, then one record per node of ``field=value`` pairs. The cname is
made of ``cab_position`` (column), ``cab_row``, ``cage``, ``slot`` and ``cpu``
(node); ``processor_id`` is the NID; the coordinates are (group, chassis,
slot) on an XC. All records have the same fields: one that lacks some was cut.
Facts checked on Edison's table (499 records, no exception).
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from nidmap.placement.errors import NidmapError
from nidmap.placement.readers import dump_format, sniffing
from nidmap.placement.readers import rows as r
from nidmap.placement.readers.cray_formats import cray_dump
from nidmap.placement.records import Dump

sniff = sniffing(r"^[ \t]*[a-z_]+=[^,\n]*,(?:[a-z_]+=[^,\n]*,)*(?:processor_id|cab_position)=[0-9]")
_PAIR = re.compile(r"([a-z_][a-z0-9_]*)=('[^']*'|[^,']*)(?:,|$)", re.I | re.A)
_VALUE = "(?:-?[0-9]+|null|'[^']*')"

#: Fields that describe a node: their names in `rows`.
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
_COLUMNS = {**_NUMBERS, **_WORDS}
_NEEDED = [name for name in _NUMBERS if not name.endswith("coord")] + ["processor_type"]


@dump_format("xtdb2proc", "inventory", sniff)
def read(text: str, source: str) -> Dump:
    """Read the output of ``xtdb2proc``.

    Nodes with nid, cname, role, state, mode and coordinates; fabric ``aries`` where the
    coordinates are an XC's, else ``gemini``. Faults: ``duplicate-nid``, ``duplicate-cname``,
    ``cname``, ``coordinates``.
    """
    return cray_dump(r.read_rows(text, source, "xtdb2proc", _Records()))


class _Records:
    """Interprets records in sequence; the first one determines the fields."""

    fields: AbstractSet[str] = frozenset()

    def __call__(self, line: str) -> r.RowColumns:
        """Return how to read a record."""
        values = _split_record(line.strip())
        self._refuse_other_fields(values.keys())
        for name, value in values.items():
            if not re.fullmatch(_value_pattern(name), value, re.I | re.A):
                words = "service or compute" if name == "processor_type" else "a word"
                what = "a number" if name in _NUMBERS else words
                raise NidmapError(f"{name}={value} is not {what}")
        fields = ",".join(f"{name}={_value_pattern(name)}" for name in values)
        names = (_COLUMNS[name] for name in values if name in _COLUMNS)
        return r.RowColumns(re.compile(rf"\s*{fields},?\s*", re.A), tuple(names))

    def _refuse_other_fields(self, fields: AbstractSet[str]) -> None:
        missing = [name for name in _NEEDED if name not in fields]
        if missing:
            raise NidmapError(f"the record has no {missing[0]}", "was the dump cut short?")
        self.fields = self.fields or fields
        other = sorted(fields ^ self.fields)
        if other:
            name = other[0]
            if other[0] in self.fields:
                raise NidmapError(f"the record has no {name}, unlike all above")
            raise NidmapError(f"the record has {name}, unlike all above")


def _split_record(line: str) -> dict[str, str]:
    """Return the values of a record."""
    values: dict[str, str] = {}
    end = 0
    while end < len(line):
        pair = _PAIR.match(line, end)
        if pair is None:
            raise NidmapError(f"'{line[end:].split(',')[0]}' is not field=value")
        if not re.fullmatch(_VALUE, pair[2], re.I | re.A):
            shown = pair[0].rstrip(",")
            raise NidmapError(f"{shown} is not a number, null or a quoted word")
        name = pair[1].lower()
        if name in values:
            raise NidmapError(f"the record has {name} twice")
        values[name] = pair[2]
        end = pair.end()
    return values


def _value_pattern(name: str) -> str:
    """Return the pattern of a field's value, with a group if it describes the node."""
    if name in _NUMBERS:
        return r.COORDINATE if name.endswith("coord") else r.NUMBER
    if name == "processor_type":
        return "'(service|compute)'"
    return f"(?:null|'(?:null|{r.WORD})?')" if name in _WORDS else _VALUE
