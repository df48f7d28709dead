# SPDX-License-Identifier: Apache-2.0
"""The scheduler's own choice for a job that names no nodes, on all or part of the machine.

A header without the plan's nodes leaves the choice to the scheduler. What a job gains by such
a header is what it gains on the nodes that the scheduler takes then, not on those of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nidmap.placement import planners
from nidmap.placement.errors import LaunchError, PlanError
from nidmap.placement.lookup import nodes_of
from nidmap.placement.machine import Machine
from nidmap.placement.planners import (
    TREE_PLANNERS,
    Baseline,
    Plan,
    Request,
    nested_units,
    spans,
)
from nidmap.placement.planners.slurm_job import first_of_lightest
from nidmap.placement.scheduler.kinds import of_same_kinds
from nidmap.placement.support.array_types import Ints, Ints32, Mask
from nidmap.placement.support.quantities import counted
from nidmap.placement.switch_tree import forest_roots

#: The planner that simulates each of Slurm's topology plugins.
_PLUGINS = {**dict.fromkeys(("", "none", "default", "flat"), "slurm-none"), "tree": "slurm-tree"}

#: Schedulers whose own choice is not documented.
_UNKNOWN = {
    "alps": "ALPS", "pbs": "PBS", "cobalt": "Cobalt", "torque": "Torque", "flux": "Flux",
}  # fmt: skip


def baseline_of(
    machine: Machine, named: str = "", config: Mapping[str, str] | None = None
) -> Baseline:
    """Return the scheduler's choice for a job that names no nodes.

    `named`: a planner that the user names instead; '' for none. `config`: what the live Slurm
    says of itself (`nidmap.placement.slurm.command.slurm_settings`); None means a machine read
    from a topology.conf is taken to run the plugin that reads this file, any other Slurm no
    topology plugin; of ALPS, PBS and Cobalt the first free nodes in NID order are taken, since
    their own choice is not known.
    """
    if named:
        planners.find(named)
        return Baseline(named, f"strategy {named}")
    if config:
        return _live_choice(machine, config)
    kind = "" if machine.switches is None else machine.switches.kind
    if kind in ("tree", "block"):
        return Baseline(f"slurm-{kind}", f"Slurm's own choice (topology/{kind})")
    known = _UNKNOWN.get(machine.batch) or _UNKNOWN.get(machine.scheduler)
    if known:
        return Baseline(
            "nid-order", f"the first free nodes in NID order ({known}'s own choice is not known)"
        )
    return Baseline()


#: From which Slurm on topology/tree chooses as `slurm-tree-24.11`.
_NEAREST = (24, 11)

#: From which Slurm on a job of one node gets the first of the lightest nodes.
_LIGHTEST_ALONE = (26, 5)


def _live_choice(machine: Machine, config: Mapping[str, str]) -> Baseline:
    """Return the choice of a running Slurm with these settings."""
    from nidmap.placement.slurm.command import version_numbers

    switches, plugin = machine.switches, config.get("TopologyPlugin", "").removeprefix("topology/")
    if switches is not None and "scontrol show topology" in machine.sources:
        plugin = switches.kind  # a partition's own, which the setting does not know of
    known = dict(_PLUGINS)
    if switches is not None and switches.kind == "block":
        known["block"] = "slurm-block"  # it is simulated on the blocks that were read
    strategy, shape = known.get(plugin, "slurm-none"), f"topology/{plugin or 'none'}"
    if "dragonfly" in config.get("TopologyParam", "").lower().split(","):
        strategy, shape = "slurm-dragonfly", f"{shape}, Dragonfly"
    if plugin not in known:
        shape += ", simulated as topology/none"
    version = config.get("SLURM_VERSION", "")
    numbers = version_numbers(version)
    if strategy == "slurm-tree" and numbers >= _NEAREST:
        strategy = TREE_PLANNERS[-1]
    words = f"Slurm {version}'s own choice here ({shape})"
    return Baseline(strategy, words, numbers >= _LIGHTEST_ALONE)


def live_baseline(machine: Machine, named: str = "") -> Baseline:
    """Return the choice of the Slurm running here, by its own settings.

    A Slurm that does not answer leaves it at what is known of the machine.
    """
    from nidmap.placement.slurm import command as slurm_command

    try:
        return baseline_of(machine, named, None if named else slurm_command.slurm_settings())
    except LaunchError:
        return baseline_of(machine)


def scheduler_choice(machine: Machine, request: Request) -> Ints:
    """Return the nodes that the scheduler would give the job on its own."""
    free = request.free if request.idle is None else request.idle
    request = replace(request, free=free)
    if request.count == 1 and request.baseline.lightest_alone:
        return first_of_lightest(machine, request)
    return planners.find(request.baseline.strategy)(machine, request)


def inside_one_tree(machine: Machine, request: Request) -> Request:
    """Restrict the free nodes to the tree that Slurm would use: no job spans several."""
    switches = machine.switches
    if switches is None or switches.kind != "tree":
        return request
    tree = np.where(switches.leaf_of >= 0, forest_roots(switches)[switches.leaf_of], -1)
    roots, free = np.unique(tree[request.free], return_counts=True)
    if len(roots) == 1 and roots[0] >= 0:
        return request
    names = [switches.names[k] for k in roots if k >= 0]
    parted = f"Slurm runs no job across {', '.join(names[:4])}, which no switch joins"
    needed = np.unique(tree[request.include])
    if len(needed) > 1 or -1 in needed:
        raise PlanError("the included nodes are not under one top switch", parted)
    most = free[(roots >= 0) & np.isin(roots, needed if len(needed) else roots)].max(initial=0)
    if most < request.count:
        raise PlanError(
            f"{request.count} nodes wanted, at most {most} are free under one top switch",
            parted if names else "no free node is on a switch of topology.conf",
        )
    strategy = request.baseline.strategy
    known = strategy if strategy in TREE_PLANNERS else TREE_PLANNERS[0]
    root = needed[0] if len(needed) else tree[planners.find(known)(machine, request)[0]]
    idle = None if request.idle is None else request.idle & (tree == root)
    return replace(request, free=request.free & (tree == root), idle=idle)


def describe_default(machine: Machine, request: Request) -> dict[str, Any]:
    """Describe what the scheduler's own choice would touch, for the same request."""
    rule = request.baseline
    default: dict[str, Any] = {
        "strategy": rule.strategy,
        "words": rule.words,
        "baseline": planners.BASELINE if rule.strategy.startswith("slurm-") else "",
        "touches": None,
    }
    try:
        rows = scheduler_choice(machine, request)
    except PlanError as error:
        return default | {"why": error.message}
    return default | {"touches": spans(machine, rows), "nodelist": nodes_of(machine, rows).fold()}


