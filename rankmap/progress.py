"""Signs of life: who waits for a long piece of work hears that it goes on.

``nidmap run`` plans in a child process and gives it up when nothing is heard
of it for a while: a library that spins for ever looks as busy as one that
works, so work says itself when it has come further.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["listen", "step"]

_listening: list[Callable[[], object]] = []


def listen(to: Callable[[], object] | None) -> None:
    """Have `to` called at every step from now on; None: nothing any more."""
    _listening[:] = [] if to is None else [to]


def step() -> None:
    """Say that the work has come one step further.

    Examples
    --------
    >>> heard = []
    >>> listen(lambda: heard.append("step"))
    >>> step()
    >>> listen(None)
    >>> step()
    >>> heard
    ['step']
    """
    for to in _listening:
        to()
