"""``measured:FILE``: the pattern that ``nidmap record`` kept of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import UsageError
from rankmap.pattern import Pattern, pattern

if TYPE_CHECKING:
    from rankmap.readers.entries import Entries

__all__ = ["measured", "recorded_entries"]


@pattern("measured")
def measured(text: str) -> Pattern:
    """Build ``measured:FILE``: the bytes from rank to rank over all that was recorded.

    Collectives are taken as the messages of a usual algorithm. Messages that
    make up exactly a stencil are known as one, as those of any graph are.
    """
    from rankmap.pattern.graph import from_entries
    from rankmap.readers.entries import empty

    if not text:
        raise UsageError("pattern measured needs a file: measured:FILE", "nidmap record writes it")
    made = from_entries(recorded_entries(text), both=True, text=f"measured:{text}")
    if not len(made.indices):
        raise empty(text)
    return made


def recorded_entries(path: str) -> Entries:
    """Return the bytes from rank to rank that a recording holds.

    Raises
    ------
    ParseError
        No such file, or no recording.
    """
    from rankmap.readers.entries import Entries
    from rankmap.recording.file import load_recording

    recording = load_recording(path)
    total = recording.total()
    size = total.bytes.astype(float)
    return Entries(recording.ranks, total.source, total.target, size, notes=recording.notes)
