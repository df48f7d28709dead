"""YAML as a tree of plain text with line numbers, safe on foreign input.

Nothing is constructed from tags and nothing is resolved: a value is the text
that stands there. The tree is built from the parser's events without
recursion; aliases are refused (Slurm's own reader refuses them too), so that
no few lines can stand for gigabytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from placement.errors import ParseError, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Mapping", "Node", "Scalar", "Sequence", "parse_yaml"]

#: topology.yaml nests nine levels deep at most.
MAX_DEPTH = 32
#: Keys and values that are read at most: seven for each switch that Slurm can count.
MAX_ITEMS = 460_000


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value: the text that stands there, quotes taken off."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """A YAML list."""

    line: int
    items: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Mapping:
    """A YAML dictionary whose keys are text."""

    line: int
    items: dict[str, Node] = field(default_factory=dict)


Node = Scalar | Sequence | Mapping


class _Builder:
    """Builds the tree from the parser's events, one open collection a level."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.root: Node | None = None
        self.open: list[Sequence | Mapping] = []
        self.key: list[Scalar | None] = []

    def scalar(self, event: Any) -> None:
        """Take a scalar: a key where a mapping waits for one, else a value."""
        scalar = Scalar(event.start_mark.line + 1, event.value)
        if self.open and isinstance(self.open[-1], Mapping) and self.key[-1] is None:
            self.key[-1] = scalar
        else:
            self.add(scalar)

    def begin(self, node: Sequence | Mapping) -> None:
        """Open a collection."""
        if len(self.open) == MAX_DEPTH:
            raise ParseError(self.source, node.line, f"nested deeper than {MAX_DEPTH} levels")
        self.add(node)
        self.open.append(node)
        self.key.append(None)

    def end(self) -> None:
        """Close the innermost collection."""
        self.open.pop()
        self.key.pop()

    def add(self, node: Node) -> None:
        """Put a node where it stands."""
        if not self.open:
            if self.root is not None:
                raise ParseError(self.source, node.line, "a second YAML document", "one is enough")
            self.root = node
            return
        parent, key = self.open[-1], self.key[-1]
        if isinstance(parent, Sequence):
            parent.items.append(node)
            return
        if key is None:
            raise ParseError(self.source, node.line, "a key must be a plain word")
        if key.text in parent.items:
            text = f"key {printable(key.text)!r} stands twice in one place"
            raise ParseError(self.source, key.line, text)
        parent.items[key.text] = node
        self.key[-1] = None


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
    builder = _Builder(source)
    for count, event in enumerate(_events(text, source)):
        if count > MAX_ITEMS:
            line = event.start_mark.line + 1
            raise ParseError(source, line, f"more than {MAX_ITEMS:,} keys and values")
        _take(builder, event)
    if builder.root is None:
        raise ParseError(source, 0, "an empty YAML document")
    return builder.root


def _take(builder: _Builder, event: Any) -> None:
    name = type(event).__name__
    line = event.start_mark.line + 1
    if name == "ScalarEvent":
        builder.scalar(event)
    elif name == "SequenceStartEvent":
        builder.begin(Sequence(line))
    elif name == "MappingStartEvent":
        builder.begin(Mapping(line))
    elif name in ("SequenceEndEvent", "MappingEndEvent"):
        builder.end()
    elif name == "AliasEvent":
        text = f"alias *{printable(str(event.anchor))} is not supported"
        raise ParseError(builder.source, line, text, "write the value out, as Slurm wants it too")


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
