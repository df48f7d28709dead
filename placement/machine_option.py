# SPDX-License-Identifier: Apache-2.0
"""The machine: from ``-m``, the environment, the user's configuration, or the local one."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

import click

from nidmap.placement.errors import SiteError, at_line
from nidmap.placement.support.quantities import counted
from nidmap.placement.ui import say

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine


def machine_from(specs: tuple[str, ...]) -> Machine:
    """Load the machine from the ``-m`` options or their defaults, and report which it is."""
    from nidmap.placement import load as loading

    named = named_specs(specs)
    if named:
        return _load_named(named)
    sources = loading.open_sources(*machine_specs(specs))
    machine = loading.build(sources)
    kind = f"{counted(len(machine), 'node')}, {machine.topology.kind}"
    taken = f"{machine.name} ({kind}) {sources.why}"
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta["machine_taken"] = taken
    say(f"nidmap: machine {taken}; override with -m")
    return machine


def _load_named(named: tuple[str, ...]) -> Machine:
    """Load the named sources; of several topologies in a file, the partition's if any."""
    from nidmap.placement import load as loading

    sources, partition = loading.open_sources(*named), _wanted_partition()
    several = [dump for dump in sources.dumps if dump.parameters.get("topologies")]
    if not several or not partition:
        return loading.build(sources)
    from nidmap.placement import live
    from nidmap.placement.dumps import chosen

    name = live.partition_topology(partition)
    if name:
        sources.dumps = [
            chosen.choose_topology(dump, name) if dump in several else dump
            for dump in sources.dumps
        ]
        say(f"nidmap: topology {name}, that of partition {partition}")
    return loading.build(sources)


def named_specs(specs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ``-m`` options, else ``$NIDMAP_MACHINE``, else the user's configuration."""
    return specs or tuple(os.environ.get("NIDMAP_MACHINE", "").split()) or configured_specs()


def configured_specs() -> tuple[str, ...]:
    """Return the machine named in the user's configuration; () if none.

    The file has one key, ``machine``: a word of ``-m``, or a list of them.
    """
    from nidmap.placement.sites import loading as site_files

    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    path = os.path.join(folder, "nidmap", "config.toml")
    if not os.path.exists(path):
        return ()
    tables = site_files.read_tables(path)
    words = tables.pop("machine", [])
    named = [words] if isinstance(words, str) else words
    if tables or not isinstance(named, list) or not all(isinstance(word, str) for word in named):
        what = f"no such key: {next(iter(tables))}" if tables else "machine is not text"
        raise SiteError(
            f"{at_line(path)}: {what}", 'write machine = "lumi", or a list of values of -m'
        )
    return tuple(named)


def machine_specs(specs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ``-m`` options in force, or the word for the local machine if there are none."""
    named = named_specs(specs)
    if named:
        return named
    return (f"here:{_wanted_partition()}",)


def _wanted_partition() -> str:
    """Return the partition that ``-p`` or the job names, the first of several; '' if none."""
    context = click.get_current_context(silent=True)
    partition = context.params.get("partition") if context is not None else None
    partition = partition or os.environ.get("SLURM_JOB_PARTITION", "")
    return str(partition).partition(",")[0]


def absolute_specs(specs: tuple[str, ...]) -> list[str]:
    """Return the ``-m`` options with absolute paths, valid in any folder."""
    from nidmap.placement import sites

    known = sites.site_names()
    return [_absolute_spec(word, known) for word in machine_specs(specs)]


def _absolute_spec(word: str, known: Collection[str]) -> str:
    """Return a word with the absolute path of its file, keeping figures that follow it."""
    before = "links-down:" if word.startswith("links-down:") else ""
    parts = word.removeprefix(before).split(",")
    for count in range(len(parts), 0, -1):
        name = ",".join(parts[:count])
        if os.path.exists(name) and (before or name not in known):
            return ",".join([before + os.path.abspath(name), *parts[count:]])
    return word
