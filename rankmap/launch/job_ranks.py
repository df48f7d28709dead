"""Where a job's ranks sit: from Slurm, and from the ranks themselves while they run.

Slurm tells a job's nodes and state, as long as slurmctld remembers it, but
not which rank sat on which of the nodes: of that it keeps no record. While a
step runs, its processes know: their environment names their rank, their node
and their order file. A small step beside them (``srun --overlap``) reads it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placement.errors import LaunchError, UsageError, printable
from placement.slurm.command import Deadline, ask
from rankmap.launch import LAUNCH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from placement.nodelist import NodeList
    from rankmap.launch.launch_folder import StoredLaunch

__all__ = ["Job", "Process", "find_job", "parse_job_id", "query_processes", "stated_ranks"]

_ID = re.compile(r"[0-9]{1,10}(?:[_+][0-9]{1,7})?", re.ASCII)
_LINE = re.compile(r"([^|\n]+)\|([A-Z_]+)\|([^|\n]*)\|(.*)")

#: Variables of a process that say its rank, its node and its order file.
_VARIABLES = (
    "SLURM_STEP_ID", "SLURMD_NODENAME", "SLURM_PROCID", "PMI_RANK", "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK", LAUNCH, "MPICH_RANK_REORDER_FILE",
)  # fmt: skip

#: The CPUs that a process may run on, beside its variables.
CPUS = "CPUS"

#: Those that name the order file.
_FILES = (LAUNCH, "MPICH_RANK_REORDER_FILE")

#: Seconds that the ranks' nodes have to answer.
_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Job:
    """What Slurm says of a job.

    Attributes
    ----------
    id : str
    state : str
        ``RUNNING``, ``COMPLETED`` …
    nodes : NodeList
    folder : str
        Its working directory.
    """

    id: str
    state: str
    nodes: NodeList
    folder: str


@dataclass(frozen=True, slots=True)
class Process:
    """What a process of a running step says: the variables that are set in it, and its `CPUS`."""

    said: dict[str, str]


def parse_job_id(text: str) -> str:
    """Return a job id, or refuse what is none.

    Examples
    --------
    >>> parse_job_id("4711_3")
    '4711_3'
    """
    if not _ID.fullmatch(text):
        raise UsageError(f"'{printable(text, 30)}' is not a job id")
    return text


def find_job(number: str) -> Job | None:
    """Return what Slurm knows of a job; None where it knows none of that id (any more).

    Raises
    ------
    LaunchError
        Slurm is missing, down, slow, or prints what is not squeue's.
    """
    from placement.nodelist import NodeList

    command = ["squeue", "-h", "-a", "-j", number, "--states=all", "-o", "%A|%T|%N|%Z"]
    answer = ask(command, fails=True)
    if answer.code:
        if "invalid job id" in answer.messages.lower():
            return None
        raise LaunchError(f"squeue failed: {answer.complaint or 'no message'}")
    # What a user can write, the folder, stands last: a line in it forges no field before.
    lines = [line for line in answer.output.split("\n") if line.strip()]
    lines = [line for line in lines if not line.startswith("CLUSTER:")]
    if not lines:
        return None
    match = _LINE.fullmatch(lines[0].strip())
    if not match or not match[1].isdecimal():
        raise LaunchError(f"squeue printed {printable(lines[0], 60)!r}", "is it Slurm's own?")
    return Job(match[1], match[2], NodeList.parse(match[3]) if match[3] else NodeList([]), match[4])


def query_processes(job: Job) -> list[Process]:
    """Return what the processes of a running job's steps say, by a step beside them.

    Raises
    ------
    LaunchError
        The step cannot be started, or does not answer in time.
    """
    names = "|".join(_VARIABLES)
    # Of all processes of a node only the job's are looked at closely.
    script = (
        'echo "self=$SLURM_STEP_ID"; for f in '
        f"$(grep -lsazE '^SLURM_JOB_ID={job.id}$' /proc/[0-9]*/environ); do "
        f"{{ tr '\\0\\n' '\\n ' <\"$f\" | grep -aE '^(SLURM_JOB_ID|{names})='; "
        f"sed -n 's/^Cpus_allowed_list:[^0-9]*/{CPUS}=/p' \"${{f%environ}}status\"; }} "
        "2>/dev/null | tr '\\n' '\\t'; echo; done | sort -u"
    )
    count = str(len(job.nodes))
    command = ["srun", "-Q", f"--jobid={job.id}", "--overlap", "--mpi=none", "-N", count, "-n"]
    answer = ask([*command, count, "sh", "-c", script], deadline=Deadline(_SECONDS))
    return _read_processes(answer.output.split("\n"), job.id)


def _read_processes(lines: Iterable[str], number: str) -> list[Process]:
    """Return the processes of a job's steps, but not those that ask.

    Examples
    --------
    >>> text = "self=3\\tx\\nSLURM_JOB_ID=7\\tSLURM_STEP_ID=2\\tSLURM_PROCID=0\\t"
    >>> _read_processes(text.split("\\n"), "7")
    [Process(said={'SLURM_JOB_ID': '7', 'SLURM_STEP_ID': '2', 'SLURM_PROCID': '0'})]
    """
    found, own = [], set()
    for line in lines:
        said = dict(w.split("=", 1) for w in line.rstrip("\t").split("\t") if "=" in w)
        if "self" in said:
            own.add(said["self"].strip())
        elif said.get("SLURM_JOB_ID", "") == number:
            found.append(Process(said))
    return [p for p in found if p.said.get("SLURM_STEP_ID", "") not in {"", *own}]


def stated_ranks(
    processes: Iterable[Process], launch: StoredLaunch, alone: bool
) -> dict[int, tuple[str, str]]:
    """Return the node of each rank of a launch that is heard of, and the CPUs it is bound to.

    Parameters
    ----------
    processes : iterable of Process
    launch : StoredLaunch
    alone : bool
        True where no other launch of the job can be meant by a rank that does
        not name its order file.

    Returns
    -------
    dict
        Rank to (node, CPUs as ``0-7,64``; '' where they are not known).

    Raises
    ------
    LaunchError
        A rank that is on two nodes: two launches that cannot be told apart.
    """
    found: dict[int, tuple[str, str]] = {}
    for process in processes:
        said = process.said
        named = [said[name] for name in _FILES if name in said]
        if launch.path not in named if named else not alone:
            continue
        rank = next((said[v] for v in launch.known["variables"] if said.get(v)), "")
        node = said.get("SLURMD_NODENAME", "")
        if not rank.isdecimal() or len(rank) > 9 or not node:
            continue
        before, _ = found.setdefault(int(rank), (node, said.get(CPUS, "")))
        if before != node:
            raise LaunchError(f"rank {rank} is on {before} and on {node}: two launches")
    return found
