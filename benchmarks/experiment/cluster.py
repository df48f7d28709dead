# SPDX-License-Identifier: Apache-2.0
"""A mini-Cray's Slurm as used by the experiment: occupied nodes, its own choice, launches."""

from __future__ import annotations

import random
import re
import tempfile
import time
from typing import TYPE_CHECKING

from nidmap.placement.errors import LaunchError, printable
from nidmap.placement.nodelist import NodeList
from nidmap.placement.support.child import Deadline
from nidmap.workloads.minicray import client

if TYPE_CHECKING:
    from collections.abc import Sequence

_GRANTED = re.compile(r"Granted job allocation (\d+)")

#: Nodes of the other jobs; small ones, so that many holes come about.
_SIZES = (1, 1, 2, 2, 3)

#: Seconds for Slurm to free nodes.
_PATIENCE = 30.0


class Cluster:
    """The Slurm of a mini-Cray.

    Parameters
    ----------
    name : str
        Of the mini-Cray.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        about = client.ask_daemon(name, {"do": "status"})
        self.nodes: list[str] = about["names"]
        self.scale = float(about["scale"])
        self.mtu = int(about["mtu"])

    def says(self, *words: str) -> str:
        """Return what a command prints inside, including errors.

        Raises
        ------
        LaunchError
            Where it fails.
        """
        with tempfile.TemporaryFile() as out:
            code = client.run(self.name, words, output=out.fileno())
            out.seek(0)
            text = out.read().decode(errors="replace")
        if code:
            last = (text.strip().splitlines() or [""])[-1]
            raise LaunchError(f"{words[0]} failed (code {code}): {printable(last, 300)}")
        return text

    def hold(self, seed: int, count: int) -> list[str]:
        """Let other jobs occupy nodes as after a long day; return the free ones.

        Slurm itself gives all nodes to jobs of 1 to 3, in the order in which
        they come; then so many of them end, drawn by the seed, that at most
        `count` nodes stay held.

        Parameters
        ----------
        seed : int
        count : int
        """
        self.free()
        rng = random.Random(f"fragments {seed}")  # who leaves first, no secret
        jobs, left = [], len(self.nodes)
        while left:
            size = min(left, rng.choice(_SIZES))
            jobs.append((self._allocate(size, "other"), size))
            left -= size
        rng.shuffle(jobs)
        held, ended = len(self.nodes), []
        while held > count:
            job, size = jobs.pop(0)
            ended.append(job)
            held -= size
        if ended:
            self.says("scancel", *ended)
        return self._await_free(len(self.nodes) - held)

    def _allocate(self, nodes: int, job: str) -> str:
        said = self.says("salloc", "--no-shell", "--exclusive", f"-N{nodes}", "-J", job,
                         "--immediate=10")  # fmt: skip
        granted = _GRANTED.search(said)
        if granted is None:
            raise LaunchError(f"salloc: {printable(said.strip(), 200)}")
        return granted[1]

    def _idle(self) -> list[str]:
        lines = self.says("sinfo", "-h", "-N", "-o", "%N %T").splitlines()
        idle = {line.split()[0] for line in lines if line.split()[1:] == ["idle"]}
        return [name for name in self.nodes if name in idle]

    def _await_free(self, count: int) -> list[str]:
        """Wait until this many nodes are free, and return them."""
        deadline = Deadline(_PATIENCE)
        while len(idle := self._idle()) != count:
            if not deadline.left():
                raise LaunchError(f"{count} nodes were to be free: Slurm has {len(idle)}")
            time.sleep(0.1)
        return idle

    def choice(self, count: int) -> list[str]:
        """Return the nodes that Slurm gives a job now, in its sorting order; the job ends again."""
        job = self._allocate(count, "asked")
        listed = self.says("squeue", "-h", "-j", job, "-o", "%N").strip()
        idle = len(self._idle())
        self.says("scancel", job)
        self._await_free(idle + count)
        return list(NodeList.parse(listed, "squeue"))

    def free(self) -> None:
        """End all jobs."""
        jobs = self.says("squeue", "-h", "-o", "%A").split()
        if jobs:
            self.says("scancel", *jobs)
        self._await_free(len(self.nodes))

    def launch(self, nodes: Sequence[str], ppn: int, *words: str) -> str:
        """Run ranks on nodes, this many per node, and return what they print."""
        many = len(nodes)
        return self.says(
            "srun", "--mpi=pmi2", "-K", "-J", "experiment", "--exclusive", f"-N{many}",
            f"-n{many * ppn}", f"--ntasks-per-node={ppn}", "--distribution=block",
            f"-w{','.join(nodes)}", "--immediate=20", *words,
        )  # fmt: skip
