# SPDX-License-Identifier: Apache-2.0
"""Order files: formats that write a `Placement` and read it back.

A format is one record, an `OrderFormat` of `FORMATS`; names, suffixes, help and the limits of
who reads it follow from that. Its `Translation` only translates. Other distributions
name theirs under the entry point group ``nidmap.order_formats``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from nidmap.placement.errors import UsageError
from nidmap.placement.permutation import inverse
from nidmap.placement.placement import Placement
from nidmap.placement.support.reading import decode, format_of_name, read_bytes, suffix_of
from nidmap.placement.support.registry import Registry
from nidmap.rankmap.emit import document, hosts, text
from nidmap.rankmap.emit.process_mapping import CRAY_MPICH, HYDRA_FILE, PMI2, Mapping


class Translation(Protocol):
    """The writer and the reader of one order format: a module or an object."""

    def write(self, order: Placement) -> str:
        """Return the order as text."""

    def read(self, text: str, placement: Placement, source: str) -> Placement:
        """Return the order in a text, for these slots."""


@dataclass(frozen=True, slots=True)
class OrderFormat:
    """A format of order files."""

    translation: Translation
    # Names of its files: suffixes, and ``MPICH_RANK_ORDER``, the usual one first
    files: str
    words: str  # description of its files in the help of ``nidmap order``
    # True where slots are numbered along the nodes as the launcher takes them, not as they are
    # listed: the format gets the order renumbered already
    by_launcher: bool = False
    nodes_alone: bool = False  # True where each rank's node is named, and not its place inside it
    # How who reads such files tells MPI the nodes of the ranks; None means without a limit, or none
    # is known
    limit: Mapping | None = None

    @property
    def file_name(self) -> str:
        """The default file name of this format."""
        usual = self.files.partition(" ")[0]
        return f"ranks{usual}" if usual[:1] in ("", ".") else usual


#: Every format of ours by its name, the default one first.
FORMATS = {
    "slots": OrderFormat(
        text.SlotOfRank(), ".slots", "line r is the slot of rank r (the default)"
    ),
    "mpich": OrderFormat(
        text.RankAtSlot(), "MPICH_RANK_ORDER .mpich",
        "the rank at every slot, in the launcher's order of the nodes",
        by_launcher=True, limit=CRAY_MPICH,
    ),
    "slurm": OrderFormat(
        hosts.HOST_A_RANK, ".hosts .hostfile", "host file for SLURM_HOSTFILE",
        nodes_alone=True, limit=PMI2,
    ),
    "openmpi": OrderFormat(hosts.RANK_FILE, ".rankfile", "rank file of Open MPI"),
    "seq": OrderFormat(
        hosts.HOST_A_RANK, ".seq", "host file for Open MPI's sequential mapper", nodes_alone=True
    ),
    "hydra": OrderFormat(
        hosts.HOST_COUNT, ".hydra", "host file for Hydra's mpiexec -f",
        nodes_alone=True, limit=HYDRA_FILE,
    ),
    "intel": OrderFormat(
        hosts.HOST_COUNT, ".machinefile", "machine file of Intel MPI", nodes_alone=True
    ),
    "torchrun": OrderFormat(
        hosts.TORCHRUN, ".torchrun", "node ranks for torchrun", nodes_alone=True
    ),
    "deepspeed": OrderFormat(
        hosts.DEEPSPEED, "", "host slots=N, one line per node", nodes_alone=True
    ),
    "json": OrderFormat(document, ".json", "slots, nodes and what they are for"),
}  # fmt: skip

#: Format implied by a file's name if there is no `--format`.
SUFFIXES = {suffix: name for name, kind in FORMATS.items() for suffix in kind.files.split()}

_formats: Registry[OrderFormat] = Registry(
    "format", "nidmap.order_formats", __name__, {}, FORMATS, "docs/reference/formats.md"
)
_formats.known.update(FORMATS)
names = _formats.names


def find(form: str) -> OrderFormat:
    """Return a format by name, or by its file suffix without the dot."""
    return _formats.find(form if form in names() else SUFFIXES.get(f".{form}", form))


def format_of(path: str | None, option: str = "") -> str:
    """Return the format implied by a file's name, ``slots`` if it implies none.

    `option`: the command's option that names the format, for the error.
    """
    return format_of_name(path, SUFFIXES, "slots", option)


def emit(order: Placement, form: str, launcher_order: str = "sorted") -> str:
    """Return an order as text.

    `form`: one of `FORMATS`, or another distribution's. `launcher_order`: the node order that
    ``mpich`` is for: ``sorted`` as native Slurm sorts every allocation, or ``given`` as the
    placement lists them.
    """
    kind = find(form)
    by_launcher = kind.by_launcher and launcher_order == "sorted"
    return kind.translation.write(order.sorted() if by_launcher else order)


def read_order(
    text: str, form: str, placement: Placement, source: str = "-", launcher_order: str = "sorted"
) -> Placement:
    """Return the order in a text; the format is never guessed.

    `placement`: the slots that it is for, nodes in the order that numbers them. `launcher_order`:
    the node order that the text was made for, see `emit`.
    """
    kind = find(form)
    if not kind.by_launcher or launcher_order != "sorted":
        return kind.translation.read(text, placement, source)
    positions = placement.sorting()
    order = kind.translation.read(text, placement.take(positions), source)
    return order.renumbered(inverse(positions))


def read_order_file(
    path: str,
    form: str | None,
    placement: Placement,
    launcher_order: str = "sorted",
    option: str = "",
) -> Placement:
    """Return the order in a file.

    `path`: ``-`` is standard input. `form`: its format (see `emit`); None: the one that its name
    states. `placement`: the slots that it is for. `launcher_order`: the node order that a file of
    ranks by slot was made for. `option`: the command's option that names the format.
    """
    chosen = form or format_named(path, option)
    find(chosen)
    text = decode(read_bytes(path, "the order's -"), path)
    return read_order(text, chosen, placement, path, launcher_order)


def format_named(path: str, option: str = "") -> str:
    """Return the format implied by a file's name; raise if it implies none.

    `option`: the command's option that names the format, for the error.
    """
    suffix = suffix_of(path)
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    raise UsageError(
        f"the name {path} does not say in which format the order is",
        f"name it FILE.slots or FILE.mpich{f', or give {option}' if option else ''}",
    )
