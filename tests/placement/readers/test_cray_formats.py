# SPDX-License-Identifier: Apache-2.0
"""Cray formats: cnames from numbers, what is possible in them, and faults in bulk."""

import numpy as np

from nidmap.placement.readers.cray_formats import duplicates, infer_positions, list_faults, node_key


def test_node_key():
    assert node_key(np.array([[0, 0, 0, 0, 3], [0, 0, 0, 1, 0]])).tolist() == [3, 4]


def test_infer_positions():
    assert infer_positions(np.array([0, 3]), np.array([0, 2]), np.array([0, 9])) == 8


def test_list_faults():
    found = list_faults(np.arange(300), np.arange(1, 301), "hex", "row {}".format)
    assert len(found) == 101
    assert found[0].line == 1
    assert found[-1].text == "200 more of kind hex"


def test_duplicates():
    [fault] = duplicates(
        np.array([7, 8, 7]), np.array([2, 3, 4]), "duplicate-nid", lambda row: "NID 7"
    )
    assert fault.line == 4
    assert fault.text == "NID 7 again, first on line 2"
