"""Orderings: ``(Pattern, Slots) -> Order``, one file an idea.

An ordering is a pure function of a pattern and the slots it is to stand on
(which carry their nodes and, where one is known, the machine). It is
registered by the decorator `ordering` and found by name with `find`; other
distributions add theirs under the entry point group ``nidmap.orders``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import UsageError, printable
from placement.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankmap.order import Order
    from rankmap.pattern import Pattern
    from rankmap.slots import Slots

    Ordering = Callable[[Pattern, Slots], Order]

__all__ = ["find", "names", "ordering"]

#: Where each bundled ordering lives: imported only when it is asked for.
BUNDLED = {
    "aligned": "aligned",
    "auto": "auto",
    "boxes": "boxes",
    "cells": "cells",
    "column-major": "column_major",
    "folded": "folded",
    "graph": "graph",
    "hierarchical": "hierarchical",
    "hilbert": "curve",
    "morton": "curve",
    "round-robin": "round_robin",
    "row-major": "row_major",
}

_orderings: Registry[Ordering] = Registry("strategy", "nidmap.orders", __name__, BUNDLED)


def ordering(name: str) -> Callable[[Ordering], Ordering]:
    """Register the decorated function as the ordering `name`."""
    return _orderings.register(name)


def names() -> list[str]:
    """Return the names of all orderings, those of other distributions included."""
    return _orderings.names()


def find(strategy: str) -> Ordering:
    """Return the ordering that a text names: ``boxes``, or with options ``cells:-R -c 4,2``.

    Options stand behind a colon; an ordering that has some takes their text
    as its keyword `options`.

    Raises
    ------
    UsageError
        Where there is none (the message names those there are), or it takes no options.
    """
    name, colon, options = strategy.partition(":")
    made = _orderings.find(name)
    return _with_options(name, made, options) if colon else made


def _with_options(name: str, made: Ordering, options: str) -> Ordering:
    from functools import partial
    from inspect import signature

    if "options" not in signature(made).parameters:
        raise UsageError(f"strategy {name} takes no options, not '{printable(options, 40)}'")
    takes: Callable[..., Order] = made
    return partial(takes, options=options)
