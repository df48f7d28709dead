# SPDX-License-Identifier: Apache-2.0
"""Write ``sinfo``: a node a line, with a header, bars between the columns."""

from __future__ import annotations

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Machine
from tests.writers import nodes


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
        that is not a word.

    Examples
    --------
    >>> from nidmap.placement.specs import parse_spec
    >>> print(write(parse_spec("tree:2x1")), end="")
    NODELIST|STATE|AVAIL_FEATURES
    nid00000|up|(null)
    nid00001|up|(null)
    """
    nodes.refuse_roles(machine, "sinfo")
    promised = machine.planned & (machine.state != "planned")
    states = zip(nodes.words(machine.state, "sinfo"), promised.tolist(), strict=True)
    columns: dict[str, list[object]] = {
        "NODELIST": machine.names.tolist(),
        "STATE": [f"{word}-" if planned else word for word, planned in states],
    }
    if machine.memory_mb.any():
        columns["MEMORY"] = machine.memory_mb.tolist()
    if machine.cores.any() or machine.sockets.any():
        sockets = np.maximum(machine.sockets, 1)
        sockets = np.where(machine.cores % sockets == 0, sockets, 1)  # one, where they do not fit
        columns["SOCKETS"] = np.where(machine.cores > 0, sockets, machine.sockets).tolist()
        columns["CORES"] = (machine.cores // sockets).tolist()
    if machine.weight is not None:
        columns["WEIGHT"] = machine.weight.tolist()
    if machine.gpus.any():
        columns["GRES"] = [f"gpu:{g}" if g else "(null)" for g in machine.gpus.tolist()]
    columns["AVAIL_FEATURES"] = [_feature(f) for f in machine.features.tolist()]
    form = "|".join(["%s"] * len(columns))
    return nodes.print_columns(form, columns.values(), "|".join(columns))


def _feature(text: str) -> str:
    if "|" in text or not text.isprintable() or text != text.strip():
        raise UsageError("sinfo separates columns by bars: a feature has one")
    return text or "(null)"
