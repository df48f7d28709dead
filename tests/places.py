# SPDX-License-Identifier: Apache-2.0
"""Where the nodes of a Cray sit, by trying every place: the opposite of a numbering rule."""

import numpy as np

from nidmap.placement.lookup import find_rows


def places_of(rule, nids):
    """Return the places of NIDs, int (n, 5); a row of -1 for a NID that no place has."""
    columns, rows, *inside = rule.limits
    if rows > 1000:  # an XC has as many rows as there are nodes for
        rows = int(np.max(nids, initial=0)) // (columns * int(np.prod(inside))) + 1
    shape = (columns, rows, *inside)
    places = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
    at = find_rows(rule.nid(places), np.asarray(nids, dtype=np.int64))
    return np.where(at[:, None] < 0, -1, places[at])
