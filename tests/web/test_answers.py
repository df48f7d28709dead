# SPDX-License-Identifier: Apache-2.0
"""What is sent: documents that lie ready, and errors as ``application/problem+json`` (RFC 9457)."""

from nidmap.web.answers import json_document, takes_gzip


def test_document_answer():
    found = json_document({"a": 1}, "a-1")
    assert found.answer("", "").raw == b'{"a":1}'
    assert found.answer("gzip", 'W/"a-1"').status == 304


def test_takes_gzip():
    assert [takes_gzip(text) for text in ("", "gzip, br", "gzip;q=0", "*", "identity")] == [
        False,
        True,
        False,
        True,
        False,
    ]
