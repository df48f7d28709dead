"""``nidmap ab``: default and plan launched in turns, with the user's own program."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
import uuid
from typing import TYPE_CHECKING, Any

import click

from placement import __version__
from placement.commands.common import say, to_json, write_output
from placement.errors import OutputError, UsageError, printable
from rankmap.commands.order import launch_options, run_command
from workloads.launched import current_launch
from workloads.options import Duration, level_option, setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rankmap.commands.model import JobArguments
    from workloads.program.arms import Compared, Turn
    from workloads.program.timer import Timer

__all__ = ["ab"]

SCHEMA = "nidmap.ab/1"

#: The file of samples in the folder of the program's output.
_SAMPLES = "samples.csv"


@click.command("ab", context_settings={"allow_interspersed_args": False})
@launch_options
@click.option("--arm", "orders", multiple=True, metavar="NAME=FILE",
              help="One more order, as --order takes it; may repeat.")  # fmt: skip
@click.option("--time-regex", "regex", metavar="RE",
              help="The program's own timer: first group, last match; default: wall time.",
              )  # fmt: skip
@click.option("--time-file", "time_file", metavar="FILE",
              help="Where the program writes that timer; default: what it prints.",
              )  # fmt: skip
@click.option("--unit", metavar="U", help="Of that timer: s, ms, us, min, h; of a rate, any word.")
@click.option("--higher-is-better", is_flag=True, help="It is a rate: steps/s, ns/day, GF/s.")
@setting("--blocks", click.IntRange(min=1), 16, "Blocks of turns that count, at most.")
@setting("--warmup", click.IntRange(min=0), 1, "Blocks before them that do not count.")
@setting("--turns", ["random", "abba"], "random",
         "A block: each arm once, at random; or there and back.")  # fmt: skip
@click.option("--control", is_flag=True, help="Launch the default as one more arm (A/A).")
@click.option("--to-the-end", is_flag=True, help="Run all blocks, however clear it is.")
@setting("--retries", click.IntRange(min=0), 2,
         "Times in a row that a launch that fails is begun anew.")  # fmt: skip
@click.option("--budget", type=Duration(), metavar="SECONDS",
              help="Begin no launch that would end later: 3600, 90m, 2h.")  # fmt: skip
@setting("--seed", click.IntRange(min=0), 0, "For the turns.")
@level_option
@click.option("--output-dir", metavar="DIR", help="For the program's output; default: a new one.")
@click.option("--show", is_flag=True, help="Copy the program's output to stderr, too.")
@click.option("-o", "--output", metavar="FILE",
              help="The samples: .csv, .parquet, .json; default: in the output folder.",
              )  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print every command instead of running it.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def ab(job: JobArguments, command: tuple[str, ...], **options: Any) -> int:
    """Measure whether an order of ranks makes your own program faster.

    The command is launched again and again inside the job, as it is and with
    its ranks in nidmap's order, in random turns, as an unmodified program.
    Each launch's figure is the program's own timer, or its wall time. It stops
    as soon as the difference is clear (which costs the intervals nothing of
    their level), after --blocks, or when --budget is used up; Ctrl-C keeps
    what there is. The result goes to stdout, samples to -o.

    \b
    nidmap ab --grid 24x24x16 -- srun -n 9216 ./app
    nidmap ab -m shaheen2 --pattern measured:lmp.npz --budget 2h -o lmp.csv \\
           --time-regex 'Loop time of ([0-9.]+)' -- srun -n 96 lmp -in in.lj
    nidmap ab --order plan.json --time-regex 'Performance: +([0-9.]+)' \\
           --higher-is-better --unit ns/day -- srun -n 96 gmx_mpi mdrun
    nidmap ab --arm hilbert=h.slots --arm boxes=b.slots --dry-run -- srun -n 96 ./app
    """
    from workloads.ab.statistics import looks
    from workloads.program.arms import prepared_arms, turns_of
    from workloads.program.timer import timer_of
    from workloads.results import check_name

    told = current_launch()
    if told is not None and told.size != 1:
        raise UsageError("ab starts launches of its own, this is inside one")
    check_name(options["output"])
    timer = timer_of(
        options["regex"], options["unit"], options["higher_is_better"], options["time_file"]
    )
    base = run_command(command, job, {**options, "patience": 0.0})
    blocks, warmup, abba = options["blocks"], options["warmup"], options["turns"] == "abba"
    with prepared_arms(base, options["orders"], options["control"], options["dry_run"]) as found:
        turns = turns_of(len(found.arms), blocks, warmup, options["seed"], abba)
        header = {
            **_header(found, timer, options),
            "visits": 1 + abba,
            "looks": [blocks] if options["to_the_end"] else list(looks(blocks)),
            "machine": " ".join(job.specs) or os.environ.get("NIDMAP_MACHINE", ""),
            "bytes": base.sent.get("bytes"),
            "command": list(command),
        }
        if options["dry_run"]:
            return _show_commands(found, turns, header, options)
        return _measure(found, turns, header, timer, options)


def _header(found: Compared, timer: Timer, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file of samples says of the measurement."""
    kept = ("blocks", "warmup", "turns", "seed", "budget")
    return {
        **found.header(),
        **{name: options[name] for name in kept},
        "timer": timer.document(),
        "launch": uuid.uuid4().hex[:12],
        "rule": f"dropped as warm-up: the first {options['warmup']} blocks",
        "job": os.environ.get("SLURM_JOB_ID", os.environ.get("PBS_JOBID", "")),
        "versions": {"nidmap": __version__, "python": sys.version.split()[0]},
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _measure(
    found: Compared, turns: list[Turn], header: dict[str, Any], timer: Timer,
    options: Mapping[str, Any],
) -> int:  # fmt: skip
    """Launch, print what came out, and return the exit code."""
    from rankmap.launch.process import job_environment
    from workloads.ab.words import show_result
    from workloads.program.running import Measurement
    from workloads.results import Journal

    folder = _output_folder(options["output_dir"])
    path = options["output"] or os.path.join(folder, _SAMPLES)
    journal = Journal(path, {**header, "folder": os.path.abspath(folder), "retried": {}})
    env = job_environment(os.environ)
    measurement = Measurement(found.arms, turns, timer, journal, folder, env, options)
    for one in found.arms:
        if one.words:
            say(f"nidmap: {one.arm.name}: {printable(one.words, 300)}")
    measurement.run()
    if journal.rows:
        header = {**journal.header, "ended": measurement.ended}
        show_result(SCHEMA, header, journal.rows, options["level"], options["as_json"])
    say(f"nidmap: samples are in {printable(path)}, the program's output is in {printable(folder)}")
    return measurement.exit_code


def _output_folder(wanted: str | None) -> str:
    """Return a new folder for the program's output, or the one wanted, which must be empty.

    Raises
    ------
    UsageError
        One with files in it.
    OutputError
        One that cannot be made.
    """
    try:
        if wanted is None:
            stamp = time.strftime("%Y%m%d-%H%M%S-")
            return os.path.relpath(tempfile.mkdtemp(prefix=f"nidmap-ab-{stamp}", dir=os.curdir))
        os.makedirs(wanted, exist_ok=True)
        if os.listdir(wanted):
            raise UsageError(f"--output-dir {printable(wanted)} is not empty")
    except OSError as error:
        where = printable(wanted or os.path.abspath(os.curdir))
        raise OutputError(f"cannot write in {where}: {error.strerror or error}") from None
    return wanted


def _show_commands(
    found: Compared, turns: Sequence[Turn], header: Mapping[str, Any], options: Mapping[str, Any]
) -> int:
    """Print all launches in their order, as a shell takes them."""
    folder = options["output_dir"] or "nidmap-ab"
    launches = []
    for turn in turns:
        one = found.arms[turn.arm]
        out, err = map(shlex.quote, turn.output_files(folder, one.arm.name))
        launches.append({
            "block": turn.block,
            "visit": turn.visit,
            "arm": one.arm.name,
            "warmup": turn.warmup,
            "argv": list(one.launch.argv),
            "env": dict(one.launch.env),
            "command": f"{one.launch.line()} </dev/null >{out} 2>{err}",
        })  # fmt: skip
    if options["as_json"]:
        write_output(to_json({"schema": SCHEMA, **header, "launches": launches}), None)
    else:
        write_output("".join(f"{each['command']}\n" for each in launches), None)
    return 0
