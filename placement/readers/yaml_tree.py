"""YAML as a tree of plain text with line numbers, safe on foreign input.

Nothing is constructed from tags and nothing is resolved: a value is the text
that stands there. The tree is built from the parser's events without
recursion; aliases are refused (Slurm's own reader refuses them too), so that
no few lines can stand for gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from placement.errors import ParseError, printable

__all__ = ["Mapping", "Node", "Scalar", "Sequence", "parse_documents", "parse_yaml"]

#: topology.yaml nests nine levels deep at most.
MAX_DEPTH = 32
#: Keys and values that are read at most: seven for each switch that Slurm can count.
MAX_ITEMS = 460_000


@dataclass(slots=True)
class Scalar:
    """A value: the text that stands there, quotes taken off."""

    line: int
    text: str = ""


@dataclass(slots=True)
class Sequence:
    """A YAML list."""

    line: int
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Mapping:
    """A YAML dictionary whose keys are text."""

    line: int
    items: dict[str, Node] = field(default_factory=dict)
    key: str | None = field(default=None, repr=False)  # read, its value is not


Node = Scalar | Sequence | Mapping

_KINDS = {"ScalarEvent": Scalar, "SequenceStartEvent": Sequence, "MappingStartEvent": Mapping}


def parse_yaml(text: str, source: str) -> Node:
    r"""Return the one document in `text`.

    Parameters
    ----------
    text : str
    source : str
        File name, for errors.

    Raises
    ------
    ParseError
        Where it is not YAML, empty, nested too deeply or uses aliases.

    Examples
    --------
    >>> parse_yaml("- topology: a\n", "topology.yaml").items[0].items["topology"]
    Scalar(line=1, text='a')
    """
    first, *more = parse_documents(text, source)
    if more:
        raise ParseError(source, more[0].line, "a second YAML document", "one is enough")
    return first


def parse_documents(text: str, source: str) -> list[Node]:
    r"""Return all documents in `text`; parameters and errors as of `parse_yaml`.

    Examples
    --------
    >>> [one.text for one in parse_documents("a\n---\nb\n", "two.yaml")]
    ['a', 'b']
    """
    stream = Sequence(0)
    opened: list[Sequence | Mapping] = [stream]
    for count, event in enumerate(_events(text, source)):
        line, name = event.start_mark.line + 1, type(event).__name__
        if count > MAX_ITEMS:
            raise ParseError(source, line, f"more than {MAX_ITEMS:,} keys and values")
        if name == "AliasEvent":
            what = f"alias *{printable(str(event.anchor))} is not supported"
            raise ParseError(source, line, what, "write the value out, as Slurm wants it too")
        if name in ("SequenceEndEvent", "MappingEndEvent"):
            opened.pop()
        elif name in _KINDS:
            node: Node = _KINDS[name](line)
            if isinstance(node, Scalar):
                node.text = event.value
            _add(node, opened[-1], source)
            if isinstance(node, (Sequence, Mapping)):
                opened.append(node)
            if len(opened) > MAX_DEPTH + 1:
                raise ParseError(source, line, f"nested deeper than {MAX_DEPTH} levels")
    if not stream.items:
        raise ParseError(source, 0, "an empty YAML document")
    return stream.items


def _add(node: Node, parent: Sequence | Mapping, source: str) -> None:
    """Put a node where it stands: as an item, a key, or the value of the key before it."""
    if isinstance(parent, Sequence):
        parent.items.append(node)
    elif parent.key is not None:
        parent.items[parent.key] = node
        parent.key = None
    elif not isinstance(node, Scalar):
        raise ParseError(source, node.line, "a key must be a plain word")
    elif node.text in parent.items:
        what = f"key {printable(node.text)!r} stands twice in one place"
        raise ParseError(source, node.line, what)
    else:
        parent.key = node.text


def _events(text: str, source: str) -> Iterator[Any]:
    """Yield the parser's events, its errors as ours."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "not YAML"
        raise ParseError(source, mark.line + 1 if mark else 0, printable(problem)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        raise ParseError(source, line, "a character that YAML does not allow") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise ParseError(source, 0, printable(str(error))) from None
