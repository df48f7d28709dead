"""Standard input, which can be read only once."""

from __future__ import annotations

import sys

from placement.errors import UsageError

__all__ = ["claim_stdin"]

#: Which standard input was read, and by what.
_claims: list[tuple[object, str]] = []


def claim_stdin(reader: str) -> None:
    """Note that something reads standard input to its end.

    Parameters
    ----------
    reader : str
        Option or argument that ``-`` was given to, '' where it has no name.

    Raises
    ------
    UsageError
        Another one has read it: what is left would seem empty.
    """
    if _claims and _claims[0][0] is sys.stdin:
        both = " and ".join(filter(None, (_claims[0][1], reader)))
        raise UsageError(f"standard input can be read only once: {both}", "put one into a file")
    _claims[:] = [(sys.stdin, reader)]
