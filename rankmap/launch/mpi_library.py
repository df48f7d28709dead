"""Which MPI an mpiexec belongs to: what the very executable prints for ``--version``.

Several MPIs bring programs of the same names, and a machine may have more than
one of them: only the executable that would be started can say whose it is.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from typing import NamedTuple

from placement.errors import LaunchError, printable

__all__ = ["MpiLibrary", "mpi_library"]

#: What the versions of mpiexec print for ``--version``.
_VERSIONS = (
    ("openmpi", re.compile(r"\((?:Open MPI|OpenRTE)\)\s+([0-9.]+)|^prterun .*?([0-9.]+)", re.M)),
    ("intel", re.compile(r"Intel\(R\) MPI Library.*?Version\s+([0-9.]+)")),
    ("mpich", re.compile(r"HYDRA build details:\s+Version:\s+([0-9.]+)")),
    ("cray-mpich", re.compile(r"^mpiexec (?:version )?([0-9.]+) revision|\bPALS\b", re.M)),
)

_answers: dict[tuple[str, float], MpiLibrary] = {}


class MpiLibrary(NamedTuple):
    """An MPI library.

    Attributes
    ----------
    name : str
        ``openmpi``, ``mpich``, ``intel`` or ``cray-mpich``.
    version : str
        '' where it does not say.
    """

    name: str
    version: str

    @property
    def major(self) -> int:
        """The first number of the version, 0 where it is not known.

        Examples
        --------
        >>> MpiLibrary("openmpi", "4.1.4").major
        4
        """
        first = self.version.partition(".")[0]
        return int(first) if first.isdecimal() else 0


def mpi_library(program: str, env: Mapping[str, str]) -> MpiLibrary:
    """Return the MPI library of an mpiexec; each executable is asked once.

    Parameters
    ----------
    program : str
        A path, or a name that PATH of `env` resolves.
    env : mapping of str to str

    Raises
    ------
    LaunchError
        Where it cannot be started, or is none of those that are known.
    """
    from rankmap.launch.queries import run_query

    path = shutil.which(program, path=env.get("PATH", os.defpath)) or program
    try:
        key = (os.path.realpath(path), os.stat(path).st_mtime)
    except OSError:
        key = (path, 0.0)
    if key not in _answers:
        _answers[key] = _read_version(program, run_query([path, "--version"], env))
    return _answers[key]


def _read_version(program: str, text: str) -> MpiLibrary:
    for name, pattern in _VERSIONS:
        match = pattern.search(text)
        if match:
            return MpiLibrary(name, next((group for group in match.groups() if group), ""))
    first = printable(text.strip().split("\n")[0], 60)
    raise LaunchError(
        f"which MPI {printable(program, 40)} belongs to is not clear (it says '{first}')",
        "say it with --mpi",
    )
