# SPDX-License-Identifier: Apache-2.0
"""``nidmap ab``: default and plan launched alternately, with the user's own program."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from nidmap.placement import __version__
from nidmap.placement.commands.common import AdvancedCommand, advanced
from nidmap.placement.errors import NidmapError, OutputError, ParseError, UsageError, printable
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import say
from nidmap.rankmap.commands.run import launch_options
from nidmap.rankmap.launch.process import job_environment
from nidmap.workloads.ab.analysis import analyse, show_result
from nidmap.workloads.ab.arms import list_launches, prepared_arms
from nidmap.workloads.ab.statistics import looks_after
from nidmap.workloads.ab.timer import timer_of
from nidmap.workloads.launched import Launches, current_launch
from nidmap.workloads.options import Duration, option_with_default
from nidmap.workloads.progress import Progress
from nidmap.workloads.results import Journal, check_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nidmap.rankmap.launch.request import RunRequest
    from nidmap.workloads.ab.arms import Arm, Turn
    from nidmap.workloads.ab.timer import Timer

SCHEMA = "nidmap.ab/1"

#: The file of samples in the folder of the program's output.
_SAMPLES = "samples.csv"


#: How often in a row a failing launch is restarted.
RETRIES = 2

#: Seed of the turns.
SEED = 0

#: Seconds within which a launch must end when asked to.
GRACE = 10.0


@click.command("ab", cls=AdvancedCommand, context_settings={"allow_interspersed_args": False})
@launch_options
@advanced("--arm", "orders", multiple=True, metavar="NAME=FILE",
              help="Another order file to compare; may repeat.")  # fmt: skip
@click.option("--time-regex", "regex", metavar="RE",
              help="The program's own timer: first group, last match; default: wall time.",
              )  # fmt: skip
@advanced("--time-file", "time_file", metavar="FILE",
              help="File in which the program writes its time; default: its output.",
              )  # fmt: skip
@click.option(
    "--unit", metavar="U", help="Unit of the timer: s, ms, us, min, h; or of a rate: ns/day, GF/s."
)
@option_with_default("--blocks", click.IntRange(min=1), 16, "Maximum number of blocks to measure.")
@option_with_default("--warmup", click.IntRange(min=0), 1, "Warm-up blocks, which do not count.")
@advanced("--to-the-end", is_flag=True, help="Run all blocks, even when the answer is clear.")
@click.option("--budget", type=Duration(), metavar="SECONDS",
              help="Start no launch that would end after this time: 3600, 90m, 2h.")  # fmt: skip
@advanced(
    "--output-dir", metavar="DIR", help="Where the program's output goes; default: a new folder."
)
@click.option("-o", "--output", metavar="FILE",
              help="Write the samples: .csv; .svg or .png: a plot, plus the .csv.",
              )  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print every command instead of running it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def ab(request: RunRequest, **options: Any) -> int:
    """Measure whether a rank order makes your own program faster.

    The command is launched again and again inside the job, as it is and with
    its ranks in nidmap's order, in random turns, as an unmodified program.
    Each launch's figure is the program's own timer, or its wall time. It stops
    as soon as the difference is clear (early stopping keeps the confidence
    level), after --blocks, or when --budget is used up; Ctrl-C keeps what there
    is. The result goes to stdout, samples to -o.

    \b
    nidmap ab --pattern stencil:24x24x16 -- srun -n 9216 ./app
    nidmap ab --order plan.json --time-regex 'Performance: +([0-9.]+)' \\
           --unit ns/day -- srun -n 96 gmx_mpi mdrun
    nidmap ab -m shaheen2 --pattern fft:8x8 -- srun -n 64 nidmap bench fft --shape 256x256x256
    \f
    \b
    nidmap ab --arm hilbert=h.slots --arm boxes=b.slots --dry-run -- srun -n 96 ./app
    """
    check_name(options["output"])
    command = request.command
    if not command:
        raise UsageError("no command to launch", "nidmap ab … -- srun -n 96 ./app")
    launch = current_launch()
    if launch is not None and launch.size != 1:
        raise UsageError("ab starts launches itself: do not run it inside one")
    timer = timer_of(options["regex"], options["unit"], options["time_file"], command)
    blocks, warmup = options["blocks"], options["warmup"]
    with prepared_arms(request, options["orders"]) as (arms, measured):
        turns = list_launches(len(arms), blocks, warmup, SEED)
        header = {
            **measured,
            **_sample_header(timer, options),
            "looks": [blocks] if options["to_the_end"] else list(looks_after(blocks)),
            "machine": " ".join(request.job.specs) or os.environ.get("NIDMAP_MACHINE", ""),
            "bytes": request.job.bytes,
            "command": list(command),
        }
        if request.dry_run:
            return _show_commands(arms, turns, header, options)
        return _launch_and_measure(arms, turns, header, timer, options)


def _sample_header(timer: Timer, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header that describes the measurement in a samples file."""
    kept = ("blocks", "warmup", "budget")
    return {
        **{name: options[name] for name in kept},
        "seed": SEED,
        "timer": timer.document(),
        "rule": f"dropped as warm-up: the first {options['warmup']} blocks",
        "job": os.environ.get("SLURM_JOB_ID", os.environ.get("PBS_JOBID", "")),
        "versions": {"nidmap": __version__, "python": sys.version.split()[0]},
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _launch_and_measure(
    arms: list[Arm], turns: list[Turn], header: dict[str, Any], timer: Timer,
    options: Mapping[str, Any],
) -> int:  # fmt: skip
    """Launch, print the result, and return the exit code."""
    folder = _output_folder(options["output_dir"])
    path = options["output"] or os.path.join(folder, _SAMPLES)
    journal = Journal(path, {**header, "folder": os.path.abspath(folder), "retried": {}})
    measurement = Measurement(arms, turns, timer, journal, folder)
    for arm in arms:
        if arm.words:
            say(f"nidmap: {arm.name}: {printable(arm.words, 300)}")
    measurement.run()
    if journal.rows:
        header = {**journal.header, "ended": measurement.ended}
        show_result(SCHEMA, header, journal.rows, options["as_json"])
    say(f"nidmap: samples are in {printable(path)}, the program's output is in {printable(folder)}")
    return measurement.exit_code


def _output_folder(wanted: str | None) -> str:
    """Return a new folder for the program's output, or the requested one, which must be empty."""
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
    arms: Sequence[Arm], turns: Sequence[Turn], header: Mapping[str, Any],
    options: Mapping[str, Any],
) -> int:  # fmt: skip
    """Print the commands of all launches in order, in shell syntax."""
    folder = options["output_dir"] or "nidmap-ab"
    launches = []
    for turn in turns:
        arm = arms[turn.arm]
        out, err = map(shlex.quote, turn.output_files(folder, arm.name))
        launches.append({
            "block": turn.block,
            "arm": arm.name,
            "warmup": turn.warmup,
            "argv": list(arm.launch.argv),
            "env": dict(arm.launch.env),
            "command": f"{arm.launch.line()} </dev/null >{out} 2>{err}",
        })  # fmt: skip
    if options["as_json"]:
        write_output(to_json({"schema": SCHEMA, **header, "launches": launches}), None)
    else:
        write_output("".join(f"{launch['command']}\n" for launch in launches), None)
    return 0


