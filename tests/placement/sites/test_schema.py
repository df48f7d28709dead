# SPDX-License-Identifier: Apache-2.0
"""What a site configuration may say: one Struct a table of the TOML file."""

from nidmap.placement.sites.schema import Figure


def test_figure():
    assert Figure(18, "published", "Aseeri et al., sec. III-A").value == 18
