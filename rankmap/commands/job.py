"""``nidmap score --job``: where a job's ranks sit, against the plan that was kept.

Slurm tells a job's nodes and state, as long as slurmctld remembers it, but
not which rank sat on which of the nodes: of that it keeps no record. While a
step runs, its processes know: their environment names their rank, their node
and their order file. A small step beside them (``srun --overlap``) reads it.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from placement.commands.common import machine_from, say, to_json, write_output
from placement.errors import LaunchError, NidmapError, ParseError, UsageError, printable
from placement.nodelist import NodeList
from placement.slurm.command import Deadline, ask
from rankmap.launch import LAUNCH
from rankmap.launch.launch_folder import StoredLaunch, find_launches
from rankmap.launch.queries import plain_host

if TYPE_CHECKING:
    from rankmap.commands.model import JobArguments

__all__ = ["report_job", "stated_ranks"]

SCHEMA = "nidmap.job/1"

#: What is known of a launch's ranks, by how it is known.
_KNOWN = {
    "asked": "the ranks say so themselves, now",
    "verified": "the ranks said so before the program started",
    "planned": "where ranks really sat is not recorded: only that the order file was given",
}

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

#: What a process of a running step says: the variables that are set in it, and its `CPUS`.
Process = Mapping[str, str]


class Job(NamedTuple):
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


def report_job(
    number: str,
    given: JobArguments,
    ask: bool,
    folder: str | None,
    as_json: bool,
    output: str | None,
) -> int:
    """Print what is known of a job's launches; return 1 where it contradicts a plan.

    Parameters
    ----------
    number : str
        Job id.
    given : JobArguments
        Machine and pattern; where they are not given, those of each launch.
    ask : bool
        Whether to start a small step that asks the running ranks.
    folder : str or None
        Where the orders lie; None: the job's working directory, and this one.
    """
    if not _ID.fullmatch(number):
        raise UsageError(f"'{printable(number, 30)}' is not a job id")
    job = _find_job(number)
    own = [job.folder] if job and job.folder else []
    folders = [folder] if folder else [*own, os.curdir, tempfile.gettempdir()]
    found = find_launches(job.id if job else number, folders)
    if not found:
        where = folder or (job.folder if job else os.curdir)
        raise ParseError(
            where, 0, f"no order that `nidmap run` kept for job {number}", "say --order-dir DIR"
        )
    processes = _ask_processes(job) if ask else []
    launches = [_launch(kept, job, processes, len(found) == 1, given) for kept in found]
    document = {
        "schema": SCHEMA,
        "job": number,
        "state": job.state if job else None,
        "nodes": len(job.nodes) if job else None,
        "launches": launches,
    }
    write_output(to_json(document) if as_json else _words(document), output)
    return int(any(launch["wrong"] for launch in launches))


def _find_job(number: str) -> Job | None:
    """Return what Slurm knows of a job; None where it knows none of that id (any more).

    Raises
    ------
    LaunchError
        Slurm is missing, down, slow, or prints what is not squeue's.
    """
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


def _ask_processes(job: Job | None) -> list[Process]:
    """Return what the processes of a running job's steps say, by a step beside them.

    Raises
    ------
    LaunchError
        The step cannot be started, or does not answer in time.
    """
    if job is None or job.state != "RUNNING":
        state = job.state.lower() if job else "not known to Slurm any more"
        say(f"nidmap: the job is {state}: no rank of it can be asked")
        return []
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
    [{'SLURM_JOB_ID': '7', 'SLURM_STEP_ID': '2', 'SLURM_PROCID': '0'}]
    """
    found, own = [], set()
    for line in lines:
        said = dict(w.split("=", 1) for w in line.rstrip("\t").split("\t") if "=" in w)
        if "self" in said:
            own.add(said["self"].strip())
        elif said.get("SLURM_JOB_ID", "") == number:
            found.append(said)
    return [p for p in found if p.get("SLURM_STEP_ID", "") not in {"", *own}]


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
    for said in processes:
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


