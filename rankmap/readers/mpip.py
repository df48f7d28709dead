"""mpiP reports: tables of messages by pair of ranks, where a report has one.

mpiP's usual tables (callsites, sizes) say how much a rank sent and not to
whom; no graph can be made of those, and the error says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankmap.readers.craypat import table

if TYPE_CHECKING:
    from rankmap.readers import Entries

__all__ = ["read"]


def read(raw: bytes, source: str) -> Entries:
    """Return the entries of an mpiP report.

    Raises
    ------
    ParseError
        No table that names sender, receiver and bytes.

    Examples
    --------
    >>> read(b"@ mpiP\\nSource  Dest  Bytes\\n0  1  5.0e+03\\n", "-").weight.tolist()
    [5000.0]
    """
    return table(raw, source, "mpiP")
