# SPDX-License-Identifier: Apache-2.0
"""``nidmap record``: record a program's pattern, show it, and build the recorder."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.support.quantities import size_text
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import say
from nidmap.rankmap.launch.allocation import job_id
from nidmap.rankmap.preload import ABI, build, find_compilers, link_line, running
from nidmap.rankmap.recognition.description import describe, document
from nidmap.rankmap.recording.file import load_recording

if TYPE_CHECKING:
    from nidmap.rankmap.recording import Recording

#: Formats of a matrix as a picture.
PICTURES = (".png", ".svg")

#: Rows and columns that a picture shows one by one; more ranks share them.
_MOST_ROWS = 512


class _Record(click.Group):
    """A command group that runs a program unless the first word is a subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave a program's own options unparsed in the context."""
        if args and args[0] in self.commands:
            return super().parse_args(ctx, args)
        return click.Command.parse_args(self, ctx, args)


@click.group(
    cls=_Record, invoke_without_command=True, subcommand_metavar="-- PROGRAM… | show | build"
)
@click.option(
    "-o",
    "--output",
    metavar="FILE.npz",
    help="Recording to write; default: nidmap-pattern-JOB.npz.",
)
@click.option(
    "--window", default="", metavar="W", help="Record only this part: 30%-70%, 10s-60s or pcontrol."
)
@click.option("--mpicc", default="", metavar="CC", help="The program's MPI compiler.")
@click.option(
    "--strict", is_flag=True, help="Do not run a program that cannot be recorded (exit code 125)."
)
@click.option(
    "--check-reorder", is_flag=True, help="Check that no ranks of two communicators are mixed up."
)
@click.option("--merge", metavar="COUNTS", help="Only merge the counts left by an earlier run.")
@click.option("--link", is_flag=True, help="Print how to link a static program, and exit.")
@click.pass_context
def record(
    ctx: click.Context,
    output: str | None,
    window: str,
    mpicc: str,
    strict: bool,
    check_reorder: bool,
    merge: str | None,
    link: bool,
) -> int:
    """Record the communication matrix of an unmodified MPI program in any language.

    A small library is loaded between the program and its MPI. It counts, sends
    nothing, and writes a file per node at MPI_Finalize; these are merged into
    one. The program's output, exit code and signals are its own. Counts that
    cannot be merged are kept, and a line says how to --merge them later. Where
    nidmap's wheel has no library for this MPI, the first call builds it with
    the program's own mpicc.

    --check-reorder records nothing: it reorders every communicator that the
    program lets MPI reorder, and names the first place where a rank of one
    communicator is used in another. Try it on a few ranks before run --inside.

    \b
    nidmap record -o halo.npz -- srun -n 96 ./halo
    nidmap record --window 30%-70% -- mpiexec -n 24 lmp -in in.melt
    nidmap plan -m shaheen2 -N 24 --ppn 4 --pattern measured:halo.npz
    """
    if ctx.invoked_subcommand:
        return 0
    command = tuple(ctx.args)
    if link:
        compiler = find_compilers(command, os.environ, "", mpicc)[0]
        write_output(link_line(compiler) + "\n", None)
        return 0
    if not command and not merge:
        raise UsageError("record needs a command", "nidmap record -- srun -n 96 ./app")
    if check_reorder:
        return running.check_reorder(command, mpicc)
    path = output or f"nidmap-pattern-{job_id(os.environ) or os.getpid()}.npz"
    if os.path.splitext(path)[1] != ".npz":
        raise UsageError(f"-o {path}: a recording is an npz file", "name it FILE.npz")
    if merge:
        running.merge_counts(merge, path, " ".join(command), window)
        return 0
    try:
        return running.run_recorded(command, path, window, mpicc, strict)
    except NidmapError as error:
        if not strict or error.exit_code == 2:
            raise
        say(f"nidmap: {error}: not started (--strict)")
        return 125


@record.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE; .png and .svg draw the matrix."
)
def show(file: str, as_json: bool, output: str | None) -> None:
    """Show a recorded pattern: in words, phase by phase, or as a picture.

    \b
    nidmap record show halo.npz
    nidmap record show halo.npz --json -o halo.json
    nidmap record show halo.npz -o halo.png
    """
    ending = os.path.splitext(output or "")[1].lower()
    if output and ending not in ("", ".txt", ".json", *PICTURES):
        raise UsageError(f"-o {output}: unknown suffix", "choose from .txt, .json, .png, .svg")
    recording = load_recording(file)
    if ending in PICTURES:
        write_output(_draw_matrix(recording, ending[1:]), output)
    elif as_json or ending == ".json":
        write_output(to_json(document(recording)), output)
    else:
        write_output(describe(recording) + "\n", output)


def _draw_matrix(recording: Recording, form: str) -> bytes:
    """Draw the matrix of a recording as ``svg`` or ``png``, logarithmic in the bytes."""
    from matplotlib import colors

    from nidmap.rankmap.compare import plots

    total, edge = recording.total(), recording.ranks
    share = -(-edge // _MOST_ROWS)  # this many ranks share a row
    table = np.zeros((-(-edge // share),) * 2)
    np.add.at(table, (total.source // share, total.target // share), total.bytes)

    def draw(new: Callable[..., Any]) -> Any:
        figure = new(figsize=(6.4, 5.4), layout="constrained")
        axes = figure.subplots()
        seen = table[table > 0]
        image = axes.imshow(
            np.ma.masked_equal(table, 0),
            norm=colors.LogNorm(float(seen.min()), float(seen.max())) if len(seen) else None,
            cmap="viridis", extent=(-0.5, edge - 0.5, edge - 0.5, -0.5), interpolation="nearest",
        )  # fmt: skip
        axes.set(xlabel="receiving rank", ylabel="sending rank")
        ranks_text = "" if share == 1 else f", {share} ranks per row"
        axes.set_title(f"{edge} ranks, {size_text(float(table.sum()))} in all{ranks_text}")
        bar = figure.colorbar(image, label="bytes")
        bar.ax.yaxis.set_major_formatter(lambda value, _: size_text(value))
        return figure

    return plots.picture_bytes(form, draw, {})


@record.command("build")
@click.option("--mpicc", default="", metavar="CC", help="The MPI compiler; default: the one found.")
def build_library(mpicc: str) -> None:
    """Build the recorder library in advance for each MPI compiler found, and print its path.

    \b
    nidmap record build
    nidmap record build --mpicc mpicc.openmpi
    nidmap record build --mpicc cc             # Cray's
    """
    for compiler in find_compilers((), os.environ, "", mpicc):
        write_output(build(compiler, os.environ) + "\n", None)
        say(f"for {ABI[compiler.abi]} programs, built by {compiler.path}")
