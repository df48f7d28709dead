# SPDX-License-Identifier: Apache-2.0
"""``nidmap slurm``: one line in the job script instead of planning by hand."""

from nidmap.placement.commands.slurm import _comment_words


def test_comment_words():
    assert _comment_words("nidmap:pattern=stencil:8x8,periodic;bytes=64KiB") == {
        "pattern": "stencil:8x8,periodic",
        "bytes": "64KiB",
    }