#: Slurm's own choices under other plugins than topology/block.
_OTHERS = ("slurm-none", *TREE_PLANNERS, "slurm-dragonfly")


@dataclass(frozen=True, slots=True, eq=False)
class Exclusion:
    """A part of the machine that a job is restricted to, and where Slurm puts it there."""

    inside: Mask  # (n,), the part, nodes of the plan's kinds alone: all others are excluded
    part: str  # its name
    # (k,), what Slurm would choose there now; None where it would let the job wait
    rows: Ints | None
    # Whether that wins over what Slurm chooses without it: by the predicted gain where the strategy
    # predicts one, else whether it is other nodes at all
    pays: bool
    words: str = ""  # the gain as a sentence; '' where the strategy predicts none


def has_blocks(machine: Machine, request: Request) -> bool:
    """Tell whether the scheduler is a Slurm with topology/block."""
    blocks = machine.switches is not None and machine.switches.kind == "block"
    return blocks and request.baseline.strategy not in _OTHERS


def block_waits(machine: Machine, request: Request, rows: Ints) -> str:
    """Return why Slurm keeps a job pinned to some nodes waiting; '' if it can start.

    Under topology/block a job's nodes, or those of each of its segments, lie in one block.
    """
    if not has_blocks(machine, request):
        return ""
    baseline = Baseline("slurm-block", "topology/block")
    pinned = replace(request, include=rows, baseline=baseline, segment=request.segment or None)
    try:
        scheduler_choice(machine, pinned)
    except PlanError:
        rule = f"its {len(rows)} nodes need one block with room for all, or --segment"
        if request.segment:
            rule = f"segments of {request.segment} lie in one block each"
        return f"Slurm leaves this job pending: under topology/block {rule}"
    return ""


