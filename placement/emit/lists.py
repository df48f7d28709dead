"""Plain lists: the forms that need no scheduler."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING

from placement.errors import UsageError
from placement.lists.folding import nid_ranges

if TYPE_CHECKING:
    from placement.emit.job import Emission

__all__ = ["cnames", "hostfile", "json", "lines", "nids", "nodelist"]


def nodelist(plan: Emission) -> str:
    """Return Slurm's folded list, order kept: ``nid[00045,00012]``."""
    return plan.nodes.fold() + "\n"


def lines(plan: Emission) -> str:
    """Return one node name a line."""
    return "".join(f"{name}\n" for name in plan.nodes)


def nids(plan: Emission) -> str:
    """Return NIDs as ``aprun -L`` takes them: ``45,12-14``, order kept."""
    return nid_ranges(plan.nids) + "\n"


def cnames(plan: Emission) -> str:
    """Return one cname or xname a line."""
    if not all(plan.cnames):
        raise UsageError("this machine's nodes have no cnames", "use --format nodelist or lines")
    return "".join(f"{name}\n" for name in plan.cnames)


def hostfile(plan: Emission) -> str:
    """Return each node once a rank (once where no ``--ppn`` was given)."""
    return "".join(f"{name}\n" * (plan.job.ppn or 1) for name in plan.nodes)


def json(plan: Emission) -> str:
    """Return the JSON document of the plan."""
    return dumps(plan.document, indent=2) + "\n"
