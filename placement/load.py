# SPDX-License-Identifier: Apache-2.0
"""Loads machines by name, file or spec, as ``-m`` takes them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nidmap.placement import links_down
from nidmap.placement.dumps import assemble as assembling
from nidmap.placement.dumps import chosen as choosing
from nidmap.placement.errors import ParseError, UsageError
from nidmap.placement.geometry import slingshot
from nidmap.placement.links_down import WORD as LINKS_DOWN
from nidmap.placement.machine import Machine
from nidmap.placement.options import CHOICES, Figures, lay_figures, split_figures
from nidmap.placement.readers import read_text
from nidmap.placement.records import Dump
from nidmap.placement.sites import load_configuration, site_names
from nidmap.placement.specs import KINDS, is_spec, parse_spec
from nidmap.placement.support.reading import load
from nidmap.placement.support.registry import close_names
from nidmap.placement.topologies.source import SyntheticSite

if TYPE_CHECKING:
    from nidmap.placement.geometry.slingshot import GroupRule
    from nidmap.placement.hwloc import HardwareFile
    from nidmap.placement.sites.overlay import Overlay
    from nidmap.placement.topologies.source import Source

#: How hwloc's XML begins: any XML, but for that of Torque's pbsnodes.
_HWLOC = re.compile(r"\s*<(?:\?xml(?![^>]*>\s*<Data>)|!DOCTYPE topology|topology|root)")
#: Prefixes of words that query the local scheduler (`nidmap.placement.live`).
LIVE = ("here:", "slurm:", "pbs:", "flux:")


@dataclass
class Sources:
    """The sources that ``-m`` options name."""

    site: Source | None = None
    dumps: list[Dump] = field(default_factory=list)  # in the order given
    groups: GroupRule | None = None  # how xnames make dragonfly groups (``xname:…``)
    prefer: str = ""  # ``last`` where the last dump counts of those that contradict one another
    # Figures that follow a machine's name (`nidmap.placement.options`)
    figures: Figures = field(default_factory=dict)
    # Figures and node hardware to overlay on the machine's, the last one on top
    overlays: list[Overlay | HardwareFile] = field(default_factory=list)
    links_down: list[str] = field(default_factory=list)  # files that list links that are down
    name: str = ""  # the scheduler's name for the machine, '' if none was asked
    why: str = ""  # why it is assumed to be the local machine, and how certain that is


def load_machine(*specs: str) -> Machine:
    """Load the machine that some specs describe together.

    Parameters
    ----------
    *specs : str
        A site's name, a ``.toml`` file, a dump of any format (``.gz`` too;
        ``-`` is standard input), or a synthetic machine
        (`nidmap.placement.specs`), each with figures of the machine behind commas:
        ``shaheen2,routing=adaptive,process=2`` (`nidmap.placement.options`). Several combine:
        names and states from one dump, links from another, what is in the nodes from a
        site; at most one site or synthetic machine. ``xname:group=half-cabinet`` says how
        xnames make dragonfly groups, ``prefer:last`` that of dumps which
        contradict one another the last one counts, ``links-down:FILE`` which links are down
        (`nidmap.placement.links_down`), ``here:`` the machine that this is
        (`nidmap.placement.live`). Figures without a machine (a ``.toml`` file of
        `nidmap calibrate`) replace the machine's own; hwloc's XML says what is inside a node.

    Returns
    -------
    Machine

    Raises
    ------
    UsageError
        A synthetic spec that is wrong, or two sites.
    SiteError
        A site that there is not, or whose file is wrong.
    ParseError
        A dump that cannot be read, or contradicts itself or another one.

    Examples
    --------
    >>> machine = load_machine("torus:4x4x4")
    >>> len(machine), machine.topology.kind
    (64, 'torus')
    """
    return build(open_sources(*specs))


def open_sources(*specs: str) -> Sources:
    """Read all that the specs name, without assembling it."""
    if not specs:
        raise UsageError("no machine given", "a site, a dump or e.g. torus:8x8x8 is needed")
    if specs.count("-") > 1:
        raise UsageError("standard input can be read only once")
    sources = Sources()
    for spec in specs:
        _open_word(sources, spec)
    return sources


def build(sources: Sources) -> Machine:
    """Combine the sources read by `open_sources`."""
    added = [*(laid.source for laid in sources.overlays), *sources.links_down]
    if added and sources.site is None and not sources.dumps:
        hint = f"-m MACHINE -m {added[0]}"
        raise ParseError(added[0], 0, "only adds to a machine, and is not a machine itself", hint)
    site, dumps = sources.site, sources.dumps
    if isinstance(site, SyntheticSite) and not dumps:
        machine = site.machine
    else:
        dumps = dumps if dumps or site is None else [site.records()]
        machine = assembling.assemble(dumps, site, sources.name, sources.groups, sources.prefer)
    if site is not None and site.hardware:
        machine = replace(machine, hardware=site.hardware)
    for laid in sources.overlays:
        machine = laid.over(machine)
    if sources.name:
        from nidmap.placement import live

        machine = live.with_own_interfaces(machine)
    if sources.links_down:
        machine = links_down.without_links(machine, sources.links_down)
    return lay_figures(machine, sources.figures)


def _open_word(sources: Sources, word: str) -> None:
    spec, figures = word, Figures()
    if not word.startswith(("xname:", LINKS_DOWN)):
        spec, figures = split_figures(word, mixed=is_spec(word))
    chosen = {key: figures.pop(key) for key in CHOICES if key in figures}
    sources.figures |= figures
    if not chosen:
        _open_source(sources, spec)
    elif is_spec(spec) or spec.startswith(LIVE) or spec.endswith(".toml") or _is_site(spec):
        raise UsageError(f"{word}: {next(iter(chosen))}= chooses from a file that lists several")
    else:
        _read_dump(sources, spec, chosen)


def _open_source(sources: Sources, spec: str) -> None:
    if is_spec(spec):
        _set_site(sources, SyntheticSite(parse_spec(spec)))
    elif spec.startswith(LIVE):
        _ask_scheduler(sources, spec)
    elif spec == "prefer:last":
        sources.prefer = "last"
    elif spec.startswith(LINKS_DOWN):
        sources.links_down.append(spec.removeprefix(LINKS_DOWN))
    elif spec.startswith("xname:"):
        sources.groups = slingshot.parse_groups(spec)
    elif spec.endswith(".toml") or _is_site(spec):
        configuration = load_configuration(spec)
        from nidmap.placement.sites import overlay

        if isinstance(configuration, overlay.Overlay):
            sources.overlays.append(configuration)
        else:
            _set_site(sources, configuration)
    else:
        _read_dump(sources, spec)


def _ask_scheduler(sources: Sources, spec: str) -> None:
    """Use the local scheduler's description, or the site that it matches."""
    from nidmap.placement import live

    answer = live.ask_scheduler(spec)
    sources.name, sources.why = answer.name, answer.why
    sources.dumps += answer.dumps
    if answer.site is not None:
        _set_site(sources, answer.site)


