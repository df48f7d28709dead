# SPDX-License-Identifier: Apache-2.0
"""``nidmap slurm``: one line in the job script instead of planning by hand.

Slurm's commands run a script at submission, which is in `nidmap.placement.slurm`.
``cli_filter.lua`` is run by sbatch, salloc and srun themselves, with the user's
rights; it asks ``nidmap slurm constrain`` and ``nidmap slurm launch`` and gives
them this many seconds in all, whatever they start or leave behind. A head with its
settings is written before it. A script that is there already is kept next to ours
and runs first.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nidmap.placement import __version__
from nidmap.placement import slurm as scripts
from nidmap.placement.commands.common import machine_option
from nidmap.placement.commands.plan import plan, report_of
from nidmap.placement.errors import (
    LaunchError,
    NidmapError,
    OutputError,
    PlanError,
    UsageError,
    printable,
)
from nidmap.placement.hooks import SERVICES, load
from nidmap.placement.machine_option import absolute_specs, machine_from
from nidmap.placement.nodelist import NodeList
from nidmap.placement.planners import PREDICTING
from nidmap.placement.slurm.starts import check_plan
from nidmap.placement.support.writing import write_output
from nidmap.placement.ui import say, warn

if TYPE_CHECKING:
    from nidmap.placement.commands.plan_report import PlanReport

CLI_FILTER = "cli_filter.lua"

#: How the first line of a script of ours begins.
_MARK = "-- nidmap"

_HEAD = f"""{_MARK} {{version}}: {{name}}, written by `nidmap slurm install`;
-- `nidmap slurm remove` takes it away. A script that was here before is next to it,
-- as {{kept}}, and runs first.

local kept = io.open({{path}})
if kept then
  kept:close()
  dofile({{path}})
end

"""

#: First and last line of the filter's input: an answer without both is not valid.
_SIGN, _END = "nidmap.options/1", "done"

#: Keywords that a job's comment may contain.
_WORDS = ("pattern", "strategy", "bytes", "segment", "pin")

#: Seconds that auto may search while a submission waits.
_DEADLINE = "0.4"

#: Seconds that a pinned job may start later than one on any nodes.
_AS_SOON = 60.0

_dir_option = click.option(
    "--dir",
    "folder",
    metavar="DIR",
    required=True,
    type=click.Path(exists=True, file_okay=False),
    help="The folder of slurm.conf, where Slurm looks for its scripts.",
)


@click.group()
def slurm() -> None:
    """Plan and order jobs by one line in the job script.

    \b
    #SBATCH --comment=nidmap:pattern=stencil:24x16x18
    #SBATCH --comment=nidmap:strategy=blades

    What the comment may say, each as KEY=VALUE, a semicolon between two:
    pattern (as plan and run take it), strategy (of plan), bytes, segment (nodes
    that stay in a block, as --segment asks, too), and pin=yes for the very
    nodes where that makes the job start no later. At submission the
    groups that the plan does not use are excluded, where Slurm's choice among
    the others wins over its choice among all; inside the job every srun
    starts its ranks in order. Whatever fails, the job starts as it was written.

    \b
    nidmap slurm install --dir /etc/slurm -m shaheen2
    nidmap slurm install --dir /etc/slurm -m topology.conf --seconds 3
    nidmap slurm remove --dir /etc/slurm
    """


@slurm.command()
@machine_option
@_dir_option
@click.option(
    "--command", metavar="CMD", help="Command that runs nidmap; default: this installation."
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1),
    default=1.5,
    show_default=True,
    help="Longest time that nidmap may delay a submission or a launch, in seconds.",
)
@click.option("--yes", "-y", "agreed", is_flag=True, help="Write without asking.")
def install(
    specs: tuple[str, ...], folder: str, command: str | None, seconds: float, agreed: bool
) -> None:
    """Write the script that Slurm's commands run when a job is submitted.

    sbatch, salloc and srun run DIR/cli_filter.lua where slurm.conf has
    CliFilterPlugins=lua; no daemon is touched. A script that is there is kept
    as cli_filter.site.lua and runs first. What would change is shown as a diff,
    and written once you agree.

    \b
    nidmap slurm install --dir /etc/slurm -m shaheen2
    nidmap slurm install --dir /etc/slurm -m topology.conf --seconds 3 --yes
    nidmap slurm install --dir /etc/slurm -m shaheen2 --command /opt/nidmap/bin/nidmap
    """
    texts = absolute_specs(specs)
    machine_from(specs)  # report faults in it here rather than at every submission
    program = shlex.split(command) if command else [sys.executable, "-m", "nidmap"]
    if texts:
        program = ["env", f"NIDMAP_MACHINE={' '.join(texts)}", *program]
    settings = f"local NIDMAP = {_lua_string(shlex.join(program))}\n"
    settings += f'local SECONDS, CENTISECONDS = "{seconds:g}", {round(100 * seconds)}\n'
    _install_script(folder, settings, agreed)
    say("slurm.conf must have CliFilterPlugins=lua")


def _site_script(path: str) -> str:
    """Return the path under which a site's own script is kept while ours is installed."""
    return f"{path.removesuffix('.lua')}.site.lua"


