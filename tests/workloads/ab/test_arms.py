# SPDX-License-Identifier: Apache-2.0
"""What is compared, and in which turns: the command as it is, and with its ranks in order."""

from nidmap.workloads.ab.arms import Turn, list_launches, read_arm


def test_read_arm():
    assert read_arm("hilbert=hilbert.slots") == ("hilbert", "hilbert.slots")


def test_turn_output_files():
    assert Turn(3, 1, False, True).output_files("out", "default again") == [
        "out/block-003-default-again.out",
        "out/block-003-default-again.err",
    ]


def test_turns_of():
    assert [turn.arm for turn in list_launches(2, 2, 1, 1)] == [1, 0, 1, 0, 0, 1]
