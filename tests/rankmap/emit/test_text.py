# SPDX-License-Identifier: Apache-2.0
"""The text of order files, and formats of plain numbers: ``slots`` and ``mpich``."""

from nidmap.rankmap.emit.text import read_permutation


def test_read_permutation():
    assert read_permutation("# a comment\n3,0\n1-2\n", 4, "-").tolist() == [3, 0, 1, 2]
