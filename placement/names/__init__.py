"""Names of nodes: Cray cnames, HPE xnames, and the NIDs that go with them.

A cname says where a node sits in the machine room, a NID is its number; on
an XC and on an XE or XK one follows from the other once the shape of the
machine room is known (`Xc`, `Gemini`), and that shape follows from any dump
that lists both (``Xc.fit``, ``Gemini.fit``). For many nodes at once names are
numpy string arrays and places are ``int32 (n, 5)`` with the columns col, row,
cage, slot, node; a row of -1 marks what is impossible. For one node there are
`Cname` and ``nid_of``/``cname_of``, which raise `BadNameError`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placement.names.cname import BadNameError, Cname
    from placement.names.columns import format_cnames, parse_cnames
    from placement.names.gemini import Gemini
    from placement.names.numbered import name_numbers, nid_names
    from placement.names.xc import Xc
    from placement.names.xname import Xname, normalise_xnames

__all__ = [
    "BadNameError",
    "Cname",
    "Gemini",
    "Xc",
    "Xname",
    "format_cnames",
    "name_numbers",
    "nid_names",
    "normalise_xnames",
    "parse_cnames",
]

#: Where each name lives: a plan on a torus never loads the rules of an XC.
_HOMES = {
    "BadNameError": "cname",
    "Cname": "cname",
    "Gemini": "gemini",
    "Xc": "xc",
    "Xname": "xname",
    "format_cnames": "columns",
    "name_numbers": "numbered",
    "nid_names": "numbered",
    "normalise_xnames": "xname",
    "parse_cnames": "columns",
}


def __getattr__(name: str) -> Any:
    """Load a name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'placement.names' has no attribute {name!r}")
    value = getattr(import_module(f"placement.names.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
