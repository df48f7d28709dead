"""Which of a machine's known types of node some nodes are."""

from __future__ import annotations

from placement.errors import ParseError, UsageError
from placement.hardware.model import NodeHardware
from placement.machine import Machine
from placement.support.array_types import Ints, Mask

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
    if not machine.hardware:
        hint = "-m node.xml adds it (lstopo --of xml node.xml, on such a node)"
        raise UsageError(f"the hardware of {machine.name}'s nodes is not known", hint)
    kinds = _kinds(machine, rows)
    texts = [f"{cores} cores and {gpus} GPUs" for cores, gpus in kinds]
    if len(kinds) > 1:
        what = f"the job's nodes are of {len(kinds)} types: {', '.join(texts)}"
        raise UsageError(what, "use nodes of one type")
    for hardware in reversed(machine.hardware):
        if _fits(hardware, machine, *kinds[0]):
            return hardware
    what = f"no known hardware for a node of {machine.name} with {texts[0]}"
    raise UsageError(what, "-m node.xml adds it (lstopo --of xml node.xml, on such a node)")


def refuse_other_node(machine: Machine, one: NodeHardware) -> None:
    """Refuse a file that describes a node unlike all compute nodes of the machine.

    Raises
    ------
    ParseError
    """
    kinds = _kinds(machine, machine.compute)
    if any(_fits(one, machine, *kind) for kind in kinds) or not kinds:
        return
    texts = " or ".join(f"{cores} cores and {gpus} GPUs" for cores, gpus in kinds[:3])
    what = f"a node of {len(one.cores)} cores and {len(one.gpus)} GPUs, where {machine.name} has"
    hint = "lstopo --of xml node.xml, on one of its compute nodes"
    raise ParseError(one.source, 0, f"{what} {texts}", hint)


def _kinds(machine: Machine, rows: Ints | Mask) -> list[tuple[int, int]]:
    """Return the numbers of cores and GPUs that there are among some nodes."""
    cores, gpus = machine.cores[rows].tolist(), machine.gpus[rows].tolist()
    return sorted(set(zip(cores, gpus, strict=True)))


def _fits(hardware: NodeHardware, machine: Machine, cores: int, gpus: int) -> bool:
    """Return True where a node with so many cores and GPUs (0: unknown) may be this one.

    A Slurm that was told CPUs alone calls each hardware thread a socket with one core.
    """
    alike = machine.cores == cores
    sizes = {0, len(hardware.cores)}
    if bool((machine.sockets[alike] == cores).any()):
        sizes.add(sum(len(core.pus) for core in hardware.cores))
    blind = not hardware.gpus and not hardware.nics  # lstopo saw no devices
    untold = not gpus and not machine.gpus.any()
    return cores in sizes and (blind or untold or gpus == len(hardware.gpus))
