# SPDX-License-Identifier: Apache-2.0
"""Orders: ``(Pattern, Placement) -> Placement``, one module per approach.

An ordering is a pure function of a pattern and the nodes it is to use (with the machine
where one is known), and returns these nodes with another order of the ranks. It is
registered by the decorator `ordering` and found by name with `find`; other
distributions add theirs under the entry point group ``nidmap.orders``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from inspect import signature

from nidmap.placement.errors import PlanError, UsageError, printable
from nidmap.placement.placement import Origin, Placement
from nidmap.placement.support.array_types import Shape
from nidmap.placement.support.registry import Registry, modules_in
from nidmap.rankmap.pattern import Pattern, parse_pattern

Ordering = Callable[[Pattern, Placement], Placement]

#: Orders given by a formula for each rank's slot, all in one module.
_NUMBERED = ("row-major", "column-major", "round-robin", "folded", "morton", "hilbert")

#: Where each bundled ordering lives: imported only when it is asked for.
BUNDLED = {
    **modules_in(os.path.dirname(__file__), "numbering"),
    **dict.fromkeys(_NUMBERED, "numbering"),
}

#: Those of process grids that take milliseconds and compile nothing, in the order in which
#: searches try them.
QUICK = (
    "hierarchical", "hilbert", "morton", "column-major", "folded", "round-robin", "cells",
    "aligned",
)  # fmt: skip

_orderings: Registry[Ordering] = Registry(
    "strategy", "nidmap.orders", __name__, BUNDLED, page="docs/reference/orders.md"
)


def ordering(name: str) -> Callable[[Ordering], Ordering]:
    """Register the decorated function as the order `name`."""
    return _orderings.register(name)


def names() -> list[str]:
    """Return the names of all orders, those of other distributions included."""
    return _orderings.names()


def find(strategy: str) -> Ordering:
    """Return the order that a text names: ``boxes``, or with options ``cells:-R -c 4,2``.

    Options follow a colon; an ordering that has some takes their text
    as its keyword `options`.
    """
    name, colon, options = strategy.partition(":")
    ordering = _orderings.find(name)
    if not colon:
        return ordering
    if "options" not in signature(ordering).parameters:
        raise UsageError(f"strategy {name} takes no options, not '{printable(options, 40)}'")
    takes: Callable[..., Placement] = ordering
    return partial(takes, options=options)


def grid_of(pattern: Pattern, strategy: str) -> Shape:
    """Return the extents of a pattern's process grid, the last fastest."""
    if pattern.dims is None:
        raise UsageError(
            f"strategy {strategy} needs a process grid, but pattern {pattern.spec} has none"
        )
    return pattern.dims


def arrange(placement: Placement, pattern: str | Pattern, strategy: str) -> Placement:
    """Order ranks on slots by the name of an order; `auto` compares J only.

    Every ordering, also one of another distribution, is held to the
    contract: a `Placement` on exactly these nodes.
    """
    wanted = parse_pattern(pattern) if isinstance(pattern, str) else pattern
    try:
        fitted = wanted.on(placement)
    except UsageError as error:
        raise UsageError(f"{error.message} ({placement.words()})", error.hint) from None
    order = find(strategy)(fitted, placement)
    if not isinstance(order, Placement) or not order.on_same_nodes(placement):
        raise PlanError(f"strategy {strategy!r} returned an invalid order: a bug in that strategy")
    origin = order.origin
    remark = "; ".join(filter(None, [*getattr(fitted, "notes", ()), origin.remark]))
    return placement.with_order(
        order.order, Origin(origin.strategy or strategy, fitted.spec, remark)
    )
