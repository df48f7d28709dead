# SPDX-License-Identifier: Apache-2.0
"""``nidmap site``: list, show and check site configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nidmap.placement.commands.common import json_option
from nidmap.placement.errors import SiteError
from nidmap.placement.sites import load_configuration, load_site, site_names
from nidmap.placement.sites.overlay import Overlay
from nidmap.placement.support.tables import align_columns
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import say

if TYPE_CHECKING:
    from nidmap.placement.sites.site import Site


@click.group()
def site() -> None:
    """List, show and check site configurations.

    \b
    nidmap site list
    nidmap site show shaheen2
    nidmap site check mymachine.toml

    Your own files are found by name in the folders of $NIDMAP_SITES.
    """


@site.command("list")
@json_option
def list_sites(as_json: bool) -> None:
    """List the sites that nidmap knows.

    \b
    nidmap site list
    nidmap site list --json
    nidmap site show shaheen2
    """
    rows = [row for name in site_names() if (row := _list_entry(name)) is not None]
    if as_json:
        write_output(to_json(rows))
        return
    head = ("name", "system", "kind", "nodes", "scheduler")
    table = [head, *([row[key] for key in head] for row in rows)]
    write_output(align_columns(table, left=range(len(head))))


def _list_entry(name: str) -> dict[str, Any] | None:
    """Return one row of the list, with the error in it where the user's own file is broken."""
    try:
        site = load_site(name)
    except SiteError as error:
        say(f"nidmap: {error}")
        return None
    return {
        "name": name,
        "title": site.config.title,
        "system": site.config.system.value,
        "kind": site.topology().kind,
        "fabric": site.topology().fabric,
        "nodes": site.config.nodes.compute.value,
        "scheduler": site.scheduler,
        "file": site.source,
    }


@site.command("show")
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show every figure of a site with its provenance and its source.

    NAME is a site's name or a .toml file, including one from `nidmap calibrate`.

    \b
    nidmap site show edison
    nidmap site show shaheen2 --json
    nidmap site show ./mymachine.toml --json
    """
    loaded = load_configuration(name)
    text = (
        to_json(_site_document(loaded))
        if as_json
        else f"{_describe_network(loaded)}\n\n{_format_table(loaded)}"
    )
    write_output(text)


def _site_document(site: Site | Overlay) -> dict[str, Any]:
    if isinstance(site, Overlay):
        about = site.config
        head = {"name": site.name, "title": about.title, "file": site.source, "overlay": True}
        return {**head, "machine": about.machine, "figures": _list_figures(site)}
    topology = site.topology()
    return {
        "name": site.name,
        "title": site.config.title,
        "place": site.config.place,
        "file": site.source,
        "kind": topology.kind,
        "fabric": topology.fabric,
        "levels": topology.levels,
        "extents": topology.extents,
        "wiring": topology.wiring,
        "scheduler": site.scheduler,
        "figures": _list_figures(site),
    }


def _list_figures(site: Site | Overlay) -> dict[str, dict[str, Any]]:
    """Return all figures by key."""
    return {
        key: {"value": f.value, "mark": f.mark, "source": f.source}
        | ({"unit": f.unit} if f.unit else {})
        | ({"interval": f.interval} if f.interval else {})
        for key, f in site.figures()
    }


def _describe_network(site: Site | Overlay) -> str:
    if isinstance(site, Overlay):
        config = site.config
        where = f", measured on {config.machine}" if config.machine else ""
        return f"{config.title or site.name}{where}\nfigures without a machine (-m MACHINE -m FILE)"
    topology = site.topology()
    extents = " x ".join(
        f"{size} {level}" for level, size in zip(topology.levels, topology.extents, strict=True)
    )
    wiring = f"; wiring {topology.wiring}" if topology.wiring else ""
    about = f"{site.config.title}, {site.config.place}\n"
    return f"{about}{topology.kind} ({topology.fabric}): {extents}{wiring}"


def _format_table(site: Site | Overlay) -> str:
    head = ("figure", "value", "mark", "source")
    rows = [
        [key, f"{_format_value(f.value)} {f.unit}".rstrip(), f.mark, f"{f.source}{interval}"]
        for key, f in site.figures()
        for interval in [f"; {_format_value(list(f.interval))}" if f.interval else ""]
    ]
    return align_columns([head, *rows], left=range(4))


def _format_value(value: Any) -> str:
    """Format a figure's value on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_format_value(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(
            f"[{_format_value(v)}]" if isinstance(v, list) else _format_value(v) for v in value
        )
    return f"{value:g}" if isinstance(value, float) else str(value)


@site.command("check")
@click.argument("name")
@json_option
def check(name: str, as_json: bool) -> None:
    """Check a site's file.

    NAME is a .toml file (including one from `nidmap calibrate`) or a site's name. A
    faulty file is refused with its file, line and key (exit code 3). `nidmap machine
    check` compares it with a dump of the machine.

    \b
    nidmap site check mymachine.toml
    nidmap site check shaheen2
    nidmap machine check -m mymachine.toml -m xtprocadmin.txt
    """
    loaded = load_configuration(name)
    verdict = {"name": loaded.name, "file": loaded.source, "holds": True}
    write_output(to_json(verdict) if as_json else _describe_site(loaded))


def _describe_site(site: Site | Overlay) -> str:
    marks = [figure.mark for _, figure in site.figures()]
    counts = ", ".join(f"{marks.count(m)} {m}" for m in ("measured", "published", "assumed"))
    size = f"{len(marks)} figures ({counts})"
    if isinstance(site, Overlay):
        return f"{site.source}: {site.name} is valid: {size} without a machine\n"
    nodes = site.config.nodes.compute.value
    return f"{site.source}: {site.name} is valid: {nodes} compute nodes, {size}\n"
