# SPDX-License-Identifier: Apache-2.0
"""hwloc's XML (``lstopo --of xml node.xml``), versions 1 to 3.

Cores are taken in the order of the file, which is that of sockets, NUMA
domains and caches. A GPU is a PCI device that a driver's plugin named
(``nvml0``, ``rsmi0``, ``cuda0``, ``ze0``), counted as the driver does; then come, by
bus, the other display and 3D controllers of NVIDIA or AMD, which lstopo without a
plugin, or in a job with fewer GPUs, cannot name. A NIC is what has a device of the
OpenFabrics kind, or is called ``hsn0`` or ``cxi0``.
What is near a device are the cores of the object that it hangs below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple
from xml.etree import ElementTree

from nidmap.placement.errors import ParseError, UsageError
from nidmap.placement.machine import Core, Device, Machine, NodeHardware
from nidmap.placement.support.array_types import Ints, Mask

#: Devices of driver plugins, the most reliable numbering first.
_GPU = re.compile(r"(nvml|rsmi|cuda|ze|opencl\d+d)(\d+)", re.ASCII)
_PLUGINS = ("nvml", "rsmi", "cuda", "ze", "opencl")

_NIC = re.compile(r"(?:hsn|cxi|mlx\d+_|hfi1_|bnxt_re|irdma|efa_)\d+", re.ASCII)

#: 3D and display controllers of NVIDIA and AMD; AMD's VGA controllers from GCN on, since
#: earlier ones (ES1000) are consoles of servers.
_ACCELERATOR = re.compile(
    r"03(?:(?:02|80) \[(?:10de|1002):|00 \[(?:10de:|1002:(?:6|7[3-9])))", re.ASCII | re.IGNORECASE
)

_Element = ElementTree.Element


class HardwareFile(NamedTuple):
    """A node's hardware given as an ``-m`` option, overlaid on a machine."""

    hardware: NodeHardware  # its source is the file

    @property
    def source(self) -> str:
        """The path of the file."""
        return self.hardware.source

    def over(self, machine: Machine) -> Machine:
        """Return the machine with this node type added to the known ones."""
        refuse_other_node(machine, self.hardware)
        return replace(
            machine,
            hardware=(*machine.hardware, self.hardware),
            sources=(*machine.sources, self.hardware.source),
            _cache={},
        )


def parse_hwloc(text: bytes | str, source: str = "-") -> NodeHardware:
    """Return the hardware that an hwloc XML describes."""
    plain = text if isinstance(text, str) else text.decode("latin-1")
    if "<!ENTITY" in plain:
        raise ParseError(source, 0, "the XML has custom entities, which hwloc never writes")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314  # bounded, and without entities
    except ElementTree.ParseError as error:
        raise ParseError(source, error.position[0], f"not XML: {error.msg}") from None
    except (ValueError, LookupError):
        raise ParseError(source, 0, "not XML: unknown encoding") from None
    machine = root.find("object")
    if root.tag not in ("topology", "root") or machine is None:
        raise ParseError(source, 0, "XML, but not from hwloc", "lstopo --of xml FILE writes it")
    try:
        tree = _ObjectTree(machine, root.get("version", "1"))
        gpus, nics = tree.gpus(), tree.nics()
        links = tuple(
            _gpu_links(root, {p: k for k, device in enumerate(gpus) for p in device.indices})
        )
    except RecursionError:
        raise ParseError(source, 0, "objects nested too deeply for hwloc's XML") from None
    except ValueError as wrong:
        raise ParseError(source, 0, f"'{wrong}' is not an hwloc number") from None
    if not tree.cores:
        raise ParseError(source, 0, "the node has no cores")
    cores = tuple(Core(tuple(sorted(pus)), *_core_numbers(pus, tree)) for pus in tree.cores)
    of_pu = {pu: index for index, core in enumerate(cores) for pu in core.pus}
    return NodeHardware(
        cores,
        gpus=tuple(_make_device(device, of_pu, len(cores)) for device in gpus),
        nics=tuple(_make_device(device, of_pu, len(cores)) for device in nics),
        gpu_links=links,
        source=source,
    )


class _Pci(NamedTuple):
    """A PCI device, or a system device without PCI data."""

    kind: str
    names: list[tuple[str, str]]
    indices: list[str]
    near: frozenset[int]


