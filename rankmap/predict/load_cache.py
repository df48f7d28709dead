# SPDX-License-Identifier: Apache-2.0
"""Results that a scenario may need again: loads and phases."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Result = TypeVar("Result")

#: Numbers of loads that are kept.
KEPT = 32_000_000

#: Numbers that are kept of the phases of the last orders.
KEPT_OF_ORDERS = 16_000_000


class Latest:
    """The latest results of one kind, each by everything that it depends on."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._kept: dict[Hashable, tuple[Any, int]] = {}

    def get(
        self, key: Hashable, make: Callable[[], Result], size_of: Callable[[Result], int]
    ) -> Result:
        """Return a result, made where it is not kept; old ones go where all are too large."""
        known: tuple[Result, int] | None = self._kept.pop(key, None)
        if known is None:
            result = make()
            known = result, size_of(result)
            self._size += known[1]
        self._kept[key] = known
        while len(self._kept) > 1 and self._size > self._most:
            self._size -= self._kept.pop(next(iter(self._kept)))[1]
        return known[0]


class LoadCache:
    """What scenarios that differ in assumptions alone share."""

    def __init__(self) -> None:
        self.loads, self.phases = Latest(KEPT), Latest(KEPT_OF_ORDERS)
        self.shared = Latest(2)  # what other jobs send over links; of a plan and the baseline