def _launch(
    kept: StoredLaunch,
    job: Job | None,
    processes: list[Process],
    alone: bool,
    given: JobArguments,
) -> dict[str, Any]:
    """Return what is known of one launch."""
    plan = kept.rank_nodes()
    ranks = stated_ranks(processes, kept, alone)
    seen = {rank: node for rank, (node, _) in ranks.items()}
    how = "asked" if seen else "verified" if kept.said is not None else "planned"
    said = seen or dict(enumerate(kept.said or ()))
    misplaced = [
        rank
        for rank, host in said.items()
        if rank >= len(plan) or plain_host(host) != plain_host(plan[rank])
    ]
    outside = sorted({n for n in plan if n not in set(job.nodes)}) if job and job.nodes else []
    first = min(misplaced, default=None)
    misfit = None
    if first is not None:
        planned = plan[first] if first < len(plan) else None
        misfit = {"rank": first, "on": said[first], "planned": planned}
    return {
        "order": kept.path,
        **{name: kept.known[name] for name in ("command", "strategy", "pattern")},
        "ranks": len(plan),
        "nodes": kept.known["nodelist"],
        "known": how,
        "heard": len(said),
        "misplaced": len(misplaced),
        "first": misfit,
        "outside": outside,
        "cpus": {rank: cpus for rank, (_, cpus) in sorted(ranks.items())},
        "wrong": bool(misplaced or outside),
        **_figures(kept, given),
    }


def _figures(kept: StoredLaunch, given: JobArguments) -> dict[str, Any]:
    """Return J of the plan and of the default, None where the machine or the pattern is missing."""
    from rankmap.orders import find
    from rankmap.pattern import parse_pattern
    from rankmap.score import cost, plain

    specs = given.specs or tuple(kept.known["machine"])
    pattern = given.named_pattern(needed=False) or kept.known["pattern"]
    if not specs:
        return {"cost": None, "default_cost": None, "no_cost": "no machine is given"}
    try:
        order = kept.order(machine_from(specs))
        fitted = parse_pattern(pattern).on(order.on)
        default = find("row-major")(fitted, order.on.sorted())
        return {
            "cost": plain(cost(order, fitted)),
            "default_cost": plain(cost(default, fitted)),
            "no_cost": None,
        }
    except NidmapError as error:
        return {"cost": None, "default_cost": None, "no_cost": str(error)}


def _words(document: dict[str, Any]) -> str:
    """Return the report for a person."""
    state = (document["state"] or "not known to Slurm any more").lower()
    nodes = f" on {document['nodes']} nodes" if document["nodes"] else ""
    lines = [f"job {document['job']}: {state}{nodes}"]
    for launch in document["launches"]:
        lines += _lines(launch)
    return "\n".join(lines) + "\n"


def _lines(launch: dict[str, Any]) -> list[str]:
    found = [
        f"\n{shlex.join(launch['command'])}",
        f"  plan      {launch['strategy']} order of {launch['pattern']}, "
        f"{launch['ranks']} ranks on {launch['nodes']}",
        f"  order     {launch['order']}",
    ]
    if launch["cost"] is not None:
        default = launch["default_cost"]
        found.append(f"  J         {launch['cost']:,}  (default order {default:,})")
    found.append(f"  ranks     {_placement_sentence(launch)}")
    if launch["cpus"]:
        first = min(launch["cpus"])
        kinds, own = len(set(launch["cpus"].values())), launch["cpus"][first]
        found.append(f"  CPUs      {kinds} different sets, that of rank {first}: {own}")
    if launch["outside"]:
        few = ", ".join(launch["outside"][:3])
        found.append(f"  wrong     {len(launch['outside'])} nodes are not the job's, first {few}")
    return found


def _placement_sentence(launch: dict[str, Any]) -> str:
    """Return in a sentence where the ranks are, and how that is known."""
    why = _KNOWN[launch["known"]]
    if launch["known"] == "planned":
        return why
    if not launch["misplaced"]:
        every = f"{launch['heard']} of {launch['ranks']}"
        return f"{every} are where the plan says: {why}"
    first = launch["first"]
    planned = first["planned"] or "nowhere"
    return (
        f"{launch['misplaced']} of {launch['ranks']} are not where the plan says, "
        f"first rank {first['rank']}: on {first['on']}, planned {planned}: {why}"
    )
