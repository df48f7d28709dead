"""From a machine's specification to a mini-Cray that stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.commands.common import say
from placement.errors import UsageError
from workloads.minicray import client

if TYPE_CHECKING:
    from workloads.minicray.client import Standing

__all__ = ["build_minicray"]


def build_minicray(
    specs: tuple[str, ...],
    name: str,
    *,
    scale: float | None = None,
    ecmp: bool = False,
    no_slurm: bool = False,
    topology: str = "tree",
) -> Standing:
    """Build a mini-Cray, say what it is, and return it.

    Parameters
    ----------
    specs : tuple of str
        The machine, as ``-m`` takes it.
    name : str
    scale : float or None
        How many times slower its links are; None: such that links bind.
    ecmp : bool
        Whether flows spread over all shortest paths.
    no_slurm : bool
        Whether Slurm is left out even where it is installed.
    topology : str
        Slurm's topology plugin.

    Raises
    ------
    NidmapError
        The machine cannot be built, or this host does not allow it.
    """
    from placement.load import load_machine
    from workloads.minicray.blueprint import blueprint
    from workloads.minicray.net import design
    from workloads.minicray.slurm import find_slurm

    if "-" in specs:
        raise UsageError(
            "a mini-Cray's commands read the machine again, and standard input is read once",
            "save the dump to a file",
        )
    net = design(load_machine(*specs), scale, ecmp)
    slurm, missing = (None, "") if no_slurm else find_slurm(topology)
    plan = blueprint(net, name, tuple(specs), slurm)
    standing = client.start(plan, map_all=slurm is not None)
    rates = ", ".join(f"{kind} {rate:g}" for kind, rate in plan["about"]["rates"].items())
    say(f"mini-Cray {name}: {len(net.names)} nodes, {net.routers} routers; Mbit/s: {rates}")
    say(f"Slurm: {'running' if slurm else f'left out: {missing}' if missing else 'left out'}")
    for note in net.notes:
        say(f"note: {note}")
    return standing
