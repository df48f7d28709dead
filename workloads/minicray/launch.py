"""How a program becomes MPI ranks inside a mini-Cray."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placement.errors import LaunchError, UsageError, printable
from workloads.minicray.daemon import HOME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankmap.launch.mpi_library import MpiLibrary

__all__ = ["Ranks", "starter"]


@dataclass(frozen=True, slots=True)
class Ranks:
    """What is asked of a launch.

    Attributes
    ----------
    nodes, ranks : int or None
    nodelist : str or None
        All None: not as ranks.
    """

    nodes: int | None = None
    ranks: int | None = None
    nodelist: str | None = None

    def command(self, about: dict[str, Any], command: Sequence[str]) -> list[str]:
        """Return the command line that starts a program as ranks; itself where none are asked for.

        Parameters
        ----------
        about : dict
            What the mini-Cray says of itself.
        command : sequence of str

        Raises
        ------
        UsageError
            More nodes than there are, or others.
        LaunchError
            No MPI here.
        """
        if self == Ranks():
            return list(command)
        listed = self._listed(about["names"])
        count = self.nodes or len(listed) or min(self.ranks or 1, about["nodes"])
        if count > about["nodes"] or (listed and count != len(listed)):
            have = len(listed) or about["nodes"]
            raise UsageError(f"{count} nodes wanted, {about['name']} has {have} of them")
        total = self.ranks or count
        if about["slurm"]:
            where = [f"-w{','.join(listed)}"] if listed else []
            return ["srun", f"--mpi={_slurm_mpi()}", f"-N{count}", f"-n{total}", *where, "-K",
                    "--quit-on-interrupt", *command]  # fmt: skip
        return _mpiexec(listed or about["names"][:count], total, command)

    def _listed(self, known: Sequence[str]) -> list[str]:
        if self.nodelist is None:
            return []
        from placement.nodelist import NodeList

        names = list(NodeList.parse(self.nodelist, "-w"))
        other = next((name for name in names if name not in known), None)
        if other is not None:
            raise UsageError(f"-w: no node {printable(other)} in this mini-Cray")
        return names


def starter(about: dict[str, Any]) -> dict[str, str]:
    """Return how ``nidmap bench … -n N`` starts its ranks inside: on the nodes, by Slurm."""
    from workloads.launched import MPIEXEC

    if not about["slurm"] or MPIEXEC in os.environ or shutil.which("mpiexec") is None:
        return {}
    return {MPIEXEC: f"srun --mpi={_slurm_mpi()} -K"}


def _slurm_mpi() -> str:
    """Return what srun starts this environment's MPI with; a program without MPI minds neither."""
    return "pmix" if _found() and _library().name == "openmpi" else "pmi2"


def _found() -> str | None:
    """Return the mpiexec on PATH, or the one beside this Python."""
    beside = os.path.dirname(sys.executable)
    return shutil.which("mpiexec") or shutil.which("mpiexec", path=beside)


def _library() -> MpiLibrary:
    from rankmap.launch.mpi_library import mpi_library

    mpiexec = _found()
    if mpiexec is None:
        raise LaunchError("mpiexec not found", "pip install 'nidmap[mpi]'")
    return mpi_library(mpiexec, os.environ)


def _mpiexec(names: Sequence[str], ranks: int, command: Sequence[str]) -> list[str]:
    each = -(-ranks // len(names))
    library = _library()
    if library.name == "openmpi":
        hosts = ",".join(f"{name}:{each}" for name in names)
        old = library.major in (1, 2, 3, 4)
        agent = ["--mca", "plm_rsh_agent"] if old else ["--prtemca", "plm_ssh_agent"]
        return [str(_found()), *agent, f"{HOME}/ssh", "--host", hosts,
                "-n", str(ranks), *command]  # fmt: skip
    return [str(_found()), "-launcher", "ssh", "-launcher-exec", f"{HOME}/ssh",
            "-hosts", ",".join(names), "-ppn", str(each), "-n", str(ranks), *command]  # fmt: skip
