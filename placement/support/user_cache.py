"""Where nidmap keeps what it wants to find again: folders of the user's own cache."""

from __future__ import annotations

import os

__all__ = ["user_cache"]


def user_cache(name: str, variable: str = "") -> str:
    """Return the path of a folder in the user's cache; it need not be there.

    Parameters
    ----------
    name : str
        What is kept there.
    variable : str
        An environment variable that names another folder, or none where it is empty.

    Returns
    -------
    str
        '' where nothing is to be kept.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    usual = os.path.join(cache, "nidmap", name)
    return os.environ.get(variable, usual) if variable else usual
