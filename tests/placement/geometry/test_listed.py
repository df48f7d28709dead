# SPDX-License-Identifier: Apache-2.0
"""Crays' link lists: routers and link bundles as ``rtr --interconnect`` prints them."""

import numpy as np

from nidmap.placement.geometry.listed import blades, with_nodes
from nidmap.placement.readers import read_text


def test_blades():
    assert blades(np.array(["c1-0c2s3a0", "c1-0c2s3g1"])).tolist() == [
        [1, 0, 2, 3, 0],
        [1, 0, 2, 3, 2],
    ]


def test_with_nodes():
    ends = ["c0-0c0s0a0l00(0:0:0)", "c0-0c0s1a0l00(0:0:1)"]
    text = "".join(f"{a} green -> {b}\n" for a, b in (ends, ends[::-1]))
    assert with_nodes(read_text(text)).nodes.nid.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
