"""All that an emitter may use, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placement.emit.job import Job
    from placement.nodelist import NodeList

__all__ = ["Emission"]


@dataclass(frozen=True, slots=True)
class Emission:
    """A plan as an emitter gets it.

    Attributes
    ----------
    nodes : NodeList
        The chosen nodes in the planner's order.
    nids : tuple of int
        Their NIDs, in the same order.
    cnames : tuple of str
        Their cnames or xnames; empty strings where the machine has none.
    job : Job
        What the job asks its scheduler for.
    scheduler : str
        What the site runs: ``slurm``, ``pbs``, ``alps``; '' unknown.
    batch : str
        What takes job scripts there: the same, or ``torque`` or ``cobalt``
        before ALPS.
    remarks : tuple of str
        Lines for a header's comments.
    choosing : str
        Shell command that chooses among the nodes of the job that it runs in, up to
        its option ``--from``, for a job with slack.
    document : dict
        The JSON document.
    """

    nodes: NodeList
    nids: tuple[int, ...]
    cnames: tuple[str, ...]
    job: Job
    scheduler: str = ""
    batch: str = ""
    remarks: tuple[str, ...] = ()
    choosing: str = ""
    document: dict[str, Any] = field(default_factory=dict)
