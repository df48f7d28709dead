"""Plain lists: the forms that need no scheduler."""

from __future__ import annotations

from placement.emit import Emission, emitter
from placement.errors import UsageError

__all__ = ["cnames", "document", "hostfile", "lines", "nid_ranges", "nids", "nodelist"]


@emitter("nodelist")
def nodelist(plan: Emission) -> str:
    """Return Slurm's folded list, order kept: ``nid[00045,00012]``."""
    return plan.nodes.fold() + "\n"


@emitter("lines")
def lines(plan: Emission) -> str:
    """Return one node name a line."""
    return "".join(f"{name}\n" for name in plan.nodes)


@emitter("nids")
def nids(plan: Emission) -> str:
    """Return NIDs as ``aprun -L`` takes them: ``45,12-14``, order kept."""
    return nid_ranges(plan.nids) + "\n"


@emitter("cnames")
def cnames(plan: Emission) -> str:
    """Return one cname or xname a line."""
    if not all(plan.cnames):
        raise UsageError("this machine's nodes have no cnames", "use --format nodelist or lines")
    return "".join(f"{name}\n" for name in plan.cnames)


@emitter("hostfile")
def hostfile(plan: Emission) -> str:
    """Return each node once a rank (once where no ``--ppn`` was given)."""
    return "".join(f"{name}\n" * (plan.ppn or 1) for name in plan.nodes)


@emitter("json")
def document(plan: Emission) -> str:
    """Return the JSON document of the plan."""
    import json

    return json.dumps(plan.document, indent=2) + "\n"


def nid_ranges(values: tuple[int, ...]) -> str:
    """Fold ascending runs of NIDs, keeping the order.

    Examples
    --------
    >>> nid_ranges((45, 12, 13, 14, 13))
    '45,12-14,13'
    """
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