def led_to(machine: Machine, plan: Plan, baseline: Baseline, inside: Mask) -> Ints | None:
    """Return the scheduler's own choice within a part; None if the job would wait.

    `baseline`: the scheduler's own choice. `inside` (n,).
    """
    request = plan.request
    free = (request.free if request.idle is None else request.idle) & inside
    try:
        return scheduler_choice(machine, replace(request, free=free, idle=None, baseline=baseline))
    except PlanError:
        return None


def best_exclusion(machine: Machine, plan: Plan, baseline: Baseline) -> Exclusion:
    """Return the part of the machine in which Slurm's own choice pays most.

    The outermost units that the plan uses, or, where Slurm's choice in these wins nothing and
    the strategy predicts, those of the first level below where it does.

    `baseline`: the scheduler's own choice.
    """
    exclusions: list[Exclusion] = []
    same = of_same_kinds(machine, plan.rows)
    for unit, part in touched_parts(machine, plan.rows):
        inside = unit & same
        rows = led_to(machine, plan, baseline, inside)
        pays, words = False, ""
        if rows is not None and plan.outlook is not None:
            pays, words = plan.outlook.judge(rows)
        elif rows is not None:
            free_choice = led_to(machine, plan, baseline, machine.compute)
            pays = free_choice is None or not np.array_equal(np.sort(rows), np.sort(free_choice))
        exclusions.append(Exclusion(inside, part, rows, pays, words))
        if pays or plan.outlook is None:
            break
    return next((exclusion for exclusion in exclusions if exclusion.pays), exclusions[0])


def touched_parts(machine: Machine, rows: Ints) -> Iterator[tuple[Mask, str]]:
    """Yield the parts of the machine that contain some nodes, largest first, with names.

    The units of each level: groups, outermost switches, leaf modules and so on; of a torus,
    which has none, the smallest box around them, which may go around the ends.
    """
    if machine.topology.kind == "torus":
        yield _box_touched(machine, rows)
        return
    units = nested_units(machine, np.arange(len(machine)))
    if not units:
        yield machine.compute, "the machine"
    for unit, level in zip(units, machine.topology.levels, strict=False):
        used = np.unique(unit[rows])
        yield np.isin(unit, used), f"the {counted(len(used), level)} that the plan uses"


def _box_touched(machine: Machine, rows: Ints) -> tuple[Mask, str]:
    inside = np.ones(len(machine), dtype=bool)
    words = []
    levels, extents = machine.topology.levels[:-1], machine.topology.extents[:-1]
    for axis, (name, extent) in enumerate(zip(levels, extents, strict=True)):
        start, length = _shortest_arc(machine.coords[rows, axis], extent)
        inside &= (machine.coords[:, axis] - start) % extent < length
        words.append(f"{name} {start}-{(start + length - 1) % extent}")
    return inside, f"the box {', '.join(words)}"


def _shortest_arc(values: Ints32, extent: int) -> tuple[int, int]:
    """Return start and length of the shortest arc of a ring that contains all values."""
    taken = np.unique(values)
    gaps = np.diff(np.append(taken, taken[0] + extent))
    after = int(np.argmax(gaps))
    return int(taken[(after + 1) % len(taken)]), extent - int(gaps[after]) + 1
