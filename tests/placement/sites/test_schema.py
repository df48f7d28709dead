# SPDX-License-Identifier: Apache-2.0
"""The schema of a site configuration: one Struct per table of the TOML file."""

from nidmap.placement.sites.schema import Figure


def test_figure():
    assert Figure(18, "published", "Aseeri et al., sec. III-A").value == 18
