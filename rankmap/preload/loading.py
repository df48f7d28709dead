"""Load the library between a command's program and its MPI, and pass it what it needs to know."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from placement.errors import LaunchError, NidmapError
from rankmap.launch import is_mpiexec
from rankmap.preload.build import build, checks_addresses, find_compiler, program_abi

__all__ = ["library_for", "preload"]

_PRELOAD = "LD_PRELOAD"


def library_for(command: Sequence[str], env: Mapping[str, str], mpicc: str = "") -> str:
    """Return the library for a command's program; '' where it is linked with it already.

    Parameters
    ----------
    command : sequence of str
        Launcher, options, program.
    env : mapping of str to str
    mpicc : str
        The MPI compiler; '' looks for it.

    Raises
    ------
    LaunchError
        A static program without it, or no compiler to build it.
    OutputError
        Where the cache cannot be written.
    """
    abi = program_abi(command, env)
    if abi == "linked":
        return ""
    if abi == "static":
        raise LaunchError(
            "the program is linked statically, so that nothing can be loaded before it",
            "link it by the line that nidmap record --link prints",
        )
    return build(find_compiler(command, env, abi, mpicc), env)


def preload(
    command: Sequence[str], library: str, variables: Mapping[str, str], env: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return the command, and what its environment needs, so that its ranks load a library first.

    A program that is linked with the library needs none (``''``).

    Launchers pass the environment on by themselves, but for Open MPI's on
    other nodes: that gets options of its own right behind its name.

    Examples
    --------
    >>> preload(["srun", "./app"], "/x.so", {"NIDMAP_RECORD": "/r"}, {"LD_PRELOAD": "/y.so"})[1]
    {'LD_PRELOAD': '/x.so:/y.so', 'NIDMAP_RECORD': '/r'}
    """
    before = ":".join(path for path in (library, env.get(_PRELOAD, "")) if path)
    more = {_PRELOAD: before, **variables}
    if checks_addresses(command, env):
        options = env.get("ASAN_OPTIONS", "")
        more["ASAN_OPTIONS"] = f"{options}:verify_asan_link_order=0".lstrip(":")
    return [command[0], *_passing(command, list(more), env), *command[1:]], more


def _passing(command: Sequence[str], names: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return the launcher's options that pass variables on to other nodes."""
    if not is_mpiexec(command[0]):
        return []
    from rankmap.launch.mpi_library import mpi_library

    with contextlib.suppress(NidmapError):
        if mpi_library(command[0], env).name == "openmpi":
            return [word for name in names for word in ("-x", name)]
    return []