@dataclass(slots=True)
class Measurement:
    """The launches of a comparison."""

    arms: list[Arm]
    turns: list[Turn]
    timer: Timer
    # Of the samples; its header has the ``looks`` (after how many blocks it may be decided) and the
    # ``budget`` (seconds after which no launch is begun that will not be over by then, or None)
    journal: Journal
    folder: str  # where the program's output goes
    # The environment of all launches
    env: dict[str, str] = field(default_factory=lambda: job_environment(os.environ))
    launches: Launches = field(default_factory=lambda: Launches(GRACE))
    ended: str = "complete"  # ``complete``, ``decided``, ``budget``, ``interrupted`` or ``failed``
    exit_code: int = 0  # the program's own where it failed, 130 where it was interrupted
    cut_short: str = ""  # why it did not complete; '' if it did

    def run(self) -> None:
        """Launch until there is a decision or a limit; samples are kept whatever happens."""
        title = f"ab {self.journal.header['workload']}"
        with self.launches, Progress(title, len(self.turns)) as progress:
            try:
                self._run_turns(progress)
            except NidmapError:
                self.ended = "failed"
                raise
            finally:
                self.journal.close(self.ended)
        if self.ended in ("budget", "interrupted"):
            self.cut_short = f"ended early ({self.ended})"
        if self.cut_short:
            count = len(self.journal.rows)
            say(f"nidmap: {self.cut_short}; {count} finished samples are kept")
        if retried := self.journal.header["retried"]:
            often = ", ".join(f"{count} of {arm}" for arm, count in retried.items())
            say(f"nidmap: launches that failed and were restarted: {often}")

    def _run_turns(self, progress: Progress) -> None:
        """Launch one arm after another."""
        began, longest, budget = time.monotonic(), 0.0, self.journal.header["budget"]
        for done, turn in enumerate(self.turns, 1):
            spent = time.monotonic() - began
            if done > 1 and budget is not None and spent + longest > budget:
                self.ended = "budget"
                return
            seconds = self._launch(turn)
            if self.ended != "complete":
                return
            longest = max(longest, seconds)
            progress.at(done)
            if turn.last and self._is_decided(turn):
                self.ended = "decided"
                return

    def _launch(self, turn: Turn) -> float:
        """Launch an arm, retrying after failures, and return the last launch's seconds."""
        name, seconds = self.arms[turn.arm].name, 0.0
        for left in range(RETRIES, -1, -1):
            paths = turn.output_files(self.folder, name, RETRIES - left)
            before = self.timer.written()
            if not self.launches.stopped:
                code, seconds = self._run_program(turn, paths)
            if self.launches.stopped:
                self.ended, self.exit_code = "interrupted", 130
                return seconds
            if not code and self._read_figure(turn, seconds, paths, before, must=not left):
                return seconds
            if left:
                so_far = self.journal.header["retried"]
                self.journal.describe({"retried": {**so_far, name: so_far.get(name, 0) + 1}})
        self._fail(code, turn, paths)
        return seconds

    def _run_program(self, turn: Turn, paths: Sequence[str]) -> tuple[int, float]:
        """Launch an arm once, and return its exit code and its seconds."""
        launch = self.arms[turn.arm].launch
        with open(paths[0], "xb") as out, open(paths[1], "xb") as err:
            began = time.perf_counter()
            env = {**self.env, **launch.env}
            code = self.launches.run(launch.argv, env, stdout=out, stderr=err)
            seconds = time.perf_counter() - began
        return code, seconds

    def _read_figure(
        self, turn: Turn, seconds: float, paths: Sequence[str], before: tuple[str, int], must: bool
    ) -> bool:
        """Record a launch's result, and tell whether it has one."""
        try:
            figure = self.timer.read(paths, before)
        except ParseError:
            if must or not self.journal.rows:
                raise
            return False
        cost = seconds if figure is None else self.timer.cost(figure)
        self.journal.add([{
            "block": turn.block, "arm": self.arms[turn.arm].name,
            "warmup": int(turn.warmup),
            "phase": "total", "min": cost, "mean": cost, "max": cost,
            "figure": seconds if figure is None else figure, "wall": seconds,
        }])  # fmt: skip
        return True

    def _fail(self, code: int, turn: Turn, paths: Sequence[str]) -> None:
        """Record which launch failed; nothing is launched after it."""
        self.ended, self.exit_code = "failed", code if code > 0 else 128 - code
        cause = f"code {code}" if code > 0 else f"signal {-code}"
        arm, outputs = self.arms[turn.arm].name, " and ".join(map(printable, paths))
        place = f"as {arm} in block {turn.block}"
        self.cut_short = (
            f"the program failed {RETRIES + 1} times in a row ({cause}) {place}, see {outputs}"
        )

    def _is_decided(self, turn: Turn) -> bool:
        """Tell, at an interim look, whether every arm differs from the default."""
        header = self.journal.header
        counted = turn.block + 1 - header["warmup"]
        if turn.warmup or counted not in header["looks"][:-1]:
            return False
        analysis: dict[str, Any] = analyse(header, self.journal.rows)
        return bool(analysis["trusted"]) and all(
            entry["shown"] for entry in analysis["comparisons"]
        )