def _lua_string(text: str) -> str:
    """Return a text as a Lua string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _is_ours(path: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline().startswith(_MARK)
    except OSError:
        return False


def _install_script(folder: str, settings: str, agreed: bool) -> None:
    """Write the script, settings first; back up an existing one that is not ours."""
    path = os.path.join(folder, CLI_FILTER)
    kept = _site_script(path)
    replaces_site = os.path.exists(path) and not _is_ours(path)
    if replaces_site and os.path.exists(kept):
        raise UsageError(f"{path} and {kept} both exist")
    text = _script_text(settings, kept)
    if not agreed:
        _ask_to_write(path, text, kept if replaces_site else "")
    chained = ""
    if replaces_site:
        try:
            os.rename(path, kept)
        except OSError as error:
            raise OutputError(f"cannot rename {path}: {error.strerror}") from None
        chained = f"; the script that was there is {kept} now, and runs first"
    write_output(text, path)
    say(f"{path} written{chained}")


def _script_text(settings: str, kept: str) -> str:
    """Return the script: its header, its settings and the fixed part."""
    head = _HEAD.format(
        version=__version__,
        name=CLI_FILTER,
        kept=os.path.basename(kept),
        path=_lua_string(os.path.abspath(kept)),
    )
    body = Path(scripts.__file__).with_name(CLI_FILTER).read_text(encoding="utf-8")
    return head + settings + body


def _ask_to_write(path: str, text: str, kept: str) -> None:
    """Show the change as a diff, and continue only after confirmation."""
    before = _read_script(path) if os.path.exists(path) and not kept else ""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        text.splitlines(keepends=True),
        path if before else os.devnull,
        path,
    )
    warn("".join(lines).rstrip("\n") or f"{path}is unchanged")
    if kept:
        warn(f"{path} is renamed to {kept}, and runs first")
    if not sys.stdin.isatty():
        raise UsageError(
            f"{path} was not written: there is no terminal to confirm it on",
            "give --yes to write it",
        )
    click.confirm(f"Write {path}?", abort=True, err=True)


def _read_script(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error.strerror}") from None


@slurm.command()
@_dir_option
def remove(folder: str) -> int:
    """Remove the script, and restore the one that was there before.

    If there was none, also take CliFilterPlugins=lua out of slurm.conf: sbatch submits
    nothing while that script is missing.

    \b
    nidmap slurm remove --dir /etc/slurm
    nidmap slurm remove --dir /usr/local/etc
    nidmap slurm remove --dir .
    """
    path = os.path.join(folder, CLI_FILTER)
    if not _is_ours(path):
        say(f"nidmap: no nidmap script in {folder}")
        return 1
    try:
        if os.path.exists(_site_script(path)):
            os.rename(_site_script(path), path)
            say(f"{path} is the site's own script again")
            return 0
        os.unlink(path)
    except OSError as error:
        raise OutputError(f"cannot remove {path}: {error.strerror}") from None
    say(f"{path} removed")
    say("take lua out of CliFilterPlugins in slurm.conf: without a script no job can be submitted")
    return 0


@slurm.command(hidden=True)
@click.argument("options")
def constrain(options: str) -> None:
    """Print the options to add to a job, for ``cli_filter.lua``.

    OPTIONS is the JSON of the options that the user has set.

    \b
    nidmap slurm constrain '{"nodes": "64", "comment": "nidmap:strategy=blades"}'
    nidmap slurm constrain '{"nodes": "64", "partition": "workq", "comment": "nidmap:pin=yes"}'
    nidmap slurm constrain '{"nodes": "4", "ntasks": "128", "comment": "nidmap:pattern=fft:8x16"}'
    """
    _print_options(lambda: _constraint_options(json.loads(options)))


@slurm.command(hidden=True)
@click.option("--comment", required=True)
@click.option(
    "--pid",
    type=int,
    required=True,
    help="Process id of srun; the order file is removed when it ends.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def launch(comment: str, pid: int, command: tuple[str, ...]) -> None:
    """Print the options that start a job step's ranks in order, for ``cli_filter.lua``.

    \b
    nidmap slurm launch --comment nidmap:pattern=fft:8x16 --pid 4711 -- srun -n 128 ./app
    nidmap slurm launch --comment nidmap:pattern=stencil:8x8 --pid 4711 -- srun -N 2 -n 64 ./app
    nidmap slurm launch --comment 'nidmap:pattern=ring;bytes=1MiB' --pid 4711 -- srun -n 64 ./app
    """
    _print_options(lambda: load(SERVICES["slurm launch"])(command, _comment_words(comment), pid))


def _print_options(work: Any) -> None:
    """Print the options that a function returns, and its remarks; nothing if it fails."""
    try:
        options, remark = work()
    except NidmapError as error:
        options, remark = {}, f"{error}: as written"
    lines = [f"set {name}={value}" for name, value in options.items()]
    remark = printable(remark, 300)
    write_output("\n".join([_SIGN, f"say {remark}", *lines, _END]) + "\n", None)


def _comment_words(comment: str) -> dict[str, str]:
    """Return the settings in a job's comment."""
    words: dict[str, str] = {}
    for part in comment.removeprefix("nidmap:").split(";"):
        name, mark, value = part.partition("=")
        if name not in _WORDS or not mark or not value:
            raise UsageError(
                f"--comment=nidmap: '{part}' is not understood",
                f"it may contain {', '.join(f'{word}=' for word in _WORDS)}",
            )
        words[name] = value
    if words.get("pin", "no") not in ("yes", "no"):
        raise UsageError(f"--comment=nidmap: pin={words['pin']} is neither yes nor no")
    return words


