# SPDX-License-Identifier: Apache-2.0
"""Starting a mini-Cray and talking to it: a socket in the abstract namespace."""

from nidmap.workloads.minicray.client import socket_address


def test_socket_address():
    assert socket_address("one").rpartition("-")[2] == "one"