def _set_site(sources: Sources, site: Source) -> None:
    if sources.site is not None:
        raise UsageError(
            f"{sources.site.name} and {site.name} are different machines",
            "dumps combine with one site or one synthetic machine",
        )
    sources.site = site


def _is_site(spec: str) -> bool:
    """Tell whether a word names a site; a file of that name is given as ``./NAME``."""
    if not spec or os.path.basename(spec) != spec or spec == "-":
        return False
    return spec in site_names()


def _read_dump(sources: Sources, spec: str, chosen: Mapping[str, str] | None = None) -> None:
    """Read a dump, a selected part of it, or a node's hardware, detected by content."""
    if spec != "-" and not os.path.exists(spec):
        raise _missing_source(spec)
    text = load(spec)
    if _HWLOC.match(text):
        from nidmap.placement import hwloc

        sources.overlays.append(hwloc.HardwareFile(hwloc.parse_hwloc(text, spec)))
    else:
        dump = read_text(text, spec)
        sources.dumps.append(choosing.choose_parts(dump, chosen) if chosen else dump)


def _missing_source(spec: str) -> Exception:
    """Return the error for a spec that names nothing."""
    kind = spec.partition(":")[0]
    hint = close_names(kind, KINDS)
    if ":" in spec and os.sep not in spec and ("=" in spec or hint.startswith("did you mean")):
        return UsageError(f"unknown synthetic machine {spec}", hint)
    near = close_names(spec, site_names()).replace("choose from", "sites are")
    hint = near if os.sep not in spec else ""
    return ParseError(spec, 0, "no such file, site or synthetic machine", hint)
