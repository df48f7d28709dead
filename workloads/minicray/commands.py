"""``nidmap minicray``: a small machine of real links on this one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import reduce
from typing import Any

import click

from placement.commands.common import machine_option, named_specs, say
from workloads.minicray import client
from workloads.minicray.blueprint import build_minicray
from workloads.minicray.client import Standing
from workloads.minicray.launch import launch_command, launch_environment, node_count
from workloads.options import option_with_default

__all__ = ["minicray"]

name_option = option_with_default("--name", str, client.DEFAULT_NAME,
                      "Which mini-Cray, where several stand.", envvar="NIDMAP_MINICRAY",
                      )  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")

_BUILDING: tuple[Callable[..., Any], ...] = (
    option_with_default("--topology", ("tree", "none", "dragonfly", "off"), "tree",
            "By what Slurm chooses nodes; off: without Slurm, even where it is installed."),
    click.option("--scale", type=float, help="How many times slower all links are than the "
                 "machine's; default: such that links bind, not this computer."),
)  # fmt: skip


def building_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of how a mini-Cray is built."""
    return reduce(lambda decorated, option: option(decorated), _BUILDING, command)


def _build_named(specs: tuple[str, ...], name: str, **how: Any) -> Standing:
    return build_minicray(specs, name, **how)


@click.group()
def minicray() -> None:
    """Build a small machine on this one: namespaces as nodes and routers, links that are slow.

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
    """Build a mini-Cray; it stands until `nidmap minicray down`.

    \b
    nidmap minicray up -m minicray:torus
    nidmap minicray up -m dragonfly:groups=4,chassis=2,blades=4,nodes=2 --scale 20000
    nidmap minicray up -m minicray:fattree --name second --foreground
    """
    standing = _build_named(named_specs(specs), name, **how)
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
@click.option("-N", "--nodes", type=click.IntRange(1), help="Run as MPI ranks on so many nodes.")
@click.option("-n", "--ranks", type=click.IntRange(1), help="MPI ranks (default: one a node).")
@click.option("-w", "--nodelist", metavar="LIST", help="Run on these nodes, one by one.")
@building_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    name: str, machine: tuple[str, ...], nodes: int | None, ranks: int | None,
    nodelist: str | None, command: tuple[str, ...], **how: Any,
) -> int:  # fmt: skip
    """Run a command inside: where jobs are started, or with -N, -n or -w as MPI ranks.

    The exit code is the command's own. Ranks on several nodes that have sent nothing over
    the links are remarked: their MPI did not find this network.

    \b
    nidmap minicray run -N 8 -- nidmap bench alltoall --bytes 20000
    nidmap minicray run -- nidmap plan --from idle -N 4
    nidmap minicray run -m minicray:torus -N 4 -- ./a.out
    """
    cray = f"run-{os.getpid()}" if machine else name
    standing = _build_named(machine, cray, **how) if machine else None
    try:
        about = client.ask_daemon(cray, {"do": "status"})
        argv = launch_command(about, command, nodes, ranks, nodelist)
        several = node_count(about, nodes, ranks, nodelist) > 1
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
    """Say what stands and what runs in it.

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
@click.option("--zero", is_flag=True, help="Start counting from here.")
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
    """Take a mini-Cray down; nothing of it is left.

    \b
    nidmap minicray down
    nidmap minicray down --name second
    nidmap minicray up -m minicray:torus --name second
    """
    client.take_down(name)
    say(f"mini-Cray {name} is down")
