"""Write ``sinfo``: a node a line, with a header, bars between the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import UsageError
from placement.writers import nodes

if TYPE_CHECKING:
    from placement.machine import Machine

__all__ = ["write"]


def write(machine: Machine) -> str:
    """Return the machine's nodes as ``sinfo -N`` prints them with bars and a header.

    Parameters
    ----------
    machine : Machine
        Columns for what is in a node appear where some node has it.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        Where there are service nodes, which Slurm does not list, or a state
        that is no word.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> print(write(parse_spec("tree:2x1")), end="")
    NODELIST|STATE|AVAIL_FEATURES
    nid00000|up|(null)
    nid00001|up|(null)
    """
    nodes.refuse_roles(machine, "sinfo")
    columns = {"NODELIST": machine.names.tolist(), "STATE": _states(machine)}
    if machine.memory_mb.any():
        columns["MEMORY"] = _numbers(machine.memory_mb)
    if machine.cores.any() or machine.sockets.any():
        sockets, cores = _cores(machine)
        columns |= {"SOCKETS": sockets, "CORES": cores}
    if machine.weight is not None:
        columns["WEIGHT"] = _numbers(machine.weight)
    if machine.gpus.any():
        columns["GRES"] = [f"gpu:{g}" if g else "(null)" for g in machine.gpus.tolist()]
    columns["AVAIL_FEATURES"] = [_feature(f) for f in machine.features.tolist()]
    rows = zip(*columns.values(), strict=True)
    return "\n".join(("|".join(columns), *map("|".join, rows), ""))


def _states(machine: Machine) -> list[str]:
    """Return the states, with the sign of a node that backfill has promised."""
    words = nodes.words(machine.state, "sinfo")
    promised = machine.planned & (machine.state != "planned")
    return [f"{w}-" if p else w for w, p in zip(words, promised.tolist(), strict=True)]


def _numbers(column: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[str]:
    return [str(value) for value in column.tolist()]


def _cores(machine: Machine) -> tuple[list[str], list[str]]:
    """Return sockets and cores a socket; one socket where the cores do not divide by them."""
    sockets = np.maximum(machine.sockets, 1)
    sockets = np.where(machine.cores % sockets == 0, sockets, 1)
    each = machine.cores // sockets
    return _numbers(np.where(machine.cores > 0, sockets, machine.sockets)), _numbers(each)


def _feature(text: str) -> str:
    if "|" in text or not text.isprintable() or text != text.strip():
        raise UsageError("sinfo separates columns by bars: a feature has one")
    return text or "(null)"
