# SPDX-License-Identifier: Apache-2.0
"""``nidmap jobs``: how past and running jobs were placed, and what they could have gained."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

import click
import numpy as np

from nidmap.placement.accounting import accounted_jobs, read_jobs
from nidmap.placement.commands.common import machine_option
from nidmap.placement.errors import ParseError, UsageError, printable
from nidmap.placement.job_nodes import find_job_nodes
from nidmap.placement.machine_option import machine_from
from nidmap.placement.scheduler.availability import is_down, read_availability
from nidmap.placement.support.quantities import counted
from nidmap.placement.support.reading import decode, format_of_name, load, read_bytes
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import bar, say
from nidmap.rankmap.past_jobs import ASSUMED_SHARE, judge_jobs, read_applications, report
from nidmap.rankmap.past_jobs.report import Summary
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.search.cost import without_time
from nidmap.rankmap.tasks import is_first_rank, refuse_stdin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nidmap.placement.job_nodes import JobNodes
    from nidmap.placement.machine import Machine
    from nidmap.placement.records import JobRecord
    from nidmap.placement.support.array_types import Mask
    from nidmap.rankmap.past_jobs import Verdict

#: Format implied by the suffix of -o.
_SUFFIXES = {".json": "json", ".csv": "csv", ".png": "png", ".svg": "svg"}


@click.command()
@click.argument("source", required=False, metavar="[FILE|-]")
@machine_option
@click.option("--applications", metavar="TOML", help="File of patterns by job name or user.")
@click.option("--user", metavar="NAME", help="Only this user's jobs, or 'all'; from Slurm: yours.")
@click.option(
    "--last", type=click.IntRange(0), default=100, show_default=True, help="Jobs to judge; 0: all."
)
@click.option(
    "--since", default="now-7days", show_default=True, help="From Slurm: sacct's --starttime."
)
@click.option(
    "--state", metavar="FILE", help="Dump of node states; down nodes count as unavailable."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE: text, .json, .csv, .png or .svg."
)
def jobs(
    source: str | None,
    specs: tuple[str, ...],
    applications: str | None,
    user: str | None,
    last: int,
    since: str,
    state: str | None,
    as_json: bool,
    output: str | None,
) -> None:
    """Show how jobs were placed, compared with the best of the nodes that were free then.

    FILE is what sacct -X -P or squeue --json printed, PBS's accounting log or
    CSV with a header; without one Slurm's accounting is asked. List the jobs of
    all users: they tell which nodes were free. A gain applies to the share of
    time that a job communicates: 5 to 50 % unless --applications says more.

    \b
    nidmap jobs
    nidmap jobs --user all --last 1000 -o week.csv
    sacct -a -X -P -o JobID,User,Start,End,NodeList,JobName | nidmap jobs -m lumi -
    nidmap jobs -m polaris accounting.log --applications mine.toml --last 0 -o jobs.svg
    """
    form = "json" if as_json else format_of_name(output, _SUFFIXES, "text")
    if as_json and output is not None and format_of_name(output, _SUFFIXES, "json") != "json":
        raise UsageError(f"give either --json or -o {output}")
    refuse_stdin(source)
    known = read_applications(applications) if applications else ()
    machine = machine_from(specs)
    user = getpass.getuser() if user is None and source is None else user
    records = accounted_jobs(since) if source is None else read_jobs(
        decode(read_bytes(source, "nidmap jobs -"), source), source
    )  # fmt: skip
    job_nodes = _find_job_nodes(machine, records, source or "sacct")
    wanted = _pick_jobs(job_nodes, None if user == "all" else user, last)
    usable, notes = _usable_nodes(machine, state)
    if job_nodes.strangers:
        notes.append(f"not in the machine: {counted(job_nodes.strangers, 'node')} of the jobs")
    with bar() as show:
        verdicts = judge_jobs(machine, job_nodes, wanted, known, usable, show)
    if not is_first_rank():
        return
    whose = "the last" if user in (None, "all") else f"{printable(str(user), 40)}'s last"
    if source is None and user == getpass.getuser():
        whose = "your last"
    timeless = without_time(place_ranks(machine, "#0", 1))
    notes = [*machine.notes, *notes, *_list_assumptions(verdicts, bool(timeless))]
    summary = Summary(
        machine.name, job_nodes, tuple(verdicts), known, whose, timeless, tuple(notes)
    )
    if form in ("png", "svg"):
        write_output(report.draw(summary, form), output)
    elif form == "json":
        write_output(to_json(summary.document()), output)
    else:
        write_output((report.as_csv if form == "csv" else report.as_text)(summary), output)
    if form not in ("text", "json"):
        say(f"nidmap: {summary.sentence}")


def _find_job_nodes(machine: Machine, records: Iterable[JobRecord], source: str) -> JobNodes:
    job_nodes = find_job_nodes(machine, records)
    if not len(job_nodes):
        if not job_nodes.strangers:
            raise ParseError(source, 0, "lists no jobs with nodes")
        what = f"no job has a node of {machine.name}"
        raise ParseError(source, 0, what, f"its nodes have names like {machine.names[0]}")
    return job_nodes


def _pick_jobs(job_nodes: JobNodes, user: str | None, last: int) -> list[int]:
    """Return the jobs to judge: the last ones of a user, by start time."""
    picked = [k for k, job in enumerate(job_nodes.jobs) if user is None or job.user == user]
    if not picked:
        hint = "--user all judges those of all users"
        raise UsageError(f"no job of user {user}", hint)
    picked.sort(key=lambda k: (job_nodes.start[k] == job_nodes.start[k], job_nodes.start[k]))
    return picked[-last:]


def _usable_nodes(machine: Machine, state: str | None) -> tuple[Mask, list[str]]:
    """Return the nodes that were usable at all, and a remark on them."""
    names, states = machine.names, machine.state
    if state is not None:
        known = read_availability(None, load(state), state).machine
        names, states = known.names, known.state
    words = np.unique(states)
    down = names[np.isin(states, [word for word in words.tolist() if is_down(word)])]
    usable = machine.compute & ~np.isin(machine.names, down)
    out = int(machine.compute.sum()) - int(usable.sum())
    return usable, [f"{counted(out, 'node')} left out, which are down"] if out else []


def _list_assumptions(verdicts: list[Verdict], timeless: bool) -> list[str]:
    """Return the assumptions behind the verdicts."""
    notes, unknown = [], sum(len(verdict.patterns) > 1 for verdict in verdicts)
    if unknown:
        jobs_of = counted(unknown, "job")
        notes.append(f"{jobs_of} of unknown pattern: judged for stencil:auto and for alltoall")
    if not timeless and any(verdict.share == ASSUMED_SHARE for verdict in verdicts):
        low, likely, high = (f"{share:.0%}".rstrip("%") for share in ASSUMED_SHARE)
        notes.append(f"{likely} % of a job's time ({low} to {high}) is communication: assumed")
    what = "bytes times distance" if timeless else "predicted time"
    note = "each job alone on the network, rank r in slot r; other jobs' bytes are not known"
    return [*notes, note, f"slowdowns are ratios of {what}"]
