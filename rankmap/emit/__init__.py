"""Order files: formats that write a `Placement` and read it back.

A format is a module, or what a module registers with `register`: it has
``write(placement) -> str`` and ``read(text, placement, source) -> Placement``; both only
translate. Formats that list ranks in slot order are made for one numbering of the nodes, the
launcher's: such a module says ``NODE_ORDER = "launcher"`` and gets the order already renumbered.
Other distributions add modules under the entry point group ``nidmap.order_formats``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from placement.errors import UsageError, printable
from placement.support.registry import Registry
from placement.support.suffixes import format_of_name
from rankmap.permutation import inverse

if TYPE_CHECKING:
    from rankmap.placement import Placement

__all__ = [
    "LAUNCHER_ORDERS",
    "SUFFIXES",
    "emit",
    "find",
    "format_of",
    "names",
    "read_order",
    "register",
]

#: Where each bundled format lives: imported only when it is asked for.
BUNDLED = {
    "deepspeed": "hosts",
    "hydra": "hosts",
    "intel": "hosts",
    "json": "document",
    "mpich": "mpich",
    "openmpi": "openmpi",
    "seq": "slurm",
    "slots": "slots",
    "slurm": "slurm",
    "torchrun": "hosts",
}

#: How a launcher takes the nodes of a job: as native Slurm sorts them, or as given.
LAUNCHER_ORDERS = ("sorted", "given")

#: What a file's name says of its format, where `--format` says nothing.
SUFFIXES = {
    "MPICH_RANK_ORDER": "mpich",
    ".json": "json",
    ".slots": "slots",
    ".mpich": "mpich",
    ".hydra": "hydra",
    ".hosts": "slurm",
    ".hostfile": "slurm",
    ".rankfile": "openmpi",
    ".seq": "seq",
    ".machinefile": "intel",
    ".torchrun": "torchrun",
}


class Format(Protocol):
    """How orders are written in one format, and read from it."""

    def write(self, order: Placement) -> str:
        """Return the order as text."""

    def read(self, text: str, placement: Placement, source: str) -> Placement:
        """Return the order that a text holds for these slots."""


_formats: Registry[Format] = Registry("format", "nidmap.order_formats", __name__, BUNDLED)
register, names, find = _formats.register, _formats.names, _formats.find


def format_of(path: str | None) -> str:
    """Return the format that a file's name asks for, ``slots`` where it says nothing.

    Raises
    ------
    UsageError
        A suffix of no format.

    Examples
    --------
    >>> format_of("run7/MPICH_RANK_ORDER"), format_of("a.json"), format_of(None)
    ('mpich', 'json', 'slots')
    """
    return format_of_name(path, SUFFIXES, "slots")


def emit(order: Placement, form: str, launcher_order: str = "sorted") -> str:
    """Return an order as text.

    Parameters
    ----------
    order : Placement
    form : str
        ``slots`` (line r: the slot of rank r), ``mpich`` (MPICH_RANK_ORDER:
        entry s is the rank at slot s of the launcher's own node order),
        ``slurm`` (host file for SLURM_HOSTFILE), ``openmpi`` (rankfile),
        ``seq`` (Open MPI's sequential file), ``hydra`` (MPICH's host file),
        ``intel`` (Intel MPI's machine file), ``torchrun`` (node ranks),
        ``deepspeed`` (a line ``host slots=N`` a node) or ``json``.
    launcher_order : str
        The node order that ``mpich`` is for: ``sorted`` as native Slurm
        sorts every allocation, or ``given`` as the placement lists them.

    Raises
    ------
    UsageError
        Unknown format or launcher order.
    """
    module = find(form)
    return module.write(order.sorted() if _is_sorted(module, launcher_order) else order)


def read_order(
    text: str, form: str, placement: Placement, source: str = "-", launcher_order: str = "sorted"
) -> Placement:
    """Return the order that a text holds; the format is never guessed.

    Parameters
    ----------
    text : str
    form : str
        See `emit`.
    placement : Placement
        The slots that it is for, nodes in the order that numbers them.
    source : str
        File name for messages.
    launcher_order : str
        The node order that the text was made for, see `emit`.

    Raises
    ------
    ParseError
        What stands there is not this format.
    BrokenOrderError
        It is, but no permutation of these slots: a rank twice, missing or
        outside (`rankmap.emit.text.BrokenOrderError`).
    """
    module = find(form)
    if not _is_sorted(module, launcher_order):
        return module.read(text, placement, source)
    positions = placement.sorting()
    return module.read(text, placement.take(positions), source).renumbered(inverse(positions))


def _is_sorted(module: Format, launcher_order: str) -> bool:
    """Return True where a format numbers the nodes as the launcher does, and that sorts them."""
    if launcher_order not in LAUNCHER_ORDERS:
        raise UsageError(
            f"no launcher order '{printable(launcher_order)}'", "there are sorted and given"
        )
    return launcher_order == "sorted" and getattr(module, "NODE_ORDER", "given") == "launcher"
