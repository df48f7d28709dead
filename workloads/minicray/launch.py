"""How a program becomes MPI ranks inside a mini-Cray."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

from placement.errors import LaunchError, UsageError, printable
from workloads.minicray.daemon import HOME, MPI

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["launch_command", "launch_environment", "node_count"]


def node_count(
    about: dict[str, Any], nodes: int | None, ranks: int | None, nodelist: str | None
) -> int:
    """Return on how many nodes ranks are started; 0 where none are asked for.

    Raises
    ------
    UsageError
        A node that is not there.

    Examples
    --------
    >>> node_count({"names": ["n0", "n1"], "nodes": 2}, None, 8, None)
    2
    """
    if nodes is None and ranks is None and nodelist is None:
        return 0
    return nodes or len(_read_nodes(nodelist, about["names"])) or min(ranks or 1, about["nodes"])


def launch_command(
    about: dict[str, Any],
    command: Sequence[str],
    nodes: int | None = None,
    ranks: int | None = None,
    nodelist: str | None = None,
) -> list[str]:
    """Return the command line that starts a program as ranks; itself where none are asked for.

    Parameters
    ----------
    about : dict
        What the mini-Cray says of itself.
    command : sequence of str
    nodes, ranks : int or None
    nodelist : str or None
        All None: not as ranks.

    Raises
    ------
    UsageError
        More nodes than there are, or others.
    LaunchError
        No MPI here.
    """
    count = node_count(about, nodes, ranks, nodelist)
    if not count:
        return list(command)
    listed = _read_nodes(nodelist, about["names"])
    have = len(listed) or about["nodes"]
    if count > about["nodes"] or (listed and count != len(listed)):
        raise UsageError(f"{count} nodes wanted, {about['name']} has {have} of them")
    total = ranks or count
    if about["slurm"]:
        where = [f"-w{','.join(listed)}"] if listed else []
        # Else the first node gets all the ranks that it holds.
        even = [] if total % count else [f"--ntasks-per-node={total // count}"]
        return ["srun", f"--mpi={_slurm_mpi()}", f"-N{count}", f"-n{total}", *even, *where, "-K",
                "--quit-on-interrupt", *command]  # fmt: skip
    mpiexec, library, major = _mpi_library()
    names, each = listed or about["names"][:count], -(-total // count)
    if library == "openmpi":
        hosts = ["--host", ",".join(f"{name}:{each}" for name in names)]
        old = major in (1, 2, 3, 4)
        agent = ["--mca", "plm_rsh_agent"] if old else ["--prtemca", "plm_ssh_agent"]
        words = [*agent, f"{HOME}/ssh", *hosts]
    else:
        agent = ["-launcher", "ssh", "-launcher-exec", f"{HOME}/ssh"]
        words = [*agent, "-hosts", ",".join(names), "-ppn", str(each)]
    return [mpiexec, *words, "-n", str(total), *command]


def _read_nodes(nodelist: str | None, known: Sequence[str]) -> list[str]:
    from placement.nodelist import NodeList

    names = [] if nodelist is None else list(NodeList.parse(nodelist, "-w"))
    for name in names:
        if name not in known:
            raise UsageError(f"-w: no node {printable(name)} in this mini-Cray")
    return names


def launch_environment(about: dict[str, Any]) -> dict[str, str]:
    """Return which MPI programs have inside, and how ``nidmap bench … -n N`` starts its ranks.

    That is on the nodes, by Slurm.
    """
    from workloads.launched import MPIEXEC

    if _mpiexec() is None:
        return {}
    try:
        found = {MPI: _mpi_library()[1]}
    except LaunchError:
        return {}  # one that nobody knows
    if about["slurm"] and MPIEXEC not in os.environ and shutil.which("mpiexec") is not None:
        found[MPIEXEC] = f"srun --mpi={_slurm_mpi()} -K"
    return found


def _slurm_mpi() -> str:
    """Return what srun starts this environment's MPI with; a program without MPI minds neither."""
    return "pmix" if _mpiexec() and _mpi_library()[1] == "openmpi" else "pmi2"


def _mpiexec() -> str | None:
    """Return the mpiexec on PATH, or the one beside this Python."""
    beside = os.path.dirname(sys.executable)
    return shutil.which("mpiexec") or shutil.which("mpiexec", path=beside)


def _mpi_library() -> tuple[str, str, int]:
    """Return the mpiexec, its library's name and its major version."""
    from rankmap.launch.mpi_library import mpi_library

    mpiexec = _mpiexec()
    if mpiexec is None:
        raise LaunchError("mpiexec not found", "pip install 'nidmap[mpi]'")
    library = mpi_library(mpiexec, os.environ)
    return mpiexec, library.name, library.major