class _ObjectTree:
    """The contents of hwloc's object tree, in its order."""

    def __init__(self, machine: _Element, version: str) -> None:
        self.cores: list[frozenset[int]] = []
        self.caches: list[frozenset[int]] = []
        self.domains: list[frozenset[int]] = []
        self.sockets: list[frozenset[int]] = []
        self.sets = {"L3Cache": self.caches, "NUMANode": self.domains}
        self.sets |= dict.fromkeys(("Package", "Socket"), self.sockets)
        self.devices: list[_Pci] = []
        self.version = version
        self.whole = _read_cpuset(machine) or frozenset()
        if (allowed := _read_cpuset(machine, "allowed_cpuset")) is not None:
            self.whole &= allowed  # lstopo --disallowed lists others, too
        self._walk(machine, self.whole, None)
        if not self.cores:  # a machine whose cores are not known apart from their threads
            self.cores = [frozenset([pu]) for pu in self._threads(machine)]

    def _threads(self, below: _Element) -> list[int]:
        """Return the usable hardware threads below an object."""
        threads = (o for o in below.iter("object") if o.get("type") == "PU")
        numbers = (_whole_number(o.get("os_index", "")) for o in threads)
        return [pu for pu in numbers if pu in self.whole or not self.whole]

    def _walk(self, at: _Element, near: frozenset[int], pci: _Pci | None) -> None:
        kind = at.get("type", "")
        if kind == "Cache" and at.get("depth") == "3":  # hwloc 1
            kind = "L3Cache"
        cpuset = _read_cpuset(at)
        near = near if cpuset is None else cpuset
        if kind == "Core":
            self.cores += [frozenset(pus)] if (pus := self._threads(at)) else []
        elif kind in self.sets:
            self.sets[kind].append(cpuset or frozenset())
        elif kind == "PCIDev":
            pci = _Pci(at.get("pci_type", ""), [], [at.get("gp_index", "")], near)
            self.devices.append(pci)
        elif kind == "OSDev":
            if pci is None:
                pci = _Pci("", [], [], near)
                self.devices.append(pci)
            pci.names.append((at.get("name", ""), at.get("osdev_type", "")))
            pci.indices.append(at.get("gp_index", ""))
        for child in at.findall("object"):
            self._walk(child, near, pci)

    def gpus(self) -> list[_Pci]:
        """Return the GPUs in the driver's order, then those unknown to it."""
        named = next(filter(None, map(self._named_by, _PLUGINS)), [])
        return named + [
            device
            for device in self.devices
            if _ACCELERATOR.match(device.kind) and all(device is not gpu for gpu in named)
        ]

    def _named_by(self, plugin: str) -> list[_Pci]:
        """Return the devices that a driver's plugin names, by number."""
        numbered = [
            (int(match[2]), device)
            for device in self.devices
            for name, _ in device.names
            if (match := _GPU.fullmatch(name)) and match[1].startswith(plugin)
        ]
        return [device for _, device in sorted(numbered, key=lambda pair: pair[0])]

    def nics(self) -> list[_Pci]:
        """Return the NICs in the order of the file."""
        bits = self.version[0] >= "3"  # OpenFabrics is a bit of the kind from hwloc 3 on
        return [
            device
            for device in self.devices
            if any(
                _NIC.fullmatch(name) or (_whole_number(kind) & 32 if bits else kind == "3")
                for name, kind in device.names
            )
        ]


def _core_numbers(pus: frozenset[int], node: _ObjectTree) -> tuple[int, int, int]:
    """Return the numbers of a core's L3, NUMA domain and socket."""

    def within(sets: list[frozenset[int]], beyond: int) -> int:
        holding = [k for k, members in enumerate(sets) if pus <= members]
        # Memory of several kinds covers the same cores: the smallest set is the nearest.
        return min(holding, key=lambda k: (len(sets[k]), k)) if holding else beyond

    socket = within(node.sockets, 0)
    numa = within(node.domains, socket)
    return within(node.caches, len(node.caches) + numa), numa, socket


def _make_device(device: _Pci, of_pu: dict[int, int], cores: int) -> Device:
    near = sorted({of_pu[pu] for pu in device.near if pu in of_pu})
    name = next(
        (name for name, _ in device.names if _GPU.fullmatch(name) or _NIC.fullmatch(name)), ""
    )
    return Device(name or device.kind, tuple(near or range(cores)))


