# SPDX-License-Identifier: Apache-2.0
"""What all commands share: options, and their shell completion."""

from nidmap.placement.commands.common import ByteCount


def test_byte_count():
    assert ByteCount().convert("1.5KiB", None, None) == 1536.0
    assert ByteCount(whole=True).convert("64kB", None, None) == 64000
