# SPDX-License-Identifier: Apache-2.0
"""What may be asked of the API: one Struct a request, every text and number limited."""

from nidmap.web import replies
from nidmap.web.requests import Path, _whole_numbers, document


def test_whole_numbers():
    assert _whole_numbers({"ppn": 4.0, "marks": [{"hue": 1.0}], "bytes": 0.5}) == {
        "ppn": 4,
        "marks": [{"hue": 1}],
        "bytes": 0.5,
    }


def test_document():
    found = document([Path("GET", "/api/v1/jobs", None, None, "The jobs.", replies.Jobs)])
    assert found["openapi"] == "3.1.0"
    assert found["paths"]["/api/v1/jobs"]["get"]["operationId"] == "jobs"
    assert found["components"]["schemas"]["Reply.ListedJob"]["required"] == [
        "id",
        "count",
        "name",
        "partition",
        "ppn",
        "nodelist",
    ]
