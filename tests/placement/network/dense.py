# SPDX-License-Identifier: Apache-2.0
"""A demand as a table of all pairs of routers."""

import numpy as np


def dense(demand):
    """Return the bytes from each router to each other one."""
    table = np.zeros((demand.routers, demand.routers))
    for source, target, amount in demand.blocks():
        table[source, target] = amount
    return table
