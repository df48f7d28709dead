"""The machine that one is on, where no ``-m`` names one: ``-m here:``.

In this order: ``-m``; ``$NIDMAP_MACHINE``; ``machine`` in the user's own
``~/.config/nidmap/config.toml``; the site that the cluster's name is of, as Slurm, the PBS
server or /etc/xthostname says it, where its nodes are called as the site's; what the scheduler
says of its nodes and switches (`placement.live`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from placement.errors import SiteError, place
from placement.support.lazy import lazy

if TYPE_CHECKING:
    from placement.sites import loading
else:
    loading = lazy("placement.sites.loading")


__all__ = ["SCHEDULERS", "configured", "is_live"]

#: Words of ``-m`` before a colon that ask what runs here.
SCHEDULERS = ("here", "slurm", "pbs", "flux")


def is_live(spec: str) -> bool:
    """Return True for a word of ``-m`` that asks the scheduler here.

    Examples
    --------
    >>> is_live("here:"), is_live("slurm:gpu"), is_live("slurm"), is_live("torus:4")
    (True, True, False, False)
    """
    return spec.partition(":")[0] in SCHEDULERS and ":" in spec


def configured() -> tuple[str, ...]:
    """Return what the user's own file names as the machine; () where it names none.

    The file has one key, ``machine``: a word of ``-m``, or a list of them.

    Raises
    ------
    SiteError
        It cannot be read, or says something else.
    """
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    path = os.path.join(folder, "nidmap", "config.toml")
    if not os.path.exists(path):
        return ()
    tables = loading.read_tables(path)
    words = tables.pop("machine", [])
    named = [words] if isinstance(words, str) else words
    if tables or not isinstance(named, list) or not all(isinstance(word, str) for word in named):
        what = f"no such key: {next(iter(tables))}" if tables else "machine is not text"
        raise SiteError(f"{place(path)}: {what}", 'machine = "lumi", or a list of words of -m')
    return tuple(named)
