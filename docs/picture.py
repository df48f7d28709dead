# SPDX-License-Identifier: Apache-2.0
"""Draw the README's picture: where a plan's blades stand in an XC's cabinets.

Usage: python docs/picture.py docs/images/shaheen2-blades.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import nidmap
from nidmap.placement.machine import Machine
from nidmap.placement.planners import Plan
from nidmap.placement.support.quantities import counted

BLADE_W, BLADE_H, GAP, TOP = 11, 5, 6, 66
COLOURS = {"vacant": "#d8dde3", "free": "#9fb4c7", "hilbert": "#d1495b", "blades": "#00798c"}


def main(path: str) -> None:
    """Write the SVG of two plans of 216 nodes on Shaheen II."""
    machine = nidmap.load_machine("shaheen2")
    plans = {
        "blades": nidmap.plan(machine, 216, strategy="blades", per_blade=1),
        "hilbert": nidmap.plan(machine, 216, strategy="hilbert"),
    }
    used = {name: blades_of(machine, plan.rows) for name, plan in plans.items()}
    Path(path).write_text(svg(machine, used, plans))


def blades_of(machine: Machine, rows) -> set[tuple[int, ...]]:
    """Return the (group, chassis, blade) that the rows lie on."""
    return {tuple(c) for c in machine.coords[rows, :3].tolist()}


def svg(machine: Machine, used, plans) -> str:
    """Return the picture: a column of cabinets a group, two cabinets a group."""
    groups, chassis, blades, _ = machine.topology.extents
    width = groups * (2 * (BLADE_W + 2) + GAP) + 20
    height = TOP + 3 * (blades * (BLADE_H + 1) + GAP) + 10
    present = blades_of(machine, machine.compute)
    cells: dict[str, list[str]] = {}
    for place in np.ndindex(groups, chassis, blades):
        cells.setdefault(colour_of(place, present, used), []).append(outline(*place))
    paths = [f'<path fill="{colour}" d="{"".join(d)}"/>' for colour, d in cells.items()]
    labels = [
        f'<text x="{10 + g * (2 * (BLADE_W + 2) + GAP) + BLADE_W}" y="{TOP - 6}" '
        f'font-size="9" text-anchor="middle" fill="#556">g{g}</text>'
        for g in range(groups)
    ]
    words = [
        f'<rect x="10" y="{10 + 18 * i}" width="11" height="11" fill="{COLOURS[name]}"/>'
        f'<text x="27" y="{20 + 18 * i}" font-size="12" fill="#334">{name}: {said(plan)}</text>'
        for i, (name, plan) in enumerate(plans.items())
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" role="img"><title>Two plans of 216 nodes on Shaheen II'
        f'</title><rect width="{width}" height="{height}" fill="#fff"/>'
        + "\n".join(words + labels + paths)
        + "</svg>\n"
    )


def said(plan: Plan) -> str:
    """Return what a plan touches, in words."""
    touches = ", ".join(counted(n, level) for level, n in plan.facts["touches"].items())
    return f"{counted(len(plan.nodes), 'node')}; they touch {touches}"


def colour_of(place: tuple[int, ...], present, used) -> str:
    """Return the colour of a blade: of the plan that uses it, of a free or a vacant place."""
    name = next((n for n, blades in used.items() if place in blades), None)
    return COLOURS[name or ("free" if place in present else "vacant")]


def outline(g: int, c: int, b: int) -> str:
    """Return one blade's rectangle: three chassis a cabinet, two cabinets a group."""
    x = 10 + g * (2 * (BLADE_W + 2) + GAP) + (c // 3) * (BLADE_W + 2)
    y = TOP + (c % 3) * (16 * (BLADE_H + 1) + GAP) + b * (BLADE_H + 1)
    return f"M{x} {y}h{BLADE_W}v{BLADE_H}h-{BLADE_W}z"


if __name__ == "__main__":
    main(*sys.argv[1:])
