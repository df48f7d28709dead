# SPDX-License-Identifier: Apache-2.0
"""``nidmap minicray``: a small machine with real links, emulated on this one."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from itertools import product
from typing import Any

import click

from nidmap.placement.commands.common import machine_option
from nidmap.placement.errors import LaunchError, UsageError, printable
from nidmap.placement.machine_option import named_specs
from nidmap.placement.nodelist import NodeList
from nidmap.placement.ui import say
from nidmap.rankmap.launch import CRAY, INTEL, MPICH, OPENMPI
from nidmap.rankmap.launch.queries import MpiLibrary, mpi_library
from nidmap.rankmap.preload.program_mpi import program_abi
from nidmap.workloads.launched import MPIEXEC
from nidmap.workloads.minicray import client
from nidmap.workloads.minicray.blueprint import build_minicray
from nidmap.workloads.minicray.daemon import FINALIZE, HOME, MPI
from nidmap.workloads.options import option_with_default

name_option = option_with_default("--name", str, client.DEFAULT_NAME,
                      "Name of the mini-Cray, if several are running.", envvar="NIDMAP_MINICRAY",
                      )  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

_BUILDING: tuple[Callable[..., Any], ...] = (
    option_with_default("--topology", ("tree", "none", "dragonfly", "off"), "tree",
            "Slurm's topology plugin; off: no Slurm, even if it is installed."),
    click.option("--scale", type=float, help="How many times slower all links are than the "
                 "machine's; default: so that links are the bottleneck, not this computer."),
)  # fmt: skip


def building_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for building a mini-Cray."""
    return reduce(lambda decorated, option: option(decorated), _BUILDING, command)


@click.group()
def minicray() -> None:
    """Build a small machine on this one: namespaces as nodes and routers, slow links.

    \b
    nidmap minicray up -m minicray:dragonfly
    nidmap minicray run -N 8 -- nidmap bench alltoall --bytes 20000
    nidmap minicray run -- sinfo
    nidmap minicray links
    nidmap minicray down
    """


@minicray.command()
@machine_option
@name_option
@building_options
@click.option("--foreground", is_flag=True, help="Do not detach; Ctrl-C takes it down.")
def up(specs: tuple[str, ...], name: str, foreground: bool, **how: Any) -> None:
    """Build a mini-Cray; it runs until `nidmap minicray down`.

    \b
    nidmap minicray up -m minicray:torus
    nidmap minicray up -m dragonfly:groups=4,chassis=2,blades=4,nodes=2 --scale 20000
    nidmap minicray up -m minicray:fattree --name second --foreground
    """
    standing = build_minicray(named_specs(specs), name, **how)
    if not foreground:
        standing.let_go()
        return
    try:
        standing.process.wait()
    finally:
        standing.down()
    raise SystemExit(0)


@minicray.command(context_settings={"ignore_unknown_options": True})
@name_option
@click.option("-m", "--machine", multiple=True, help="Build this mini-Cray for the command only.")
@click.option(
    "-N", "--nodes", type=click.IntRange(1), help="Run the command as MPI ranks on N nodes."
)
@click.option("-n", "--ranks", type=click.IntRange(1), help="MPI ranks (default: one per node).")
@click.option("-w", "--nodelist", metavar="LIST", help="Run on these nodes, one after the other.")
@building_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    name: str, machine: tuple[str, ...], nodes: int | None, ranks: int | None,
    nodelist: str | None, command: tuple[str, ...], **how: Any,
) -> int:  # fmt: skip
    """Run a command inside: where jobs are started, or with -N, -n or -w as MPI ranks.

    The exit code is the command's own. A remark is made where ranks on several nodes sent nothing
    over the links: their MPI did not find this network.

    \b
    nidmap minicray run -N 8 -- nidmap bench alltoall --bytes 20000
    nidmap minicray run -- nidmap plan --from idle -N 4
    nidmap minicray run -m minicray:torus -N 4 -- ./a.out
    """
    cray = f"run-{os.getpid()}" if machine else name
    standing = build_minicray(machine, cray, **how) if machine else None
    try:
        about = client.ask_daemon(cray, {"do": "status"})
        argv = launch_command(about, command, nodes, ranks, nodelist)
        several = len(rank_nodes(about, nodes, ranks, nodelist)) > 1
        before = client.link_bytes(cray) if several else {}
        code = client.run(cray, argv, env=launch_environment(about, command))
        if several and code == 0 and client.link_bytes(cray) == before:
            say(
                f"{command[0]} ran on several nodes and sent no byte over the links: nothing here"
                " was measured. Its MPI was told to use another network (FI_PROVIDER, UCX_TLS,"
                " OMPI_MCA_btl and their like), cannot use this one, or it sends nothing"
            )
        return code
    finally:
        if standing is not None:
            standing.down()


@minicray.command()
@name_option
@json_option
def status(name: str, as_json: bool) -> None:
    """Show what is up and what runs in it.

    \b
    nidmap minicray status
    nidmap minicray status --json
    nidmap minicray status --name second
    """
    about = client.ask_daemon(name, {"do": "status"})
    if as_json:
        click.echo(json.dumps(about))
        return
    click.echo(f"{about['name']}: {' '.join(about['machine'])}, {about['nodes']} nodes, "
               f"{about['routers']} routers, {about['links']} links")  # fmt: skip
    click.echo(f"Slurm: {'topology ' + about['topology'] if about['slurm'] else 'none'}")
    for daemon in about["ended"]:
        click.echo(f"ended: {daemon}")
    for job in about["jobs"]:
        click.echo(f"running: {' '.join(job)}")


