"""Which of a machine's known types of node some nodes are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from placement.hardware.model import NodeHardware
    from placement.machine import Machine
    from placement.support.array_types import Ints

__all__ = ["hardware_of"]


def hardware_of(machine: Machine, rows: Ints) -> NodeHardware:
    """Return what is inside some nodes of a machine.

    Of several types the one counts that has as many cores and GPUs as the
    machine says of these nodes; of one type alone all nodes are.

    Parameters
    ----------
    machine : Machine
    rows : int64 (n,)

    Raises
    ------
    UsageError
        Nothing is known of the inside of these nodes, or they are of two types.
    """
    import numpy as np

    if not machine.hardware:
        hint = "-m node.xml adds it (lstopo --of xml node.xml, on such a node)"
        raise UsageError(f"what is inside the nodes of {machine.name} is not known", hint)
    if len(machine.hardware) == 1 and machine.hardware[0].source.endswith(".xml"):
        return machine.hardware[0]
    kinds = np.unique(np.stack([machine.cores[rows], machine.gpus[rows]], axis=1), axis=0)
    if len(kinds) > 1:
        said = ", ".join(f"{cores} cores and {gpus} GPUs" for cores, gpus in kinds.tolist())
        raise UsageError(f"the job's nodes are of {len(kinds)} types: {said}", "take one type")
    cores, gpus = kinds[0].tolist()
    return _fitting(machine.hardware, cores, gpus, machine.name)


def _fitting(known: Iterable[NodeHardware], cores: int, gpus: int, name: str) -> NodeHardware:
    for one in reversed([*known]):  # the last that was given counts
        if len(one.cores) == cores and len(one.gpus) == gpus:
            return one
    raise UsageError(
        f"nothing states what is inside a node of {name} with {cores} cores and {gpus} GPUs",
        "-m node.xml adds it (lstopo --of xml node.xml, on such a node)",
    )
