# SPDX-License-Identifier: Apache-2.0
"""Queries to a launcher: which MPI it belongs to, and where it puts ranks.

Several MPIs bring programs of the same names, and a machine may have more than
one of them: only the very executable can say whose it is, by ``--version``. Where
ranks go is said by a launch whose ranks only say where they are.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nidmap.placement.errors import LaunchError
from nidmap.placement.support.child import Deadline, run_child
from nidmap.rankmap.launch import Launch
from nidmap.rankmap.progress import advance

#: Patterns of the ``--version`` output of mpiexec.
_VERSIONS = (
    ("openmpi", re.compile(r"\((?:Open MPI|OpenRTE)\)\s+([0-9.]+)|^prterun .*?([0-9.]+)", re.M)),
    ("intel", re.compile(r"Intel\(R\) MPI Library.*?Version\s+([0-9.]+)")),
    ("mpich", re.compile(r"HYDRA build details:\s+Version:\s+([0-9.]+)")),
    ("cray-mpich", re.compile(r"^mpiexec (?:version )?([0-9.]+) revision|\bPALS\b", re.M)),
)

#: A rank's output: a mark, the rank, the node.
_PLACE = re.compile(r"nidmap-rank ([0-9]{1,9}) ([A-Za-z0-9._-]{1,255})(?![A-Za-z0-9._-])", re.ASCII)


def run_query(
    argv: Sequence[str], env: Mapping[str, str], seconds: float = 10.0, late_hint: str = ""
) -> str:
    """Return the output of a command; waiting for it does not count as being stuck."""
    answer = run_child(argv, env, Deadline(seconds), late_hint=late_hint, on_wait=advance)
    if answer.code:
        raise LaunchError(f"{argv[0]} failed (exit code {answer.code})")
    return answer.output


class MpiLibrary(NamedTuple):
    """An MPI library."""

    name: str  # ``openmpi``, ``mpich``, ``intel`` or ``cray-mpich``
    version: str  # '' where it does not say

    @property
    def major(self) -> int:
        """The first number of the version; 0 if unknown."""
        first = self.version.partition(".")[0]
        return int(first) if first.isdecimal() else 0


def mpi_library(program: str, env: Mapping[str, str]) -> MpiLibrary:
    """Ask an mpiexec for its MPI library.

    `program`: a path, or a name that PATH of `env` resolves.
    """
    path = shutil.which(program, path=env.get("PATH", os.defpath)) or program
    text = run_query([path, "--version"], env)
    matches = ((name, pattern.search(text)) for name, pattern in _VERSIONS)
    name, match = next(((name, match) for name, match in matches if match), ("", None))
    if match is None:
        first = text.strip().partition("\n")[0][:60]
        unclear = f"cannot tell which MPI {program} belongs to (it says '{first}')"
        raise LaunchError(unclear, "give --mpi")
    return MpiLibrary(name, next(filter(None, match.groups()), ""))


def rank_printer(variables: Sequence[str], host: str = "$(uname -n)") -> tuple[str, ...]:
    """Return a program that prints each rank's number and node.

    `variables`: variables that hold the rank under this launcher, the first that is set. `host`:
    what names the node, in a shell's words.
    """
    rank = ""
    for name in reversed(variables):
        rank = f"${{{name}:-{rank}}}"
    return ("sh", "-c", f'printf "\\nnidmap-rank %s %s\\n" "{rank}" "{host}"')


def query_rank_nodes(
    launch: Launch, env: Mapping[str, str], ranks: int, seconds: float, late_hint: str = ""
) -> list[str]:
    """Run a launch of `rank_printer` and return the node of each rank."""
    text = run_query(launch.argv, {**env, **launch.env}, seconds, late_hint)
    node_of: dict[int, str] = {}
    for rank, host in _PLACE.findall(text):
        if node_of.setdefault(int(rank), host) != host:
            raise LaunchError(f"rank {rank} reported two nodes: {node_of[int(rank)]}, {host}")
    missing = next((r for r in range(ranks) if r not in node_of), None)
    if missing is not None or len(node_of) != ranks:
        raise LaunchError(f"only {len(node_of)} of {ranks} ranks reported their node")
    return [node_of[r] for r in range(ranks)]
