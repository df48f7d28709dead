"""Order files by name: what a user, `nidmap order` or `nidmap plan --order-out` has written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import UsageError
from placement.support.reading import decode, read_bytes
from placement.support.suffixes import suffix_of
from rankmap.emit import SUFFIXES, find, read_order

if TYPE_CHECKING:
    from rankmap.placement import Placement

__all__ = ["format_named", "read_order_file", "read_text"]


def read_order_file(
    path: str, form: str | None, placement: Placement, launcher_order: str = "sorted"
) -> Placement:
    """Return the order that a file holds.

    Parameters
    ----------
    path : str
        ``-`` is standard input.
    form : str or None
        Its format (see `rankmap.emit.emit`); None: the one that its name states.
    placement : Placement
        The slots that it is for.
    launcher_order : str
        The node order that a file of ranks by slot was made for.

    Raises
    ------
    UsageError
        A name that states no format.
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    chosen = form or format_named(path)
    find(chosen)
    text, source = read_text(path)
    return read_order(text, chosen, placement, source, launcher_order)


def format_named(path: str) -> str:
    """Return the format that a file's own name states, or refuse to guess.

    Examples
    --------
    >>> format_named("plan/MPICH_RANK_ORDER")
    'mpich'
    """
    suffix = suffix_of(path)
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    raise UsageError(
        f"the name {path} does not say the format of the order",
        "slots and mpich files look alike: name it FILE.slots or FILE.mpich",
    )


def read_text(path: str) -> tuple[str, str]:
    """Return the text of a file, and what messages call it.

    Raises
    ------
    ParseError
        Where it cannot be read, or is not text.
    """
    return decode(read_bytes(path, "the order's -"), path), path
