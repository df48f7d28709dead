# SPDX-License-Identifier: Apache-2.0
"""What the layouts of all fabrics share: their result, checks of figures, node names."""

import numpy as np

from nidmap.placement.sites.shared import expand_ranges, line_of, node_names


def test_expand_ranges():
    assert expand_ranges("slots", ["7", "0-3"], 8) == [7, 0, 1, 2, 3]


def test_node_names():
    assert node_names("node_name", "nid{nid:05}", {"nid": np.array([7, 6183])}).tolist() == [
        "nid00007",
        "nid06183",
    ]


def test_line_of():
    text = "name = 'x'\n[[partition]]\nname = 'GPU'\nnics = 4\n[nodes.compute]\nvalue = 1"
    assert line_of(text, "partition.GPU.nics") == 4
    assert line_of(text, "partition.0.nics") == 4
    assert line_of(text, "nodes.compute.mark") == 5
    assert line_of(text, "bandwidth.blue") == 0
