# SPDX-License-Identifier: Apache-2.0
"""``nidmap web serve`` and ``nidmap web export``."""

from __future__ import annotations

import os
import pwd
import re
import secrets
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import click

from nidmap.placement.commands.common import machine_option
from nidmap.placement.errors import UsageError, printable
from nidmap.placement.machine_option import machine_from
from nidmap.placement.support.writing import write_output
from nidmap.placement.ui import say

if TYPE_CHECKING:
    from socket import socket

    from nidmap.placement.machine import Machine
    from nidmap.web import service


_from = click.option(
    "--from", "sources", multiple=True, metavar="slurm|dump|FILE",
    help="States and jobs: Slurm, the machine's own dump, or files (squeue --json, sinfo …).",
)  # fmt: skip
_users = click.option("--show-users", "users", is_flag=True, help="Show the user names of jobs.")


def _path_of(value: str) -> str:
    """Return a prefix with a leading and trailing /, as in requests."""
    if not re.fullmatch(r"[\w./~@%+-]*", value, re.ASCII) or ".." in value:
        raise UsageError(f"--prefix {printable(value)}: is not a path", "--prefix /nidmap/")
    return f"/{unquote(value).strip('/')}/".replace("//", "/")


@click.group()
def web() -> None:
    """Show a machine, its jobs and a plan in a browser.

    \b
    nidmap web serve -m shaheen2
    nidmap web serve -m daint.xtprocadmin --from squeue.json
    nidmap web export -m shaheen2 --nodes nid[00324-00383] -o job.svg
    """


@web.command()
@machine_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8770, show_default=True,
    help="0 takes any free port.",
)  # fmt: skip
@click.option(
    "--socket", "path", metavar="PATH", help="Listen on a Unix socket instead, for you alone."
)
@click.option(
    "--prefix", default="/", metavar="/PATH/",
    help="The path under which a proxy (nginx, JupyterHub, Open OnDemand) serves it.",
)  # fmt: skip
@click.option(
    "--token", "token_file", metavar="FILE|none",
    help="Token file; none: anyone who can reach the server may look.",
)  # fmt: skip
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="Accept requests for this host name too."
)
@_users
@click.option(
    "--user",
    "owner",
    metavar="NAME",
    help="User whose jobs come first; default, with a token: you.",
)
@_from
@click.option(
    "--refresh", "every", type=click.FloatRange(1), default=3.0, show_default=True,
    help="Seconds between queries of Slurm while a page is open, for any number of viewers;"
    " otherwise at least 30.",
)  # fmt: skip
@click.option(
    "--applications", metavar="TOML",
    help="Patterns of the running jobs, by job name or user (see nidmap jobs).",
)  # fmt: skip
@click.option(
    "--link-loads", metavar="FILE", multiple=True,
    help="Measured link loads: nidmap minicray links --json, a CSV (link,bytes), or perfquery's"
    " output (may repeat: earlier, later, and ibnetdiscover's if -m is not that).",
)  # fmt: skip
@click.option(
    "--time-limit", "seconds", type=click.FloatRange(1), default=60.0,
    help="Time limit of a plan or comparison, in seconds.",
)  # fmt: skip
def serve(specs: tuple[str, ...], host: str, port: int, path: str | None, **options: Any) -> None:
    """Serve the page until Ctrl-C; the URL to open is printed on stdout.

    Other users of a login node can reach its loopback too, so that the URL
    holds a token. From your own computer, open a tunnel first: ssh -L
    8770:127.0.0.1:8770 LOGIN. Nothing on the page can change anything: it
    reads the machine and asks Slurm, once per --refresh while a page is open
    and less often where Slurm is slow to answer.

    \b
    nidmap web serve -m shaheen2
    nidmap web serve -m daint.xtprocadmin --from squeue.json --port 0
    nidmap web serve -m shaheen2 --socket ~/nidmap.sock
    nidmap web serve -m shaheen2 --host login1.example.org --show-users
    nidmap web serve -m shaheen2 --prefix /nidmap/ --allow-host portal.example.org
    """
    from nidmap.rankmap import past_jobs
    from nidmap.web import measured, server

    kept, sources = options["token_file"], options["sources"]
    machine = _served_machine(specs)
    origins = _live_sources(machine, sources)
    file = options["applications"]
    known = past_jobs.read_applications(file) if file else ()
    if options["link_loads"]:
        measured.measured(machine, options["link_loads"], 1)  # report faults at once
    listening = server.bound_socket(path) if path else closing(server.bind_socket(host, port))
    with listening as sock:
        named = kept and kept != "none"
        from nidmap.web import guard

        token = guard.token_in(kept) if named else secrets.token_urlsafe(24)
        gate = guard.Guard(
            token="" if kept == "none" else token,
            names=guard.own_names(host, options["allow_host"]),
            portals=frozenset(name.lower() for name in options["allow_host"]),
            addresses=host in _EVERYWHERE,
            cookie=f"nidmap-{port if path else sock.getsockname()[1]}",
        )
        from nidmap.web import service

        settings = service.Settings(
            applications=known,
            prefix=_path_of(options["prefix"]),
            taken=_newest_dump(specs),
            owner=_whose_first(options["owner"], everyone=not gate.token),
            **{name: options[name] for name in ("users", "every", "seconds", "link_loads")},
        )
        served = service.Service(machine, origins, gate, settings)
        _announce_url(served, sock, path, host)
        server.run(served, sock)


