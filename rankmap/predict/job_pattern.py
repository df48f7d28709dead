"""From what a caller names to what the model works on: the pattern on its slots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placement.errors import UsageError
from rankmap.pattern import Pattern, parse_pattern
from rankmap.pattern.graph import Graph
from rankmap.placement import Placement
from rankmap.predict.neighbours import remember_steps
from rankmap.recording.file import load_recording

__all__ = ["MULTIPLIED", "USUAL_BYTES", "fit_pattern", "parse_wanted", "size_of"]

#: Patterns that say bytes themselves: ``--bytes`` multiplies them, and 1 is the default.
MULTIPLIED = ("graph:", "matrix:", "measured:", "sends:", "training:")

#: More bytes than any message has.
MOST_BYTES = 1e18

#: Payload of a message where nobody says it.
USUAL_BYTES = 1e6

#: What the bytes of a pattern are, where they are not a message.
WHAT = {
    "sort": "local data a rank",
    **dict.fromkeys(("allreduce", "bcast", "reduce"), "buffer"),
    **dict.fromkeys(("allgather", "gather", "reducescatter", "scatter"), "a rank's block"),
}


def parse_wanted(wanted: str | Pattern) -> Pattern:
    """Return the pattern that a text names; what was measured keeps its directions and steps.

    Raises
    ------
    UsageError, ParseError
        As `rankmap.pattern.parse_pattern` does.
    """
    if not isinstance(wanted, str):
        return wanted
    kind, _, path = wanted.strip().partition(":")
    with np.errstate(over="ignore"):  # what cannot be counted is refused with its time
        pattern = parse_pattern(wanted)
    if kind not in ("matrix", "measured") or not isinstance(pattern, Graph):
        return pattern
    notes = tuple(note for note in pattern.notes if not note.startswith("not symmetric"))
    pattern = replace(pattern, notes=notes)  # each direction counts for itself here
    if kind == "measured":
        pattern = replace(pattern, known=dict(pattern.known))
        remember_steps(pattern, load_recording(path))
    return pattern


def fit_pattern(wanted: Pattern, placement: Placement) -> Pattern:
    """Return a pattern for exactly these slots.

    Raises
    ------
    UsageError
        Where the pattern has another number of ranks.
    """
    try:
        return wanted.on(placement)
    except UsageError as error:
        raise UsageError(f"{error.message} ({placement.words()})", error.hint) from None


def size_of(pattern: Pattern, given: float | None) -> tuple[float, str]:
    """Return ``--bytes`` and what is to be said where it is assumed.

    Parameters
    ----------
    pattern : Pattern
    given : float or None
        None takes 1 for a pattern that says bytes itself, else 1 MB.

    Raises
    ------
    UsageError
        Negative, infinite or no number.

    Examples
    --------
    >>> size_of(parse_pattern("alltoall"), None)
    (1000000.0, '1 MB a message assumed')
    """
    if given is not None:
        if not 0 <= given <= MOST_BYTES:
            raise UsageError(f"bytes {given:g}: it must be 0 to {MOST_BYTES:g}")
        return float(given), ""
    if pattern.spec.startswith(MULTIPLIED):
        return 1.0, ""
    if pattern.spec == "barrier":
        return 0.0, ""
    what = WHAT.get(pattern.spec.partition(":")[0], "a message")
    return USUAL_BYTES, f"1 MB {what} assumed"
