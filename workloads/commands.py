# SPDX-License-Identifier: Apache-2.0
"""The command group ``nidmap bench``, whose programs are imported on demand."""

from __future__ import annotations

from typing import Any

import click

from nidmap.placement.commands.common import LazyGroup
from nidmap.placement.errors import UsageError
from nidmap.workloads.launched import current_launch

#: Program -> location of its command, and its one line of help.
PROGRAMS = {
    "alltoall": ("nidmap.workloads.alltoall:alltoall", "Bandwidth of all-to-all by size."),
    "stencil": ("nidmap.workloads.stencil:stencil", "Halo exchange with six neighbours."),
    "sort": ("nidmap.workloads.sort.command:sort", "MP-sort, compared with a merge sort."),
    "isx": ("nidmap.workloads.isx:isx", "ISx bucket sort: strong, weak, weak_iso."),
    "fft": ("nidmap.workloads.fft.command:fft", "2-D and 3-D FFTs on slabs and pencils."),
    "contention": ("nidmap.workloads.contention.command:contention", "All-to-all by leaf modules."),
}


class BenchGroup(LazyGroup):
    """The programs, imported on demand; within a launch only one rank prints."""

    lazy = PROGRAMS

    def invoke(self, ctx: click.Context) -> Any:
        """Run a program, reporting errors before its start once for all ranks.

        A rank that left without a word, its program being broken on one node
        only, would keep the others waiting in MPI_Init.
        """
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if current_launch() is None:
                raise
            raise click.exceptions.Exit(_say_once(error)) from None


def _say_once(error: Exception) -> int:
    from nidmap.workloads import world

    def fail() -> None:
        if not isinstance(error, click.UsageError):
            raise error
        command = error.ctx.command_path if error.ctx else "nidmap bench"
        raise UsageError(f"{error.format_message()} (see {command} --help)")

    return int(world.run_guarded(fail))


@click.group(cls=BenchGroup)
def bench() -> None:
    """Measure sorts, FFTs, stencils and all-to-alls.

    Every program runs on MPI ranks: started by -n on this machine, or by your
    own launcher, e.g. srun -n 9216 nidmap bench fft …

    \b
    nidmap bench alltoall -n 4 -o alltoall.csv
    srun -n 512 nidmap bench fft --shape 512x512x512 -o fft.csv
    nidmap ab -m shaheen2 --pattern fft:16x32 -- srun -n 512 nidmap bench fft --shape 512x512x512
    """
