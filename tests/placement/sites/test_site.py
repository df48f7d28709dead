# SPDX-License-Identifier: Apache-2.0
"""A site: its configuration, and the topology, nodes and hardware derived from it."""

from nidmap.placement.sites import load_site
from nidmap.placement.sites.schema import Figure, SendingFigures
from nidmap.placement.sites.site import sending_parameters


def test_site():
    site = load_site("shaheen2")
    assert site.name == "shaheen2"
    assert site.scheduler == "slurm"
    assert site.topology().extents == (18, 6, 16, 4)
    compute = dict(site.figures())["nodes.compute"]
    assert compute.value == 6174
    assert compute.mark == "published"


def test_sending_parameters():
    assert sending_parameters(SendingFigures(process=Figure(2.0, "published", "a paper"))) == {
        "process": 2.0,
        "process_mark": "published",
    }
