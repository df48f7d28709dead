"""Packages that only some commands need, and the extra of the install that brings each."""

from __future__ import annotations

from placement.errors import UsageError

__all__ = ["EXTRAS", "missing"]

#: Package -> the extra that brings it.
EXTRAS = {
    "ducc0": "fft",
    "quart": "web",
    "quickjs": "web",
    "resvg_py": "web",
    "llvmlite": "fast",
    "matplotlib": "plot",
    "mpi4py": "mpi",
    "networkx": "graphs",
    "numba": "fast",
    "pandas": "tables",
    "pyarrow": "parquet",
    "scipy": "fft",
    "uvicorn": "web",
    "werkzeug": "web",
}

#: Packages whose users know them by another name than their module's.
NAMES = {"quart": "Quart", "quickjs": "quickjs-ng", "resvg_py": "resvg-py"}


def missing(module: str, what: str = "this") -> UsageError | None:
    """Return the error to raise where a module of an extra is not installed.

    Parameters
    ----------
    module : str
        The module that could not be imported.
    what : str
        What needs it, for the message.

    Returns
    -------
    UsageError or None
        None where no extra brings it: then the install is broken.

    Examples
    --------
    >>> print(missing("networkx.readwrite"))
    this needs networkx, which is not installed; pip install 'nidmap[graphs]'
    """
    package = module.partition(".")[0]
    if package not in EXTRAS:
        return None
    name = NAMES.get(package, package)
    hint = f"pip install 'nidmap[{EXTRAS[package]}]'"
    return UsageError(f"{what} needs {name}, which is not installed", hint)
