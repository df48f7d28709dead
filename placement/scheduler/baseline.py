"""What a job gets that asks for no nodes: the scheduler's own choice, which plans are held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from placement import planners
from placement.errors import LaunchError
from placement.machine import Machine
from placement.request import Baseline, Request
from placement.support.array_types import Ints
from placement.support.lazy import lazy

if TYPE_CHECKING:
    from placement.slurm import command as slurm_command
else:
    slurm_command = lazy("placement.slurm.command")

__all__ = ["baseline_of", "live_baseline", "scheduler_choice"]

#: The planner that simulates each of Slurm's topology plugins.
_PLUGINS = {"none": "slurm-none", "default": "slurm-none", "tree": "slurm-tree"}

#: What the schedulers are called whose own choice nobody has described.
_UNKNOWN = {
    "alps": "ALPS", "pbs": "PBS", "cobalt": "Cobalt", "torque": "Torque", "flux": "Flux",
}  # fmt: skip


def baseline_of(
    machine: Machine, named: str = "", config: Mapping[str, str] | None = None
) -> Baseline:
    """Return what the scheduler of a machine gives to a job that asks for no nodes.

    Parameters
    ----------
    machine : Machine
    named : str
        A planner that the user names instead; '' for none.
    config : mapping or None
        What the live Slurm says of itself (`placement.slurm.command.configuration`).
        None: a machine read from a topology.conf is taken to run the plugin
        that reads this file, any other Slurm no topology plugin; of ALPS,
        PBS and Cobalt the first free nodes in NID order are taken, since
        their own choice is not known.

    Raises
    ------
    UsageError
        A planner that there is not.

    Examples
    --------
    >>> import nidmap
    >>> baseline_of(nidmap.load_machine("shaheen2")).words
    "Slurm's own choice (topology/none)"
    >>> baseline_of(nidmap.load_machine("bluewaters")).strategy
    'nid-order'
    >>> live = {"SLURM_VERSION": "22.05.8", "TopologyPlugin": "topology/tree"}
    >>> baseline_of(nidmap.load_machine("torus:4x4"), config=live).words
    "Slurm 22.05.8's own choice here (topology/tree)"
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


def _live_choice(machine: Machine, config: Mapping[str, str]) -> Baseline:
    """Return the choice of the Slurm that says this of itself."""
    plugin = config.get("TopologyPlugin", "").removeprefix("topology/") or "none"
    if machine.switches is not None and "scontrol show topology" in machine.sources:
        plugin = machine.switches.kind  # a partition's own, which the setting does not know of
    dragonfly = "dragonfly" in config.get("TopologyParam", "").lower().split(",")
    known = dict(_PLUGINS)
    if machine.switches is not None and machine.switches.kind == "block":
        known["block"] = "slurm-block"  # it is simulated on the blocks that were read
    strategy = "slurm-dragonfly" if dragonfly else known.get(plugin, "slurm-none")
    shape = f"topology/{plugin}{', Dragonfly' if dragonfly else ''}"
    if plugin not in known:
        shape += ", simulated as topology/none"
    version = config.get("SLURM_VERSION", "")
    return Baseline(strategy, f"Slurm {version}'s own choice here ({shape})")


def live_baseline(machine: Machine, named: str = "") -> Baseline:
    """Return the same where Slurm runs here: its own settings say what it does.

    A Slurm that does not answer leaves it at what is known of the machine.
    """
    try:
        return baseline_of(machine, named, None if named else slurm_command.configuration())
    except LaunchError:
        return baseline_of(machine)


def scheduler_choice(machine: Machine, request: Request) -> Ints:
    """Return the nodes that the scheduler gives to the job by itself.

    Raises
    ------
    PlanError
        It would let the job wait.

    Examples
    --------
    >>> from placement.request import Request
    >>> from placement.specs import parse_spec
    >>> machine = parse_spec("tree:4x2")
    >>> free = machine.free & (machine.nid > 1)
    >>> scheduler_choice(machine, Request(3, free)).tolist()
    [2, 3, 4]
    >>> scheduler_choice(machine, Request(3, free, idle=machine.free)).tolist()
    [0, 1, 2]
    """
    free = request.free if request.idle is None else request.idle
    return planners.find(request.baseline.strategy)(machine, replace(request, free=free))
