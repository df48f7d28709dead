# SPDX-License-Identifier: Apache-2.0
"""Layout: a machine drawn as boxes, in integer units, y downwards.

A pure function of the machine, used by the page (as JSON) and by the
server's own pictures. Cray machines with cnames are in their cabinets on
their floor places; a torus also in slices of its axes; everything else in
boxes of its network: groups of switches, leaf modules.
"""

from __future__ import annotations

from typing import Any

from nidmap.placement.machine import Machine
from nidmap.web.layout import cabinets
from nidmap.web.layout.boxes import MachineView
from nidmap.web.layout.networks import slices, switches

SCHEMA = "nidmap.layout/1"


def layout(machine: Machine) -> tuple[MachineView, ...]:
    """Return the ways in which a machine can be drawn, the default first.

    ``cabinets`` where the nodes have cnames; ``slices`` of a torus across its last axis,
    ``slices-y`` and ``slices-x`` across the others; ``switches`` for every other network and for
    dragonflies without cnames.
    """
    views = [cabinets.view(machine)] if cabinets.has_cnames(machine) else []
    if machine.topology.kind == "torus":
        views.extend(slices(machine))
    return tuple(views) or (switches(machine),)


def document(machine: Machine) -> dict[str, Any]:
    """Return all views as JSON."""
    return {"schema": SCHEMA, "views": [view.document() for view in layout(machine)]}


def view_parts(said: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a document's views one by one, for clients that show one at a time.

    `said`: what `document` returns. By id; under ``usual`` the first one whole and the others by
    id and title.
    """
    first, *others = said["views"]
    named = [{"id": view["id"], "title": view["title"]} for view in others]
    documents = {"usual": {"schema": SCHEMA, "views": [first, *named]}}
    return documents | {view["id"]: {"schema": SCHEMA, "views": [view]} for view in said["views"]}
