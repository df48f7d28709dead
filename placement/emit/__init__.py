"""Emitters: a plan written down, one function a format; they only translate.

An emitter gets an `Emission`, which holds all it may need as plain values,
and returns text. It asks no topology and runs no command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import UsageError
from placement.support.lazy import lazy

if TYPE_CHECKING:
    from placement.emit import formats
    from placement.emit.formats import Emission
else:
    formats = lazy("placement.emit.formats")

__all__ = ["FORMATS", "emit"]

#: Names of the formats.
FORMATS = (
    *("nodelist", "lines", "nids", "cnames", "hostfile", "sbatch", "aprun", "pbs", "json"),
    *("exclude", "switches"),
)


def emit(emission: Emission, name: str) -> str:
    """Return the plan as text in the format `name`.

    Raises
    ------
    UsageError
        Unknown format, or one that the site's scheduler does not take.
    """
    if name not in FORMATS:
        raise UsageError(f"no format {name!r}", f"there are {', '.join(sorted(FORMATS))}")
    formats.refuse_other(emission, name)
    text: str = getattr(formats, name)(emission)
    return text
