"""How a program becomes MPI ranks inside a mini-Cray."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from typing import Any

from placement.errors import LaunchError, UsageError, printable
from placement.nodelist import NodeList
from rankmap.launch import CRAY, INTEL, MPICH, OPENMPI
from rankmap.launch.queries import MpiLibrary, mpi_library
from rankmap.preload.program_mpi import program_abi
from workloads.launched import MPIEXEC
from workloads.minicray.daemon import FINALIZE, HOME, MPI

__all__ = ["launch_command", "launch_environment", "node_count"]


#: What starts ranks, as distributions call it where they have several MPIs.
_MPIEXECS = ("mpiexec", "mpirun", "mpiexec.openmpi", "mpirun.openmpi", "mpiexec.mpich",
             "mpiexec.hydra")  # fmt: skip


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
        return ["srun", f"--mpi={_slurm_mpi(_find_mpi(command)[1])}", f"-N{count}", f"-n{total}",
                *even, *where, "-K", "--quit-on-interrupt", *command]  # fmt: skip
    mpiexec, library = _find_mpi(command)
    if library is None:
        raise LaunchError("no mpiexec of this program's MPI found", "pip install 'nidmap[mpi]'")
    names, per_node = listed or about["names"][:count], -(-total // count)
    if library.name == OPENMPI:
        hosts = ["--host", ",".join(f"{name}:{per_node}" for name in names)]
        old = library.major in (1, 2, 3, 4)
        agent = ["--mca", "plm_rsh_agent"] if old else ["--prtemca", "plm_ssh_agent"]
        words = [*agent, f"{HOME}/ssh", *hosts]
    else:
        agent = ["-launcher", "ssh", "-launcher-exec", f"{HOME}/ssh"]
        words = [*agent, "-hosts", ",".join(names), "-ppn", str(per_node)]
    return [mpiexec, *words, "-n", str(total), *command]


def _read_nodes(nodelist: str | None, known: Sequence[str]) -> list[str]:
    names = [] if nodelist is None else list(NodeList.parse(nodelist, "-w"))
    for name in names:
        if name not in known:
            raise UsageError(f"-w: no node {printable(name)} in this mini-Cray")
    return names


def launch_environment(about: dict[str, Any], command: Sequence[str]) -> dict[str, str]:
    """Return which MPI programs have inside, and how ``nidmap bench … -n N`` starts its ranks.

    That is on the nodes, by Slurm. An MPICH may be an old one, which needs help to end on UCX
    (``finalize.c``); which one a program is linked with its mpiexec does not tell.
    """
    _, library = _find_mpi(command)
    if library is None:
        return {}
    variables = {MPI: library.name}
    if library.name == MPICH and about.get("finalize"):
        before = [word for word in (os.environ.get("LD_PRELOAD", ""), str(FINALIZE)) if word]
        variables["LD_PRELOAD"] = ":".join(before)
    if about["slurm"] and MPIEXEC not in os.environ and shutil.which("mpiexec") is not None:
        variables[MPIEXEC] = f"srun --mpi={_slurm_mpi(library)} -K"
    return variables


def _slurm_mpi(library: MpiLibrary | None) -> str:
    """Return what srun starts a program's MPI with; a program without MPI minds neither."""
    return "pmix" if library and library.name == OPENMPI else "pmi2"


def _find_mpi(command: Sequence[str]) -> tuple[str, MpiLibrary | None]:
    """Return the first mpiexec of the MPI that a command's program is linked with, and that MPI.

    They are those on PATH, and the one beside this Python; the first of them all where the
    program does not tell, as a script. The MPI is None where nobody knows that mpiexec.
    """
    known = {"openmpi": (OPENMPI,), "mpich": (MPICH, INTEL, CRAY)}
    wanted = known.get(program_abi(["", *command], os.environ))
    path = f"{os.environ.get('PATH', '')}:{os.path.dirname(sys.executable)}"
    for name, folder in product(_MPIEXECS, path.split(os.pathsep)):
        if starter := shutil.which(name, path=folder):
            library = None
            with suppress(LaunchError):
                library = mpi_library(starter, os.environ)
            if wanted is None or (library is not None and library.name in wanted):
                return starter, library
    return "", None
