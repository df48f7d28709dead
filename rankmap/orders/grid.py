"""What orderings over a process grid share: its extents, or one clear refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import UsageError

if TYPE_CHECKING:
    from rankmap.pattern import Pattern

__all__ = ["grid_of"]


def grid_of(pattern: Pattern, strategy: str) -> tuple[int, ...]:
    """Return the extents of a pattern's process grid, the last fastest.

    Raises
    ------
    UsageError
        Naming the strategy, where the pattern has none.

    Examples
    --------
    >>> from rankmap.pattern import parse_pattern
    >>> grid_of(parse_pattern("fft:8x4"), "column-major")
    (8, 4)
    """
    if pattern.dims is None:
        raise UsageError(
            f"strategy {strategy} needs a process grid, pattern {pattern.spec} has none"
        )
    return pattern.dims
