# SPDX-License-Identifier: Apache-2.0
"""The command ``nidmap calibrate``."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import click

from nidmap.placement.commands.common import machine_option
from nidmap.placement.errors import LaunchError, OutputError, UsageError, printable
from nidmap.placement.lookup import rows_of
from nidmap.placement.machine_option import machine_from
from nidmap.placement.network import hops
from nidmap.placement.network.rails import rails_of
from nidmap.placement.nodelist import NodeList
from nidmap.placement.support.child import become
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import say
from nidmap.rankmap.launch.allocation import allocation
from nidmap.workloads.calibrate.choice import (
    NODE,
    MeasurePlan,
    choose_sets,
    margins,
    pairs_by_level,
    ranks_by_host,
    with_limited_nodes,
)
from nidmap.workloads.calibrate.readings import Reader, Rounds
from nidmap.workloads.calibrate.result import Readings, result_of
from nidmap.workloads.calibrate.words import document, overlay_text, table_text
from nidmap.workloads.launched import MPIEXEC, become_mpiexec, current_launch
from nidmap.workloads.options import Common, Duration, leave_command, option_with_default
from nidmap.workloads.progress import TERMINAL
from nidmap.workloads.world import decide_on_root, processor, raise_together, run_guarded, world

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine
    from nidmap.placement.support.array_types import Ints


@click.command("calibrate")
@machine_option
@click.option("-n", "--ranks", type=click.IntRange(min=1),
              help="Ranks to start; inside a launch, the number it must have.")  # fmt: skip
@option_with_default(
    "--rounds repeat", click.IntRange(min=6), 8, "Measured rounds; one warm-up round runs first."
)
@option_with_default(
    "--seconds", click.FloatRange(0.001, 60), 0.4, "Target time of each set of messages."
)
@click.option("--time-limit", type=Duration(),
              help="Time limit; rounds finished by then are used: 90, 10m, 2h.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-o", "--output", metavar="FILE", help="Write the figures to this TOML file.")
@click.argument("launcher", nargs=-1, type=click.UNPROCESSED)
def calibrate(
    specs: tuple[str, ...],
    seconds: float,
    output: str | None,
    launcher: tuple[str, ...],
    **shared: Any,
) -> None:
    """Measure the constants of a machine on some of its nodes, in minutes.

    What one rank and one node send, copies inside a node, latency by level,
    message rate, bandwidth by link class where the nodes reach it, and the gap
    between steps; and whether the machine's routing explains the times. Inside an allocation
    of 16 to 64 nodes, with a launcher after --, or with the allocation's own
    where there is none. The figures go to -o as TOML (without it to stdout),
    and replace those of the machine as -m MACHINE -m FILE.

    \b
    nidmap calibrate -m shaheen2 -o calibrated.toml -- srun -n 2048 --ntasks-per-node=32
    nidmap minicray run --topology=off -m minicray:torus -N 18 -n 36 -- nidmap calibrate -o c.toml
    nidmap plan -m shaheen2 -m calibrated.toml -N 64 --pattern alltoall
    """
    common = Common(**shared)
    if current_launch() is None:
        _check_output(output)
        machine_from(specs)  # faults in it are reported before anything starts
        _start_ranks(launcher, common.ranks)
    return leave_command(run_guarded(lambda: _on_ranks(common, specs, seconds, output)))


# --- starting ranks -----------------------------------------------------------


def _start_ranks(launcher: tuple[str, ...], ranks: int | None) -> NoReturn:
    """Replace this process with the launch of its ranks: words after ``--``, mpiexec or srun."""
    job = None if launcher else allocation(os.environ)
    count = ranks or (None if job is None else job.ranks or len(job.nodes))
    if not launcher and (job is None or os.environ.get(MPIEXEC)):
        if count is None:
            raise UsageError(
                "no ranks, and no allocation in which to start them",
                "as in nidmap calibrate -o FILE -- srun -n 512, or -n 4 on this machine",
            )
        become_mpiexec(count)
    if not launcher and shutil.which("srun") is None:
        raise LaunchError("srun not found", "give the launch command after --")
    argv = list(sys.orig_argv[1:])
    argv = argv[: argv.index("--")] if "--" in argv else argv
    env = {**os.environ, **({TERMINAL: "1"} if sys.stderr.isatty() else {})}
    sys.stderr.flush()
    become([*(launcher or ("srun", "-n", str(count))), sys.executable, *argv], env)


def _check_output(output: str | None) -> None:
    """Refuse an unwritable file before minutes are spent measuring."""
    if output is None or output == "-":
        return
    folder = os.path.dirname(os.path.realpath(output))
    if os.path.isdir(output) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise OutputError(f"cannot write {printable(output)}")
    if not output.endswith(".toml"):
        raise UsageError(f"-o {printable(output)}: figures are written as .toml only")


# --- on the ranks -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _CalibrationPlace:
    """The nodes that are measured; known to rank 0 only."""

    plan: MeasurePlan
    machine: Machine
    rows: Ints
    assumed: bool

    def hops(self) -> dict[str, float]:
        """Return the links between routers for each timed pair, by the name of its reading."""
        ends = rails_of(self.machine).first_ends
        return {
            f"latency {level} {k}": float(
                hops(self.machine, *ends(self.rows[[a]], self.rows[[b]])).sum()
            )
            for level, pairs in self.plan.pairs.items()
            for k, (a, b) in enumerate(pairs)
            if a != b
        }


def _on_ranks(common: Common, specs: tuple[str, ...], seconds: float, output: str | None) -> int:
    """Measure as one of the ranks; rank 0 writes the result."""
    comm = world(common.ranks)
    hosts = comm.gather(processor(comm), root=0) or []
    jobs: list[_CalibrationPlace] = []

    def choose() -> MeasurePlan:
        _check_output(output)
        jobs.append(_measured_job(hosts, specs))
        return jobs[0].plan

    plan = decide_on_root(comm, choose)
    session = Rounds(common, "calibrate", {"machine": " ".join(specs), "seconds": seconds})
    reader = Reader(comm, plan, seconds)
    with session:
        session.measure_rounds(reader.readings())
    with raise_together(comm):
        for job in jobs if session.enough else ():
            _write_figures(job, session, reader.sizes, output)
    if not session.enough and session.ended == "time limit":
        return 1
    return session.exit_code


def _measured_job(hosts: Sequence[str], specs: tuple[str, ...]) -> _CalibrationPlace:
    """Return what to measure on the ranks' nodes."""
    ranks_of_nodes = ranks_by_host(hosts)
    machine, assumed = with_limited_nodes(machine_from(specs))
    rows = rows_of(machine, list(ranks_of_nodes), "the job's nodes")
    table = choose_sets(machine, rows)
    clear = margins(table.seconds)[:, table.classes.index(NODE)]
    pairs = pairs_by_level(machine, rows, len(next(iter(ranks_of_nodes.values()))))
    return _CalibrationPlace(
        MeasurePlan(list(ranks_of_nodes.values()), table, pairs, int(clear.argmax())),
        machine,
        rows,
        assumed,
    )


def _write_figures(
    job: _CalibrationPlace, session: Rounds, sizes: dict[str, tuple[int, int]], output: str | None
) -> None:
    """Write the figures and report what was found."""
    read = Readings(session.rounds, sizes)
    result = result_of(job.machine, job.plan, read, job.hops(), job.assumed)
    about = {
        "machine": job.machine.name,
        "date": session.journal.header["date"],
        "nodes": NodeList(job.machine.names[job.rows].tolist()).fold(),
        "count": len(job.rows),
        "ppn": job.plan.ppn,
        "rounds": len(session.rounds),
    }
    text = overlay_text(result, about)
    if output not in (None, "-"):
        write_output(text, output)
    if session.common.as_json:
        write_output(to_json(document(result, about)), None)
    elif output in (None, "-"):
        write_output(text, None)
    else:
        write_output(table_text(result), None)
        say(f"nidmap: -m {job.machine.name} -m {output} uses these figures")
