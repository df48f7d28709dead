# SPDX-License-Identifier: Apache-2.0
"""Matching host names, regardless of domain and case."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

#: An IPv4 address: its parts are no domain.
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)


def same_host(a: str, b: str) -> bool:
    """Tell whether two names match, where one may include more of its domain."""
    a, b = a.lower(), b.lower()
    return a == b or a in _shorter(b) or b in _shorter(a)


def _shorter(name: str) -> Iterator[str]:
    """Yield a name without its last labels, longest first."""
    if _ADDRESS.fullmatch(name):
        return
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


class HostNames:
    """Host names, looked up with more or less of their domains."""

    def __init__(self, names: Sequence[str]) -> None:
        self._place = dict(zip(reversed(names), range(len(names) - 1, -1, -1), strict=True))
        self._longer: dict[str, list[int]] = {}
        for name, place in self._place.items():
            for short in _shorter(name):
                self._longer.setdefault(short, []).append(place)
        self._lower: dict[str, list[int]] = {}  # both in lower case, made where that is needed
        self._lower_longer: dict[str, list[int]] = {}

    def find(self, word: str) -> list[int]:
        """Return the positions of all names that a word may mean; an exact match wins.

        Upper and lower case are told apart where the names do that.
        """
        for name in (word, *_shorter(word)):
            if name in self._place:
                return [self._place[name]]
        return sorted(self._longer.get(word, ())) or self._find_any_case(word.lower())

    def _find_any_case(self, word: str) -> list[int]:
        if not self._lower:
            self._lower = _merge_cases({name: [k] for name, k in self._place.items()})
            self._lower_longer = _merge_cases(self._longer)
        for name in (word, *_shorter(word)):
            if name in self._lower:
                return self._lower[name]
        return self._lower_longer.get(word, [])


def _merge_cases(places: dict[str, list[int]]) -> dict[str, list[int]]:
    """Return the positions of names by their lower-case form."""
    merged: dict[str, set[int]] = {}
    for name, holders in places.items():
        merged.setdefault(name.lower(), set()).update(holders)
    return {name: sorted(holders) for name, holders in merged.items()}
