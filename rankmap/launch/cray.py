"""What Cray MPICH wants for an order of ranks, whoever launches it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import LaunchError, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankmap.order import Order

__all__ = ["even_ranks", "refuse_own_order", "reordering"]


def reordering(path: str) -> dict[str, str]:
    """Return the variables that make Cray MPICH read its order from `path`.

    The file is named, so a MPICH_RANK_ORDER of the user's own in the working
    directory is neither read nor touched.
    """
    return {"MPICH_RANK_REORDER_METHOD": "3", "MPICH_RANK_REORDER_FILE": path}


def refuse_own_order(env: Mapping[str, str]) -> None:
    """Refuse to override an order that the user chose; method 1 is the default one.

    Raises
    ------
    LaunchError
        Where MPICH_RANK_REORDER_METHOD or MPICH_RANK_REORDER_FILE is set.
    """
    method = env.get("MPICH_RANK_REORDER_METHOD", "1").strip()
    if method not in ("", "1"):
        raise LaunchError(f"MPICH_RANK_REORDER_METHOD={printable(method, 20)} is set already")
    if env.get("MPICH_RANK_REORDER_FILE"):
        raise LaunchError("MPICH_RANK_REORDER_FILE is set already")


def even_ranks(order: Order) -> int:
    """Return the ranks on each node but the last, which may have fewer: what ``-N`` can say.

    Raises
    ------
    LaunchError
        Where nodes have other numbers of ranks.
    """
    counts = order.on.counts
    per_node = int(counts[0])
    if (counts[:-1] != per_node).any() or counts[-1] > per_node:
        raise LaunchError(f"one number of ranks a node does not give {order.on.words()}")
    return per_node
