# SPDX-License-Identifier: Apache-2.0
"""Order files: formats that write a `Placement` and read it back."""

from nidmap.rankmap.emit import FORMATS, find, format_named


def test_order_format_file_name():
    assert FORMATS["mpich"].file_name == "MPICH_RANK_ORDER"
    assert FORMATS["slurm"].file_name == "ranks.hosts"


def test_find():
    assert find("hosts") is find("slurm")


def test_format_named():
    assert format_named("plan/MPICH_RANK_ORDER") == "mpich"
