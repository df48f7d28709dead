# SPDX-License-Identifier: Apache-2.0
"""The machine as reported by the local scheduler: ``-m slurm:``, ``pbs:``, ``flux:``.

``-m here:`` is the site that the cluster's name is of, as Slurm, the PBS server or
/etc/xthostname says it, where its nodes are called as the site's; else what the scheduler says.

Slurm is asked for its topology, and for its nodes by ``sinfo``, which states cores, GPUs,
features and states in a tenth of a second for 6,000 nodes, in one form in all versions. Where
no topology is stated the nodes' names may say cabinets, racks and blades. Nothing is kept:
what Slurm prints as the time of its data is the time of the question, so nothing would tell
an answer from before ``scontrol reconfigure`` from one after it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from glob import glob
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nidmap.placement.errors import LaunchError, ParseError, UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.readers import read_text, sinfo
from nidmap.placement.records import Dump
from nidmap.placement.sites import load_site, site_names
from nidmap.placement.slurm.command import NoSlurm, ask_slurm, slurm_settings, version_numbers
from nidmap.placement.support.child import Deadline, run_child

if TYPE_CHECKING:
    from nidmap.placement.sites.site import Site

#: Seconds within which a scheduler must have described its machine.
PATIENCE = 1.5

#: Minimum share of a cluster's nodes that must be a site's if the cluster is named like the site.
ALIKE = 0.5

#: Commands that print other schedulers' nodes, in a format with a reader.
OTHERS = {"pbs": ("pbsnodes", "-a", "-F", "json"), "flux": ("flux", "resource", "R")}

#: Patterns of names that tell where a node is, outermost first: a cname, an xname, rack and node.
_PLACES = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        r"(c\d+-\d+)(c\d)(s\d+)n\d",
        r"(x\d+)(c\d+)(s\d+)b\d+n\d+",
        r"((?:.*[^a-z0-9])?(?:rack|r)-?\d+)(i\d+)?[-_.]?[a-z]+-?\d+",
    )
)
#: Prefixes of Slurm versions in which a partition may have its own topology.
_BY_PARTITION = (25, 5)


class Live(NamedTuple):
    """A scheduler's description of its machine."""

    name: str  # of the cluster
    why: str  # what was chosen, and how certain that is
    dumps: list[Dump]
    site: Site | None = None  # the site that the cluster is; there are no dumps then


def ask_scheduler(spec: str) -> Live:
    """Return the machine that an ``-m`` word such as ``slurm:`` requests.

    `spec`: ``here:``, ``slurm:``, ``pbs:`` or ``flux:``; a partition after the colon is the one
    whose topology is wanted.
    """
    kind, _, partition = spec.partition(":")
    if kind == "here":
        return _ask_here(partition)
    return _ask_slurm(partition) if kind == "slurm" else _ask_other(kind)


def _ask_here(partition: str) -> Live:
    try:
        return _known_site(_ask_slurm(partition))
    except NoSlurm:
        pass
    for kind, command in OTHERS.items():
        if shutil.which(command[0]):
            return _known_site(_ask_other(kind))
    name = _first_line("/etc/xthostname")
    if name in site_names():
        return Live(name, "by /etc/xthostname", [], load_site(name))
    hint = "no Slurm, PBS or Flux found here to ask"
    error = UsageError("no machine given: use -m SPEC or set NIDMAP_MACHINE", hint)
    error.page = "docs/howto/new-site.md"
    raise error


def _known_site(live: Live) -> Live:
    """Return the site named like the cluster, if most of its nodes are the site's."""
    name = live.name.lower()
    if name not in site_names():
        return live
    site = load_site(name)
    ours, theirs = site.records().nodes, live.dumps[-1].nodes
    if ours is None or ours.name is None or theirs is None or theirs.name is None:
        return live
    known = float(np.isin(theirs.name, ours.name).mean())
    if known < ALIKE:
        return live
    return Live(name, f"by the cluster's name, with {known:.0%} of its nodes", [], site)


def _ask_slurm(partition: str) -> Live:
    deadline = Deadline(PATIENCE)
    settings = slurm_settings(deadline)
    if not settings.get("ClusterName"):
        raise LaunchError(
            "scontrol show config does not name the cluster", "is it Slurm's own scontrol?"
        )
    names = [partition] if partition else []
    answer = ask_slurm(["sinfo", "-a", "-e", "-o", sinfo.QUERY], deadline=deadline)
    states = _read_output(answer.output, "sinfo")
    topology = _topology_of(names, settings, deadline) if names else []
    text = ask_slurm(
        ["scontrol", "show", "topology", *topology], deadline=deadline, fails=True
    ).output
    why = "detected from Slurm"
    if text.strip():
        why += ", switches by scontrol show topology"
        return Live(
            settings["ClusterName"], why, [_read_output(text, "scontrol show topology"), states]
        )
    return _by_names(settings["ClusterName"], f"{why}, which states no topology", states)


def _by_names(name: str, why: str, states: Dump) -> Live:
    """Return a machine without a topology, its nodes located by name where possible."""
    places = places_by_name(states)
    guess = "locations guessed from node names" if places else "all nodes count as equally near"
    return Live(name, f"{why}: {guess}", [*places, states])