@minicray.command()
@name_option
@click.option("--zero", is_flag=True, help="Reset the counters to zero.")
@json_option
def links(name: str, zero: bool, as_json: bool) -> None:
    """Print the bytes that each link has carried, by the predictor's names.

    \b
    nidmap minicray links --zero
    nidmap minicray run -N 8 -- ./a.out
    nidmap minicray links --json
    """
    links: dict[str, Any] = client.ask_daemon(name, {"do": "links", "zero": zero})["links"]
    if as_json:
        click.echo(json.dumps({"schema": "nidmap.minicray.links/1", "links": links}))
        return
    for link, count in sorted(links.items(), key=lambda item: -item[1]["bytes"]):
        click.echo(f"{count['bytes']:>14,} {link}")


@minicray.command()
@name_option
def down(name: str) -> None:
    """Take a mini-Cray down completely.

    \b
    nidmap minicray down
    nidmap minicray down --name second
    nidmap minicray up -m minicray:torus --name second
    """
    client.take_down(name)
    say(f"mini-Cray {name} is down")


#: Launchers, as distributions with several MPIs name them.
_MPIEXECS = ("mpiexec", "mpirun", "mpiexec.openmpi", "mpirun.openmpi", "mpiexec.mpich",
             "mpiexec.hydra")  # fmt: skip


def rank_nodes(
    about: dict[str, Any], nodes: int | None, ranks: int | None, nodelist: str | None
) -> list[str]:
    """Return the nodes on which ranks are started unless Slurm chooses; [] for none."""
    if nodes is None and ranks is None and nodelist is None:
        return []
    known = about["names"]
    listed = known if nodelist is None else list(NodeList.parse(nodelist, "-w"))
    for name in listed:
        if name not in known:
            raise UsageError(f"-w: unknown node {printable(name)} in this mini-Cray")
    count = nodes or (min(ranks or 1, len(listed)) if nodelist is None else len(listed))
    if count > len(listed) or (nodelist is not None and count < len(listed)):
        raise UsageError(
            f"{count} nodes wanted, but {about['name']} has {len(listed)} to choose from"
        )
    return listed[:count]


def launch_command(
    about: dict[str, Any],
    command: Sequence[str],
    nodes: int | None = None,
    ranks: int | None = None,
    nodelist: str | None = None,
) -> list[str]:
    """Return the command that starts a program as ranks, or the program itself if none.

    `about`: what the mini-Cray says of itself. `nodelist`: all None: not as ranks.
    """
    hosts = rank_nodes(about, nodes, ranks, nodelist)
    if not hosts:
        return list(command)
    count, total = len(hosts), ranks or len(hosts)
    if about["slurm"]:
        where = [f"-w{','.join(hosts)}"] if nodelist is not None else []
        # Else the first node gets all the ranks that it holds.
        even = [] if total % count else [f"--ntasks-per-node={total // count}"]
        return ["srun", f"--mpi={_slurm_mpi(_find_mpi(command)[1])}", f"-N{count}", f"-n{total}",
                *even, *where, "-K", "--quit-on-interrupt", *command]  # fmt: skip
    mpiexec, library = _find_mpi(command)
    if library is None:
        raise LaunchError("no mpiexec of this program's MPI found", "pip install 'nidmap[mpi]'")
    per_node = -(-total // count)
    if library.name == OPENMPI:
        listed = ",".join(f"{name}:{per_node}" for name in hosts)
        old = library.major in (1, 2, 3, 4)
        agent = ["--mca", "plm_rsh_agent"] if old else ["--prtemca", "plm_ssh_agent"]
        words = [*agent, f"{HOME}/ssh", "--host", listed]
    else:
        agent = ["-launcher", "ssh", "-launcher-exec", f"{HOME}/ssh"]
        words = [*agent, "-hosts", ",".join(hosts), "-ppn", str(per_node)]
    return [mpiexec, *words, "-n", str(total), *command]


def launch_environment(about: dict[str, Any], command: Sequence[str]) -> dict[str, str]:
    """Return variables that tell programs about their MPI, and how ``bench -n N`` starts ranks.

    That is on the nodes, by Slurm. An MPICH may be an old one, which needs help to end on UCX
    (``finalize.c``); which one a program is linked with its mpiexec does not tell.
    """
    _, library = _find_mpi(command)
    if library is None:
        return {}
    variables = {MPI: library.name}
    if library.name == MPICH and about.get("finalize"):
        before = [word for word in (os.environ.get("LD_PRELOAD", ""), str(FINALIZE)) if word]
        variables["LD_PRELOAD"] = ":".join(before)
    if about["slurm"] and MPIEXEC not in os.environ and shutil.which("mpiexec") is not None:
        variables[MPIEXEC] = f"srun --mpi={_slurm_mpi(library)} -K"
    return variables


def _slurm_mpi(library: MpiLibrary | None) -> str:
    """Return srun's --mpi for a program's MPI; programs without MPI are not affected."""
    return "pmix" if library and library.name == OPENMPI else "pmi2"


def _find_mpi(command: Sequence[str]) -> tuple[str, MpiLibrary | None]:
    """Return the first mpiexec of the MPI that a command's program is linked with, and that MPI.

    They are those on PATH, and the one next to this Python; the first of them all where the
    program does not tell, as a script. The MPI is None where its mpiexec is not known.
    """
    known = {"openmpi": (OPENMPI,), "mpich": (MPICH, INTEL, CRAY)}
    wanted = known.get(program_abi(["", *command], os.environ))
    path = f"{os.environ.get('PATH', '')}:{os.path.dirname(sys.executable)}"
    for name, folder in product(_MPIEXECS, path.split(os.pathsep)):
        if starter := shutil.which(name, path=folder):
            library = None
            with suppress(LaunchError):
                library = mpi_library(starter, os.environ)
            if wanted is None or (library is not None and library.name in wanted):
                return starter, library
    return "", None
