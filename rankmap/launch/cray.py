"""What Cray MPICH wants for an order of ranks, whoever launches it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import LaunchError, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["refuse_own_order", "reordering", "seems_cray"]


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


def seems_cray(env: Mapping[str, str]) -> bool:
    """Tell whether Cray MPICH's module is loaded."""
    return bool(env.get("CRAY_MPICH_VERSION") or env.get("CRAY_MPICH_DIR"))