@web.command()
@machine_option
@click.option("--nodes", metavar="LIST|FILE|-", help="Nodes to mark, as any kind of list.")
@click.option(
    "--view",
    default="",
    metavar="V",
    help="cabinets, switches, or slices of a torus (slices-x, …).",
)
@click.option(
    "--colour", type=click.Choice(["state", "job", "group", "rank", "hops"]), default="state",
    show_default=True, help="What colours show; rank: of --nodes; hops: from the first of --nodes.",
)  # fmt: skip
@click.option("--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True)
@click.option(
    "--ppn", type=click.IntRange(1, 4096), default=1, help="Ranks per node, for the predicted time."
)
@click.option("--pattern", default="alltoall", metavar="P", help="Pattern for the predicted time.")
@_users
@_from
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="File to write: .svg, .png or .html."
)
def export(
    specs: tuple[str, ...], nodes: str | None, users: bool, sources: tuple[str, ...],
    output: str, **wanted: Any,
) -> None:  # fmt: skip
    """Write a picture of the machine with the nodes marked, or a page that opens from disk.

    The suffix of -o says which: .svg, .png, or .html (the whole page in one
    file, which needs no server and no network).

    \b
    nidmap web export -m shaheen2 --nodes nid[00324-00383] -o job.svg
    squeue -h -j 4711 -o %N | nidmap web export -m shaheen2 --nodes - -o job.html
    nidmap web export -m shaheen2 --nodes nid[00324-00383] --colour rank -o ranks.html
    """
    from nidmap.placement.names import pasted
    from nidmap.web import page, requests, snapshot

    form: Any = os.path.splitext(output)[1].lower().lstrip(".")
    if form not in ("svg", "png", "html"):
        raise UsageError(f"-o {printable(output)}: the name must end in .svg, .png or .html")
    machine = _served_machine(specs)
    text = "" if nodes is None else pasted.read_list(nodes, "--nodes")[0]
    if origins := _live_sources(machine, sources) if sources else ():
        now = snapshot.ask_sources(machine, origins, users)
    else:
        now = snapshot.of_dump(machine, _newest_dump(specs))
    raw, sentence = page.export(machine, now, requests.Export(form, text, **wanted))
    write_output(raw, output)
    say(sentence)


def _whose_first(named: str | None, everyone: bool) -> str:
    """Return whose jobs come first: one's own, unless everyone may look at the page."""
    if named is not None:
        return named
    if everyone:
        return ""
    try:
        return pwd.getpwuid(os.getuid()).pw_name  # as Slurm names users, whatever $USER says
    except KeyError:  # no name for this user id
        return ""


#: Addresses that stand for all of the host's, in the forms that --host takes.
_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104 - only compared


def _served_machine(specs: tuple[str, ...]) -> Machine:
    import quart
    import uvicorn

    _ = quart.Quart, uvicorn.Config  # report missing packages before reading
    return machine_from(specs)


def _newest_dump(specs: tuple[str, ...]) -> float | None:
    """Return when the newest of the machine's dumps was written; None if none is a file."""
    times = [os.stat(spec).st_mtime for spec in specs if os.path.isfile(spec)]
    return max(times, default=None)


def _live_sources(machine: Machine, named: tuple[str, ...]) -> tuple[str, ...]:
    from nidmap.web import snapshot

    if not named:
        return snapshot.usual_sources(machine)
    if "dump" in named:
        if len(named) > 1:
            raise UsageError("--from dump cannot be combined with another --from")
        return ()
    files = tuple(source for source in named if source != "slurm")
    snapshot.ask_sources(machine, files)  # report unreadable files at once
    return named


def _announce_url(served: service.Service, sock: socket, path: str | None, host: str) -> None:
    """Print the URL, and say what becomes visible to whom."""
    token = served.guard.token
    tail = quote(served.settings.prefix) + (f"?token={token}" if token else "")
    where = ", ".join(served.live.sources) or "the machine's own dump"
    say(f"{printable(served.machine.name)}: {len(served.machine)} nodes; states from {where}")
    if path:
        say(f"listening on {path}, for you only; from elsewhere: ssh -L 8770:{path} HOST, then")
        click.echo(f"http://localhost:8770{tail}")
        return
    address, port = sock.getsockname()[:2]
    what = "nodes, their states, jobs" + (" and their users" if served.settings.users else "")
    if not address.startswith("127.") and address != "::1":
        audience = "whoever has the URL" if token else "EVERYONE"
        say(
            f"nidmap: this is not a loopback address: {what} become visible on the network to"
            f" {audience}"
        )
    elif not token:
        say(f"nidmap: no token: every user of this host can see {what}")
    shown = "localhost" if host in _EVERYWHERE else f"[{host}]" if ":" in host else host
    click.echo(f"http://{shown}:{port}{tail}")
