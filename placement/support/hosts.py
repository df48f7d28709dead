# SPDX-License-Identifier: Apache-2.0
"""Host names with and without a domain: which of some names a word means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

#: An IPv4 address: its parts are no domain.
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)


def same_host(a: str, b: str) -> bool:
    """Tell whether two names are alike, one perhaps with more of its domain."""
    return a == b or a in _shorter(b) or b in _shorter(a)


def _shorter(name: str) -> Iterator[str]:
    """Yield a name without its last labels, the longest first."""
    if _ADDRESS.fullmatch(name):
        return
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


class HostNames:
    """Names of hosts, found by the same name with more or less of its domain."""

    def __init__(self, names: Sequence[str]) -> None:
        self._place = dict(zip(reversed(names), range(len(names) - 1, -1, -1), strict=True))
        self._longer: dict[str, list[int]] = {}
        for name, place in self._place.items():
            for short in _shorter(name):
                self._longer.setdefault(short, []).append(place)

    def find(self, word: str) -> list[int]:
        """Return the places of all names that a word may mean, the exact one alone."""
        for name in (word, *_shorter(word)):
            if name in self._place:
                return [self._place[name]]
        return sorted(self._longer.get(word, ()))
