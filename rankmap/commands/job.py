"""``nidmap score --job``: where a job's ranks sit, against the plan that was kept."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any

from placement.commands.common import machine_from, say, to_json, write_output
from placement.errors import NidmapError, ParseError

if TYPE_CHECKING:
    from rankmap.launch.job_ranks import Job, Process
    from rankmap.launch.launch_folder import StoredLaunch

__all__ = ["report"]

SCHEMA = "nidmap.job/1"

#: What is known of a launch's ranks, by how it is known.
_KNOWN = {
    "asked": "the ranks say so themselves, now",
    "verified": "the ranks said so before the program started",
    "planned": "where ranks really sat is not recorded: only that the order file was given",
}


def report(
    number: str,
    specs: tuple[str, ...],
    pattern: str,
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
    specs : tuple of str
        Machine options; () for the machine of each launch.
    pattern : str
        '' for that of each launch.
    ask : bool
        Whether to start a small step that asks the running ranks.
    folder : str or None
        Where the orders lie; None: the job's working directory, and this one.
    """
    from rankmap.launch.job_ranks import find_job, parse_job_id
    from rankmap.launch.launch_folder import find_launches

    job = find_job(parse_job_id(number))
    found = find_launches(job.id if job else number, _folders(job, folder))
    if not found:
        where = folder or (job.folder if job else os.curdir)
        raise ParseError(
            where, 0, f"no order that `nidmap run` kept for job {number}", "say --order-dir DIR"
        )
    processes = _ask_processes(job) if ask else []
    launches = [_launch(kept, job, processes, len(found) == 1, specs, pattern) for kept in found]
    document = {
        "schema": SCHEMA,
        "job": number,
        "state": job.state if job else None,
        "nodes": len(job.nodes) if job else None,
        "launches": launches,
    }
    write_output(to_json(document) if as_json else _words(document), output)
    return int(any(launch["wrong"] for launch in launches))


def _folders(job: Job | None, folder: str | None) -> list[str]:
    """Return where orders of the job may lie."""
    if folder:
        return [folder]
    own = [job.folder] if job and job.folder else []
    return [*own, os.curdir, tempfile.gettempdir()]


def _ask_processes(job: Job | None) -> list[Process]:
    from rankmap.launch.job_ranks import query_processes

    if job is None or job.state != "RUNNING":
        state = job.state.lower() if job else "not known to Slurm any more"
        say(f"nidmap: the job is {state}: no rank of it can be asked")
        return []
    return query_processes(job)


def _launch(
    kept: StoredLaunch,
    job: Job | None,
    processes: list[Process],
    alone: bool,
    specs: tuple[str, ...],
    pattern: str,
) -> dict[str, Any]:
    """Return what is known of one launch."""
    from rankmap.launch.job_ranks import stated_ranks
    from rankmap.launch.queries import plain_host

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
    return {
        "order": kept.path,
        "command": kept.known["command"],
        "strategy": kept.known["strategy"],
        "pattern": kept.known["pattern"],
        "ranks": len(plan),
        "nodes": kept.known["nodelist"],
        "known": how,
        "heard": len(said),
        "misplaced": len(misplaced),
        "first": None
        if first is None
        else {
            "rank": first,
            "on": said[first],
            "planned": plan[first] if first < len(plan) else None,
        },
        "outside": outside,
        "cpus": {rank: cpus for rank, (_, cpus) in sorted(ranks.items())},
        "wrong": bool(misplaced or outside),
        **_figures(kept, specs, pattern),
    }


def _figures(kept: StoredLaunch, specs: tuple[str, ...], pattern: str) -> dict[str, Any]:
    """Return J of the plan and of the default, None where the machine or the pattern is missing."""
    from rankmap.orders import find
    from rankmap.pattern import parse_pattern
    from rankmap.score import cost, plain

    known = specs or tuple(kept.known["machine"])
    if not known:
        return {"cost": None, "default_cost": None, "no_cost": "no machine is given"}
    try:
        order = kept.order(machine_from(known))
        fitted = parse_pattern(pattern or kept.known["pattern"]).on(order.on)
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
    import shlex

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
