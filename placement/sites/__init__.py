# SPDX-License-Identifier: Apache-2.0
"""Site configurations: a machine's figures, each with its provenance and source.

A site is a TOML file: one of those that come with nidmap, one in a folder
that ``$NIDMAP_SITES`` names (several, separated by ``:``, the first found
wins, before those that come along), or any path that ends in ``.toml``.
`schema` says what a file may hold, `loading` turns a file into a checked
`model.Site`, `cray`, `slingshot` and `leaves` turn its figures into nodes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nidmap.placement.errors import SiteError
from nidmap.placement.support.registry import close_names

if TYPE_CHECKING:
    from nidmap.placement.sites.overlay import Overlay
    from nidmap.placement.sites.site import Site


def load_site(name_or_path: str) -> Site:
    """Return a site by name, or from a file that ends in ``.toml``.

    A file of figures alone is not a site: `load_configuration` takes both.
    """
    from nidmap.placement.sites import overlay

    site = load_configuration(name_or_path)
    if isinstance(site, overlay.Overlay):
        raise site.alone()
    return site


def load_configuration(name_or_path: str) -> Site | Overlay:
    """Return a site, or the figures in a file without a machine (as calibrate writes)."""
    from nidmap.placement.sites import loading

    return loading.read_site(site_path(name_or_path))


def site_path(name_or_path: str) -> str:
    """Return the path of a site's file."""
    if name_or_path.endswith(".toml"):
        return name_or_path
    for folder in _site_folders():
        path = os.path.join(folder, f"{name_or_path}.toml")
        if os.path.basename(path) == f"{name_or_path}.toml" and os.path.isfile(path):
            return path
    raise SiteError(f"unknown site '{name_or_path}'", close_names(name_or_path, site_names()))


def site_names() -> list[str]:
    """Return the names of all sites, including those in ``$NIDMAP_SITES``, sorted."""
    names = (entry for folder in _site_folders() for entry in _list_folder(folder))
    return sorted({entry[:-5] for entry in names if entry.endswith(".toml") and entry[0] != "."})


def _site_folders() -> list[str]:
    """Return the folders with site files, the user's own first."""
    folders = [folder for folder in os.environ.get("NIDMAP_SITES", "").split(os.pathsep) if folder]
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [*folders, os.path.join(package, "site-configs")]


def _list_folder(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []  # a folder of $NIDMAP_SITES that is gone has no sites
