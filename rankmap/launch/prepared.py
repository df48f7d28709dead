"""What ``nidmap run`` is asked for, and what it has prepared to start."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankmap.order_store import Wish

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankmap.launch import Launch
    from rankmap.order import Order

__all__ = ["Prepared", "RunRequest", "rank_nodes"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the user asked ``nidmap run`` for.

    Attributes
    ----------
    pattern : str
        '' where none was given.
    strategy : str
    nodes, ppn : str or None
        As ``--nodes`` and ``--ppn`` take them; None: what the allocation and the command say.
    host_file : bool
        True where `nodes` is the text of a host file, in which a node may repeat.
    mpi : str
        ``cray-mpich``, ``other``, or ``auto``: by the machine's network, else by the
        modules loaded.
    launcher_order : str or None
        ``sorted`` or ``given``; None: not stated.
    folder : str or None
        Directory for the order file.
    dry : bool
        True where nothing will be started, nor asked.
    patience : float
        Seconds that a launcher may take to say where it puts ranks; 0: ten.
    machine_specs : tuple of str
        The machine as ``-m`` takes it: orders that are kept are found by it.
    job : mapping of str to anything
        What else is said of what the job sends (`rankmap.joint.job.KEYS`).
    seconds : float
        Of processor time that choosing an order may take.
    mapping_limit : str or None
        As ``--mapping-limit`` gives it; None: the library's own.
    order_file, order_format : str or None
        A file with the order, and its format where its name does not state it.
    """

    pattern: str = ""
    strategy: str = "row-major"
    nodes: str | None = None
    ppn: str | None = None
    host_file: bool = False
    mpi: str = "auto"
    launcher_order: str | None = None
    folder: str | None = None
    dry: bool = False
    patience: float = 0.0
    machine_specs: tuple[str, ...] = ()
    job: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = math.inf
    mapping_limit: str | None = None
    order_file: str | None = None
    order_format: str | None = None

    @property
    def wish(self) -> Wish:
        """The order that is wanted."""
        return Wish(self.pattern, self.strategy, self.job, self.seconds, self.machine_specs)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch in order.

    Attributes
    ----------
    launch : Launch
    order : Order
    path : str
        The order file, already written.
    probe : Launch
        The same launch of a program that prints where each rank is
        (`rankmap.launch.queries`).
    rank_nodes : tuple of str
        Node that each rank of `probe` must say: the plan, by the launcher's own numbers.
    remarks : tuple of str
        What the user should know of it.
    laid : Order
        The same order on the nodes as the launcher takes them.
    form : str
        Format of the order file.
    variables : tuple of str
        Variables that hold a rank's number, the first that is set.
    """

    launch: Launch
    order: Order
    path: str
    probe: Launch
    rank_nodes: tuple[str, ...]
    remarks: tuple[str, ...]
    laid: Order
    form: str
    variables: tuple[str, ...]


def rank_nodes(form: str, laid: Order) -> tuple[str, ...]:
    """Return the node of each rank as the launcher numbers them.

    Cray MPICH renumbers ranks itself: to the launcher, slot s is rank s.

    Parameters
    ----------
    form : str
        Format of the order file.
    laid : Order
        On the nodes as the launcher takes them.
    """
    from rankmap.emit import find

    if getattr(find(form), "NODE_ORDER", "given") == "launcher":
        return tuple(laid.on.names[laid.on.node].tolist())
    return tuple(laid.hosts.tolist())
