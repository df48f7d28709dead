"""What a configuration and a dump of the machine both state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Finding", "examples"]


class Finding(NamedTuple):
    """One thing that both the configuration and the dump state.

    Attributes
    ----------
    what : str
        ``compute nodes``, ``NID rule``, ``wiring`` …
    site, dump : str
        What each says.
    agrees : bool or None
        None where they cannot be compared (an extract).
    """

    what: str
    site: str
    dump: str
    agrees: bool | None


def examples(words: NDArray[np.str_], most: int = 3) -> str:
    """Return the first few of many, and how many there are.

    Examples
    --------
    >>> import numpy as np
    >>> examples(np.array(["a", "b", "c", "d"]))
    '4 (a, b, c, …)'
    """
    shown = ", ".join(words[:most].tolist())
    return f"{len(words)} ({shown}{', …' if len(words) > most else ''})"
