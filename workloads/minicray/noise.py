"""Background load: another job whose traffic fills chosen links."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from placement.errors import LaunchError, UsageError, printable
from placement.load import load_machine
from placement.network.routes import walk
from workloads.minicray import client
from workloads.minicray.daemon import HOME
from workloads.minicray.net import Net, design

__all__ = ["Noise", "between", "make_noise", "net_of", "over_links"]

#: Connections of each pair of nodes: so many that they hold their own beside a job's.
_CONNECTIONS = 8

#: What each of its nodes runs.
_TRAFFIC = str(Path(__file__).with_name("traffic.py"))

#: Seconds that Slurm may take to start it.
_IMMEDIATE = 5


@dataclass(frozen=True, slots=True)
class Noise:
    """Flows that fill links.

    Attributes
    ----------
    flows : tuple of (int, int)
        Nodes of a mini-Cray, from and to.
    links : tuple of str
        What they are to fill; of other links they use too nothing is said.
    notes : tuple of str
    """

    flows: tuple[tuple[int, int], ...]
    links: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def nodes(self) -> list[int]:
        """The nodes that take part."""
        return sorted({node for flow in self.flows for node in flow})


def net_of(about: dict[str, Any]) -> Net:
    """Return what a mini-Cray was built from."""
    return design(load_machine(*about["machine"]), about["scale"])


def between(net: Net, pairs: Sequence[str]) -> Noise:
    """Return flows both ways between nodes.

    Parameters
    ----------
    net : Net
    pairs : sequence of str
        ``A,B``: two names of nodes.

    Raises
    ------
    UsageError
        No such node, or not two.

    Examples
    --------
    >>> import nidmap
    >>> from workloads.minicray.net import design
    >>> net = design(nidmap.load_machine("torus:3,bw=1,injection=1"))
    >>> between(net, ["nid00000,nid00002"]).flows
    ((0, 2), (2, 0))
    """
    place = {name: k for k, name in enumerate(net.names)}
    flows = []
    for text in pairs:
        names = [word.strip() for word in text.split(",")]
        what = next((f"no node {printable(name)}" for name in names if name not in place), "")
        if what or len(names) != 2 or len(set(names)) != 2:
            what = what or "two different nodes are needed"
            raise UsageError(f"--between {printable(text)}: {what}", "as in nid00000,nid00005")
        a, b = (place[name] for name in names)
        flows += [(a, b), (b, a)]
    return Noise(tuple(dict.fromkeys(flows)))


def over_links(net: Net, links: Sequence[str]) -> Noise:
    """Return flows that fill links, by few nodes near their ends.

    Parameters
    ----------
    net : Net
    links : sequence of str
        Names as `nidmap minicray links` prints them, those of routers.

    Raises
    ------
    UsageError
        No such link, or no nodes between which routes lead over it.

    Examples
    --------
    >>> import nidmap
    >>> from workloads.minicray.net import design
    >>> net = design(nidmap.load_machine("torus:3,bw=1,injection=1"))
    >>> over_links(net, ["x0->x1 x"]).flows
    ((0, 1),)
    """
    known = {str(name): c for c, name in enumerate(net.channels.names().tolist())}
    flows: list[tuple[int, int]] = []
    notes = []
    for link in links:
        if link not in known:
            raise UsageError(f"no link {printable(link)!r}", "nidmap minicray links names them")
        channel = known[link]
        chosen = _filling(net, channel)
        if not chosen:
            raise UsageError(f"no route between nodes leads over {link}")
        share = len(chosen) * net.node_rate / float(net.rates[channel])
        if share < 1:
            notes.append(f"{link}: its nodes can fill {share:.0%} of it")
        flows += chosen
    return Noise(tuple(dict.fromkeys(flows)), tuple(links), tuple(notes))


def _filling(net: Net, channel: int) -> list[tuple[int, int]]:
    """Return pairs of nodes, each node once a side, whose routes share a channel; short ones."""
    every = np.arange(len(net.names))
    source, target = np.repeat(every, len(every)), np.tile(every, len(every))
    pair, passed = walk(net.machine, net.rows[source], net.rows[target], "single")
    hops = np.bincount(pair, minlength=len(source))
    over = np.unique(pair[passed == channel])
    ways = sorted(zip(*(x[over].tolist() for x in (hops, source, target)), strict=True))
    chosen: dict[int, int] = {}  # to by from
    for _, a, b in ways:
        if len(chosen) * net.node_rate >= float(net.rates[channel]):
            break
        if a not in chosen and b not in chosen.values():
            chosen[a] = b
    return list(chosen.items())


def make_noise(name: str, noise: Noise, seconds: float) -> dict[str, Any]:
    """Run it, and return what the links have carried meanwhile.

    Parameters
    ----------
    name : str
        Of the mini-Cray.
    noise : Noise
    seconds : float

    Raises
    ------
    LaunchError
        It cannot be started, as where Slurm has given its nodes to others.
    """
    about = client.ask(name, {"do": "status"})
    before = client.link_bytes(name)
    began = time.monotonic()
    code = client.run(name, _command(about, noise, seconds))
    lasted = min(seconds, time.monotonic() - began)  # less after a Ctrl-C
    if code not in (0, 130):
        raise LaunchError(f"the noise ended with code {code}", "are its nodes free?")
    carried = {link: count - before[link] for link, count in client.link_bytes(name).items()}
    return {"seconds": lasted, "nodes": [about["names"][k] for k in noise.nodes], "bytes": carried}


def _command(about: dict[str, Any], noise: Noise, seconds: float) -> list[str]:
    names, addresses = about["names"], about["addresses"]
    plan = {
        "seconds": seconds,
        "port": random.randint(20000, 32000),  # noqa: S311  # a port, no secret
        "connections": _CONNECTIONS,
        "flows": [[names[a], names[b], addresses[b]] for a, b in noise.flows],
    }
    program = [sys.executable, "-I", "-S", _TRAFFIC, json.dumps(plan)]
    listed = [names[k] for k in noise.nodes]
    if about["slurm"]:
        many = len(listed)
        return ["srun", "-J", "noise", f"-N{many}", f"-n{many}", f"-w{','.join(listed)}",
                "--exclusive", "--quit-on-interrupt", f"--immediate={_IMMEDIATE}",
                "--mpi=none", *program]  # fmt: skip
    script = 'for n in $1; do "$0" "$n" "$2" "$3" "$4" "$5" "$6" & done; wait'
    return ["sh", "-c", script, f"{HOME}/on", " ".join(listed), *program]


def utilisation(net: Net, found: dict[str, Any]) -> dict[str, float]:
    """Return how much of its rate each link between routers was used, 0 to 1."""
    names = net.channels.names().tolist()
    carried = np.array([float(found["bytes"].get(name, 0)) for name in names])
    used = carried / (net.rates * found["seconds"])
    return {str(name): float(x) for name, x in zip(names, used.tolist(), strict=True)}