def _topology_of(
    names: Sequence[str], settings: dict[str, str], deadline: Deadline
) -> Sequence[str]:
    """Return the topology named by a partition, where Slurm may have several."""
    if version_numbers(settings.get("SLURM_VERSION", "")) < _BY_PARTITION:
        return []
    shown = ask_slurm(["scontrol", "-o", "show", "partition", *names], deadline=deadline).output
    topology = re.search(r"\sTopology=(\S+)", shown)
    return [topology[1]] if topology and topology[1] != "(null)" else []


def partition_topology(partition: str) -> str:
    """Return the topology named by a partition of the local Slurm; '' if unknown."""
    deadline = Deadline(PATIENCE)
    try:
        settings = slurm_settings(deadline)
    except NoSlurm:
        return ""
    return next(iter(_topology_of([partition], settings, deadline)), "")


def _read_output(text: str, source: str) -> Dump:
    """Parse a command's output, attributing errors in it to the command, not the user."""
    try:
        dump = read_text(text, source)
        wrong = next((fault for fault in dump.findings if fault.fault), None)
        if wrong is not None:
            raise wrong.error()
        if source == "sinfo" and dump.nodes is None:
            raise ParseError(source, 0, "lists no nodes", "does Slurm hide them (PrivateData)?")
    except ParseError as error:
        raise LaunchError(f"{source} printed unreadable output: {error}") from None
    return dump


def _ask_other(kind: str) -> Live:
    """Ask a scheduler other than Slurm for its nodes, with one command."""
    command = OTHERS[kind]
    if shutil.which(command[0]) is None:
        raise LaunchError(f"{command[0]} is not on PATH", "name the machine with -m")
    hint = "name the machine with -m"
    deadline = Deadline(PATIENCE)
    answer = run_child(command, os.environ, deadline, late_hint=hint)
    if kind == "pbs" and (answer.code or not answer.output.lstrip().startswith("{")):
        command = command[:2]  # Torque and old PBS Pro know no -F json
        answer = run_child(command, os.environ, deadline, late_hint=hint)
    if answer.code:
        what = f"{command[0]} failed (exit code {answer.code}): {answer.complaint or 'no message'}"
        raise LaunchError(what, hint)
    states = _read_output(answer.output, " ".join(command[:3]))
    return _by_names(
        _server_name() if kind == "pbs" else kind, f"detected from {command[0]}", states
    )


def _server_name() -> str:
    """Return the PBS server's host name without its number: polaris for polaris-01."""
    for path in ("/etc/pbs.conf", "/var/spool/torque/server_name"):
        for line in _file_text(path).splitlines():
            key, mark, value = line.partition("=")
            if not mark or key.strip() == "PBS_SERVER":
                return re.split(r"[^a-z]", (value or key).strip().lower())[0] or "pbs"
    return "pbs"


def _first_line(path: str) -> str:
    return next(iter(_file_text(path).split()), "").lower()


def _file_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(1 << 16)
    except OSError:
        return ""


def with_own_interfaces(machine: Machine, system: str = "/sys") -> Machine:
    """Return a machine whose nodes inject at the rate of this host's interfaces.

    `machine`: unchanged where it states bandwidths of its nodes, or this host has no such
    interface. `system`: where Linux shows its devices: InfiniBand's rates, the speeds of
    Slingshot's hsn0, ….
    """
    topology = machine.topology
    if {"injection", "up0"} & topology.bandwidth.keys():
        return machine
    gigabits = {}
    for port in sorted(glob(f"{system}/class/infiniband/*/ports/*")):
        rate = re.match(r"([0-9.]+) Gb/sec", _file_text(f"{port}/rate"))
        if rate and "ACTIVE" in _file_text(f"{port}/state"):
            gigabits[port.split("/")[-3]] = float(rate[1])
    for device in sorted(glob(f"{system}/class/net/hsn[0-9]*")):
        speed = _file_text(f"{device}/speed").strip()
        if speed.isdigit() and int(speed):
            gigabits[os.path.basename(device)] = int(speed) / 1000
    if not gigabits:
        return machine
    total = sum(gigabits.values()) / 8
    listed = ", ".join(f"{name} of {rate:g} Gb/s" for name, rate in gigabits.items())
    note = f"nodes are taken to inject {total:g} GB/s, as this host does by {listed}"
    figures = {**topology.bandwidth, "injection": total}
    topology = replace(topology, bandwidth=figures)
    return replace(machine, topology=topology, notes=(*machine.notes, note), _cache={})


def places_by_name(states: Dump) -> list[Dump]:
    """Return the tree of cabinets, racks and blades in all nodes' names; None if there is none.

    `states`: nodes by name.
    """
    names = [] if states.nodes is None or states.nodes.name is None else states.nodes.name.tolist()
    for pattern in _PLACES:
        matches = [pattern.fullmatch(name) for name in names]
        if not matches or None in matches:
            continue
        children: dict[str, list[str]] = {"all": []}
        for match in filter(None, matches):
            above = "all"
            for part in filter(None, match.groups()):
                place = part if above == "all" else above + part
                if place not in children:
                    children[above].append(place)
                    children[place] = []
                above = place
            children[above].append(match[0])
        if len(children["all"]) < 2:
            continue
        lines = []
        for place, below in children.items():
            key = "Switches" if below[0] in children else "Nodes"
            lines.append(f"SwitchName={place} {key}={','.join(below)}\n")
        dump = read_text("".join(lines), "the nodes' names")
        return [replace(dump, format="names", kind="places", scheduler="")]
    return []
