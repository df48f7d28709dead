# SPDX-License-Identifier: Apache-2.0
"""JSON and YAML from untrusted files: bounded, and with errors at their line.

Of YAML nothing is constructed from tags and nothing is resolved: a value is the text
that stands there. Texts, lists and dictionaries are Python's, each with its line; a
dictionary has it under a key too (`LINE`), for the Struct that is made of it. The tree
is built from the parser's events without recursion; aliases are refused (Slurm's own
reader refuses them too), so that no few lines can stand for gigabytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from nidmap.placement.errors import ParseError

#: Values in a file of JSON at most; a machine of 10,000 nodes has some 300,000.
MAX_JSON = 1_500_000
#: Keys and values of YAML that are read at most: seven for each switch that Slurm can count.
MAX_YAML = 460_000
#: topology.yaml nests nine levels deep at most.
MAX_DEPTH = 32
_NOT_BLANK = re.compile(r"\s*")
#: The key of a YAML dictionary under which its line is.
LINE = "@line"


def load_json(text: str, source: str) -> Any:
    """Parse JSON, refusing input that would exhaust memory or the stack."""
    return _decode_json(text, source, json.loads)


def load_json_values(text: str, source: str) -> list[Any]:
    """Parse one or more consecutive JSON values, as `load_json` does."""
    values: list[Any] = _decode_json(text, source, _decode_values)
    return values


def _decode_values(text: str, object_pairs_hook: Any) -> list[Any]:
    decoder = json.JSONDecoder(object_pairs_hook=object_pairs_hook)
    values: list[Any] = []
    at = len(text) - len(text.lstrip())
    while at < len(text) or not values:
        value, end = decoder.raw_decode(text, at)
        values.append(value)
        at = _NOT_BLANK.search(text, end).end()  # type: ignore[union-attr]  # it always matches
    return values


def _decode_json(text: str, source: str, decode: Callable[..., Any]) -> Any:
    """Return a decoder's result for a text, converting its errors to ours."""
    if text.count(",") + text.count("{") + text.count("[") > MAX_JSON:
        raise ParseError(source, 0, f"more than {MAX_JSON:,} values", "no machine has that many")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        node = dict(pairs)
        for key, value in pairs if len(node) < len(pairs) else ():
            if node[key] != value:
                line = _second_line(text, key)
                raise ParseError(source, line, f"key {key!r} is listed twice in one object")
        return node

    try:
        return decode(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise ParseError(
            source, error.lineno, f"not JSON: {error.msg}", "is it complete?"
        ) from None
    except RecursionError:
        raise ParseError(source, 0, "nested too deeply for a dump of a machine") from None
    except ValueError:  # Python refuses to convert thousands of digits
        raise ParseError(source, 0, "a number with thousands of digits") from None


def _second_line(text: str, key: str) -> int:
    """Return the line of a key's second occurrence; 0 if it occurs more often."""
    places = [match.start() for match in re.finditer(re.escape(json.dumps(key)) + r"\s*:", text)]
    return text.count("\n", 0, places[1]) + 1 if len(places) == 2 else 0


class _Text(str):
    """A scalar: the text without its quotes."""

    line: int


class _List(list[Any]):
    line: int


class _Dict(dict[str, Any]):
    line: int
    key: str | None = None  # read, its value is not


Node = _Text | _List | _Dict

_NODES = {"ScalarEvent": _Text, "SequenceStartEvent": _List, "MappingStartEvent": _Dict}


def line_of(value: object) -> int:
    """Return the line of a value; 0 in JSON."""
    return getattr(value, "line", 0)


def parse_yaml(text: str, source: str) -> Any:
    r"""Return the single document in `text`."""
    stream = _List()
    opened: list[_List | _Dict] = [stream]
    for count, event in enumerate(_parse_events(text, source)):
        line, name = event.start_mark.line + 1, type(event).__name__
        if count > MAX_YAML:
            raise ParseError(source, line, f"more than {MAX_YAML:,} keys and values")
        if name == "AliasEvent":
            what = f"alias *{event.anchor} is not supported"
            raise ParseError(source, line, what, "write the value out, as Slurm requires too")
        if name in ("SequenceEndEvent", "MappingEndEvent"):
            opened.pop()
        elif name in _NODES:
            node: Node = _NODES[name](getattr(event, "value", ()))
            node.line = line
            _add_node(node, opened[-1], source)
            if not isinstance(node, _Text):
                opened.append(node)
            if len(opened) > MAX_DEPTH + 1:
                raise ParseError(source, line, f"nested deeper than {MAX_DEPTH} levels")
    if not stream:
        raise ParseError(source, 0, "the YAML document is empty")
    if len(stream) > 1:
        raise ParseError(source, line_of(stream[1]), "a second YAML document", "only one is read")
    return stream[0]


def _add_node(node: Node, parent: _List | _Dict, source: str) -> None:
    """Add a node where it belongs: as an item, a key, or the preceding key's value."""
    if isinstance(node, _Dict):
        node[LINE] = node.line
    if isinstance(parent, _List):
        parent.append(node)
    elif parent.key is not None:
        parent[parent.key] = node
        parent.key = None
    elif not isinstance(node, _Text):
        raise ParseError(source, node.line, "a key must be a plain word")
    elif node in parent:
        what = f"key {node!r} is listed twice in one mapping"
        raise ParseError(source, node.line, what)
    else:
        parent.key = str(node)


def _parse_events(text: str, source: str) -> Iterator[Any]:
    """Yield the parser's events, converting its errors to ours."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "not YAML"
        raise ParseError(source, mark.line + 1 if mark else 0, problem) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        raise ParseError(source, line, "a character that YAML does not allow") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise ParseError(source, 0, str(error)) from None