def _gpu_links(root: _Element, gpu: dict[str, int]) -> Iterator[tuple[int, int, float]]:
    """Yield the bandwidths (GB/s) between GPUs, which hwloc stores as distances in MB/s."""
    for table in root.iter():
        if not table.tag.startswith("distances2") or "Bandwidth" not in table.get("name", ""):
            continue
        ends = " ".join(e.text or "" for e in table.iter("indexes")).replace("OSDev:", "").split()
        values = " ".join(e.text or "" for e in table.iter("u64values")).split()
        if len(values) != len(ends) ** 2:
            continue
        for k, value in enumerate(values):
            a, b = gpu.get(ends[k // len(ends)]), gpu.get(ends[k % len(ends)])
            if a is not None and b is not None and a < b and _whole_number(value):
                yield a, b, _whole_number(value) / 1e3


def _read_cpuset(at: _Element, name: str = "cpuset") -> frozenset[int] | None:
    """Return an object's processing units; None for no set or an infinite one."""
    text = at.get(name)
    if text is None or len(text) > 1 << 14 or (name != "cpuset" and text.startswith("0xf...f")):
        return None
    bits = 0
    for word in text.split(","):
        if word.startswith("0xf...f"):  # "and all beyond": everything in the machine, not a set
            word = word[7:]
        try:
            bits = bits << 32 | (int(word, 16) if word else 0)
        except ValueError:
            raise ValueError(text) from None
    return frozenset(k for k in range(bits.bit_length()) if bits >> k & 1)


def _whole_number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 12:
        raise ValueError(text)
    return int(text)


def hardware_of(machine: Machine, rows: Ints) -> NodeHardware:
    """Return the hardware of some nodes of a machine.

    The type counts that has as many cores (or hardware threads) and GPUs as the machine says
    of these nodes, the last one that was given first; what the machine does not say fits.
    """
    if not machine.hardware:
        hint = "-m node.xml adds it (lstopo --of xml node.xml, on such a node)"
        raise UsageError(f"the hardware of {machine.name}'s nodes is not known", hint)
    kinds = _hardware_kinds(machine, rows)
    texts = [f"{cores} cores and {gpus} GPUs" for cores, gpus in kinds]
    if len(kinds) > 1:
        what = f"the job's nodes are of {len(kinds)} types: {', '.join(texts)}"
        raise UsageError(what, "use nodes of one type")
    for hardware in reversed(machine.hardware):
        if _may_fit(hardware, machine, *kinds[0]):
            return hardware
    what = f"no known hardware for a node of {machine.name} with {texts[0]}"
    raise UsageError(what, "-m node.xml adds it (lstopo --of xml node.xml, on such a node)")


def refuse_other_node(machine: Machine, one: NodeHardware) -> None:
    """Refuse a file whose node differs from every compute node of the machine."""
    kinds = _hardware_kinds(machine, machine.compute)
    if any(_may_fit(one, machine, *kind) for kind in kinds) or not kinds:
        return
    texts = " or ".join(f"{cores} cores and {gpus} GPUs" for cores, gpus in kinds[:3])
    what = f"a node of {len(one.cores)} cores and {len(one.gpus)} GPUs, where {machine.name} has"
    hint = "lstopo --of xml node.xml, on one of its compute nodes"
    raise ParseError(one.source, 0, f"{what} {texts}", hint)


def _hardware_kinds(machine: Machine, rows: Ints | Mask) -> list[tuple[int, int]]:
    """Return the combinations of core and GPU counts among some nodes."""
    cores, gpus = machine.cores[rows].tolist(), machine.gpus[rows].tolist()
    return sorted(set(zip(cores, gpus, strict=True)))


def _may_fit(hardware: NodeHardware, machine: Machine, cores: int, gpus: int) -> bool:
    """Tell whether a node with these cores and GPUs (0: unknown) may be this one.

    A Slurm that was told CPUs alone calls each hardware thread a socket with one core.
    """
    alike = machine.cores == cores
    sizes = {0, len(hardware.cores)}
    if bool((machine.sockets[alike] == cores).any()):
        sizes.add(sum(len(core.pus) for core in hardware.cores))
    blind = not hardware.gpus and not hardware.nics  # lstopo saw no devices
    untold = not gpus and not machine.gpus.any()
    return cores in sizes and (blind or untold or gpus == len(hardware.gpus))
