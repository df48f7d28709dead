"""Modules that are imported when something of them is first used: the house's one way."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module, and imports it when an attribute of it is asked for.

    Python's own `importlib.util.LazyLoader` is not used: before 3.12.3 two threads that
    first use a module at the same time can see half of it.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self.__name__), attribute)


def lazy(name: str) -> Any:
    """Return what stands for a module until something of it is used.

    A type checker is shown the import itself::

        if TYPE_CHECKING:
            import pandas
        else:
            pandas = lazy("pandas")

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> numbering = lazy("nidmap.placement.names.numbering")
    >>> numbering.Xc.__name__
    'Xc'
    """
    return LazyModule(name)