def _constraint_options(job_options: dict[str, Any]) -> tuple[dict[str, str], str]:
    """Return the options to add to a job, and remarks on them."""
    words = _comment_words(str(job_options.get("comment", "")))
    for name in ("array", "nodelist", "exclude", "switches"):
        if job_options.get(name) not in (None, "", "unset"):
            return {}, f"--{name} is set: submitted as written"
    report = _plan_job(job_options, words)
    if words.get("pin") == "yes" and _no_later(report):
        return {"nodelist": report.plan.nodes.fold()}, "pinned to the nodes of the plan"
    options = {}
    if report.job.segment and not _asked_segment(job_options):
        options["segment"] = str(report.job.segment)
    outside = report.job.exclude
    if not report.exclusion.pays or not outside:
        return options, f"{report.plan.strategy}: {report.exclusion_words()}: submitted as written"
    options["exclude"] = outside.fold(sort=True)
    what = f"{len(outside)} nodes excluded; {report.exclusion_words()}"
    return options, f"{report.plan.strategy}: {what}"


def _job_size(job_options: dict[str, Any]) -> tuple[int, int | None]:
    """Return the number of nodes, and ranks per node if the options state them."""
    ranks, per_node = (int(job_options.get(name) or 0) for name in ("ntasks", "ntasks-per-node"))
    low, _, high = str(job_options.get("nodes", "")).partition("-")
    if low.isdigit() and high in ("", low):
        count = int(low)
    elif ranks and per_node and not low:
        count = math.ceil(ranks / per_node)
    else:
        raise UsageError("the number of nodes is not clear", "give -N")
    even = ranks // count if ranks and ranks % count == 0 else 0
    return count, per_node or even or None


def _plan_job(job_options: dict[str, Any], words: dict[str, str]) -> PlanReport:
    """Return the report that ``nidmap plan`` makes for a job."""
    count, ppn = _job_size(job_options)
    pattern = words.get("pattern")
    options = {
        "count": count,
        "from": "idle",
        "format": "exclude",
        "ppn": ppn,
        "pattern": pattern,
        "deadline": pattern and words.get("strategy") in (None, *PREDICTING) and _DEADLINE,
        "bytes": pattern and words.get("bytes"),
        "segment": words.get("segment") or _asked_segment(job_options),
        "strategy": words.get("strategy"),
        **{name: job_options.get(name) for name in ("partition", "constraint", "reservation")},
    }
    line = [f"--{name}={value}" for name, value in options.items() if value]
    try:
        context = plan.make_context("plan", line)
    except click.UsageError as error:
        raise UsageError(error.format_message()) from None
    return report_of(**context.params)


def _asked_segment(job_options: dict[str, Any]) -> str:
    """Return the job's own --segment; '' for none."""
    segment = str(job_options.get("segment") or "")
    return segment if segment.isdigit() and int(segment) else ""


def _no_later(report: PlanReport) -> bool:
    """Tell whether Slurm would start the job on exactly these nodes as soon as on any others."""
    os.environ["NIDMAP_FILTER"] = "off"  # sbatch calls its filter, which would call us again
    job = replace(report.job, nodelist=report.plan.nodes, exclude=NodeList())
    try:
        starts = check_plan(job)
    except (LaunchError, PlanError):
        return False
    return not starts.pinned.never and starts.delay <= _AS_SOON
