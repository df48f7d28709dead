# SPDX-License-Identifier: Apache-2.0
"""A machine as compact columns for the page: what never changes while a server runs."""

import numpy as np

from nidmap.web.columns import code_column, folded_rows


def test_code_column():
    assert code_column(np.array(["up", "down", "up"])) == {
        "values": ["down", "up"],
        "codes": [1, 0, 1],
    }


def test_folded_rows():
    assert folded_rows([3, 4, 5, 9, 1]) == "3-5,9,1"
