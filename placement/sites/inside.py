"""What a configuration states of the inside of its nodes, as `placement.hardware` has it."""

from __future__ import annotations

from placement.hardware.model import ASSUMED, Core, Device, NodeHardware
from placement.sites.schema import Config, Figure, Inside, Partition
from placement.sites.shared import WrongFigure, whole

__all__ = ["stated_hardware"]


def stated_hardware(config: Config) -> tuple[NodeHardware, ...]:
    """Return one type of node for every partition that states its inside.

    Raises
    ------
    WrongFigure
        Figures that do not go together.
    """
    return tuple(
        _hardware(part, part.inside, f"partition {part.name} of {config.name}")
        for part in config.partition
        if part.inside
    )


def _hardware(part: Partition, inside: Inside, source: str) -> NodeHardware:
    key = f"partition.{part.name}.inside"
    count = whole(part.cores)
    sockets, domains = whole(part.sockets) or 1, inside.numa.value
    caches = inside.l3.value if inside.l3 else domains
    threads = inside.threads.value if inside.threads else 1
    for name, few, many in (("numa", sockets, domains), ("l3", domains, caches)):
        if many % few or count % many:
            text = f"{many} do not divide {count} cores and {few} of what they are in"
            raise WrongFigure(f"{key}.{name}", text)
    cores = tuple(
        Core(
            tuple(core + thread * count for thread in range(threads)),
            core * caches // count,
            core * domains // count,
            core * sockets // count,
        )
        for core in range(count)
    )
    of_gpus = inside.gpu_l3 or inside.gpu_numa
    beside = "gpu_l3" if inside.gpu_l3 else "gpu_numa"
    gpus = _devices(f"{key}.{beside}", "gpu", of_gpus, whole(part.gpus), cores, beside[4:])
    links = inside.gpu_links.value if inside.gpu_links else []
    if any(a >= len(gpus) or b >= len(gpus) for a, b, _ in links):
        raise WrongFigure(f"{key}.gpu_links", f"a GPU beyond the {len(gpus)} of a node")
    reserved = inside.reserved.value if inside.reserved else []
    if any(core >= count for core in reserved):
        raise WrongFigure(f"{key}.reserved", f"a core beyond the {count} of a node")
    nics = _devices(f"{key}.nic_numa", "nic", inside.nic_numa, whole(part.nics), cores, "numa")
    copies = inside.copies
    return NodeHardware(
        cores,
        gpus,
        nics,
        tuple((min(a, b), max(a, b), gbs) for a, b, gbs in links),
        tuple(sorted(set(reserved))),
        copies.value if copies else ASSUMED,
        copies.mark if copies else "assumed",
        source,
    )


def _devices(
    key: str,
    kind: str,
    beside: Figure[list[int]] | None,
    count: int,
    cores: tuple[Core, ...],
    level: str,
) -> tuple[Device, ...]:
    """Return a node's GPUs or NICs; beside all cores where nothing is stated."""
    every = tuple(range(len(cores)))
    if beside is None:
        return tuple(Device(f"{kind}{k}", every) for k in range(count))
    if len(beside.value) != count:
        raise WrongFigure(key, f"{len(beside.value)} numbers for the {count} {kind}s of a node")
    near = [tuple(k for k in every if getattr(cores[k], level) == n) for n in beside.value]
    if not all(near):
        raise WrongFigure(key, f"a number beyond those of the node's {level} domains")
    return tuple(Device(f"{kind}{k}", some) for k, some in enumerate(near))
