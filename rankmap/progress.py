# SPDX-License-Identifier: Apache-2.0
"""Progress reports, which show whoever waits for a long computation that it goes on.

``nidmap run`` plans in a child process and gives it up when nothing is heard
of it for a while: a library that spins for ever looks as busy as one that
works, so work says itself when it has come further.
"""

from __future__ import annotations

from collections.abc import Callable

_listening: list[Callable[[str], object]] = []


def listen(to: Callable[[str], object] | None) -> None:
    """Call `to` with progress from now on; None stops that."""
    _listening[:] = [] if to is None else [to]


def advance(text: str = "") -> None:
    """Report progress and the current activity; '' leaves the activity unchanged."""
    for to in _listening:
        to(text)
