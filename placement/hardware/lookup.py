"""Which of a machine's known types of node some nodes are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import ParseError, UsageError

if TYPE_CHECKING:
    from placement.hardware.model import NodeHardware
    from placement.machine import Machine
    from placement.support.array_types import Ints

__all__ = ["hardware_of", "refuse_other_node"]


def hardware_of(machine: Machine, rows: Ints) -> NodeHardware:
    """Return what is inside some nodes of a machine.

    The type counts that has as many cores (or hardware threads) and GPUs as the machine says
    of these nodes, the last one that was given first; what the machine does not say fits.

    Parameters
    ----------
    machine : Machine
    rows : int64 (n,)

    Raises
    ------
    UsageError
        Nothing is known of the inside of these nodes, they are of two types, or a file
        describes others.
    """
    import numpy as np

    if not machine.hardware:
        hint = "-m node.xml adds it (lstopo --of xml node.xml, on such a node)"
        raise UsageError(f"what is inside the nodes of {machine.name} is not known", hint)
    kinds = np.unique(np.stack([machine.cores[rows], machine.gpus[rows]], axis=1), axis=0)
    if len(kinds) > 1:
        said = ", ".join(f"{cores} cores and {gpus} GPUs" for cores, gpus in kinds.tolist())
        raise UsageError(f"the job's nodes are of {len(kinds)} types: {said}", "take one type")
    cores, gpus = kinds[0].tolist()
    told = bool(machine.gpus.any())
    for one in reversed(machine.hardware):
        if _fits(one, cores, gpus if gpus or told else None):
            return one
    raise UsageError(
        f"nothing states what is inside a node of {machine.name} with"
        f" {cores} cores and {gpus} GPUs",
        "-m node.xml adds it (lstopo --of xml node.xml, on such a node)",
    )


def refuse_other_node(machine: Machine, one: NodeHardware) -> None:
    """Refuse a file that describes a node unlike all compute nodes of the machine.

    Raises
    ------
    ParseError
    """
    import numpy as np

    own = np.unique(np.stack([machine.cores, machine.gpus], axis=1)[machine.compute], axis=0)
    told = bool(machine.gpus.any())
    if any(_fits(one, c, g if g or told else None) for c, g in own.tolist()) or not len(own):
        return
    said = " or ".join(f"{cores} cores and {gpus} GPUs" for cores, gpus in own.tolist()[:3])
    raise ParseError(
        one.source,
        0,
        f"a node of {len(one.cores)} cores and {len(one.gpus)} GPUs, where {machine.name} has"
        f" {said}",
        "lstopo --of xml node.xml, on one of its compute nodes",
    )


def _fits(one: NodeHardware, cores: int, gpus: int | None) -> bool:
    """Return True where a node with so many cores (0: unknown) and GPUs (None) may be this one."""
    threads = sum(len(core.pus) for core in one.cores)
    blind = not one.gpus and not one.nics  # lstopo saw no devices
    return cores in (0, len(one.cores), threads) and (blind or gpus in (None, len(one.gpus)))
