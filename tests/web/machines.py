# SPDX-License-Identifier: Apache-2.0
"""Machines for the tests of the page."""

from dataclasses import replace

import numpy as np


def without(machine, kept):
    """Return a machine with the kept rows only."""
    columns = {
        name: getattr(machine, name)[kept]
        for name in (
            "nid", "names", "cname", "coords", "role", "state", "mode", "sockets", "cores",
            "memory_mb", "nics", "gpus", "features", "planned", "router",
        )
    }  # fmt: skip
    return replace(machine, _cache={}, **columns)


def in_states(machine, **rows):
    """Return a machine with these rows in these states."""
    state = machine.state.astype("U16")
    for word, which in rows.items():
        state[np.asarray(which)] = word
    return replace(machine, state=state, _cache={})
