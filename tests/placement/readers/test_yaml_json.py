# SPDX-License-Identifier: Apache-2.0
"""JSON and YAML from untrusted files: bounded, and with errors at their line."""

import pytest

from nidmap.placement.errors import ParseError
from nidmap.placement.readers.yaml_json import line_of, load_json, load_json_values, parse_yaml


def test_load_json():
    with pytest.raises(ParseError, match=r"x\.json:1: not JSON: Expecting value; is it complete\?"):
        load_json('{"a": [1,]}', "x.json")


def test_load_json_values():
    assert load_json_values('{"a": 1} {"b": 2}', "x.json") == [{"a": 1}, {"b": 2}]


def test_line_of():
    assert line_of(parse_yaml("\na: [b]", "x.yaml")["a"]) == 2
    assert line_of(["b"]) == 0


def test_parse_yaml():
    assert parse_yaml("- topology: a\n", "topology.yaml") == [{"@line": 1, "topology": "a"}]
