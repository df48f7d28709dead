# SPDX-License-Identifier: Apache-2.0
"""The oldest Python that runs this is 3.10: its syntax and its standard library."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OLDEST = (3, 10)
SOURCES = sorted(
    path
    for top in (
        "nidmap/__init__.py",
        "placement",
        "rankmap",
        "workloads",
        "web",
        "benchmarks",
        "tests",
    )
    for path in [ROOT / top, *(ROOT / top).rglob("*.py")]
    if path.is_file()
)

#: ``a*+`` and ``(?>a)`` in a regular expression; `names/hostlist.py` knows what to do.
POSSESSIVE = re.compile(r"(?<!\\)(?:\)|\]|\w)[*+?}]\+(?![^\[]*\])|\(\?>")

#: What came with Python 3.11 and 3.12, by the module that has it.
NEWER = {
    "asyncio": {"Runner", "TaskGroup", "timeout"},
    "contextlib": {"chdir"},
    "datetime": {"UTC"},
    "enum": {"StrEnum", "ReprEnum", "verify"},
    "hashlib": {"file_digest"},
    "itertools": {"batched"},
    "math": {"cbrt", "exp2", "sumprod"},
    "operator": {"call"},
    "typing": {"LiteralString", "Never", "Self", "Unpack", "assert_never", "override"},
}


def module_of(node):
    """Return the module in ``module.name``, '' for any other expression."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id
    return ""


def newer(tree):
    """Yield what a file takes from the standard library that Python 3.10 lacks."""
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        and any(getattr(part, "attr", "") == "version_info" for part in ast.walk(node.test))
        for inner in ast.walk(node)
    }
    for node in (node for node in ast.walk(tree) if id(node) not in guarded):
        if isinstance(node, ast.Call) and module_of(node.func) == "re":
            said = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            yield from (text for text in said if POSSESSIVE.search(str(text)))
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name == "tomllib")
        elif isinstance(node, ast.ImportFrom) and node.module in NEWER:
            found = {alias.name for alias in node.names} & NEWER[node.module]
            yield from (f"{node.module}.{name}" for name in found)
        elif (module := module_of(node)) and node.attr in NEWER.get(module, ()):
            yield f"{module}.{node.attr}"


def suspect(text):
    """Tell whether a file's tree must be looked through: few have such words at all."""
    return (
        "tomllib" in text
        or any(module in text and any(map(text.__contains__, NEWER[module])) for module in NEWER)
        or ("re." in text and POSSESSIVE.search(text))
    )


def test_python_3_10_reads_everything():
    wrong = []
    for path in SOURCES:
        text = path.read_text()
        tree = ast.parse(text, feature_version=OLDEST)
        if suspect(text):
            wrong += [f"{path.relative_to(ROOT)}: {name}" for name in newer(tree)]
    assert wrong == []


def test_what_is_newer_is_seen():
    tree = ast.parse("import tomllib\nfrom datetime import UTC\nasyncio.timeout(3)\n")
    assert suspect("from math import cbrt")
    assert suspect(r"re.compile('a++')")
    assert not suspect("import math, re")
    assert list(newer(tree)) == ["tomllib", "datetime.UTC", "asyncio.timeout"]
    assert list(newer(ast.parse(r"re.compile(r'[a-z]*+b|[*+]')"))) == ["[a-z]*+b|[*+]"]
    assert list(newer(ast.parse(r"re.compile(r'[a-z]*b|[*+]|a\+')"))) == []
    with pytest.raises(SyntaxError):
        ast.parse("try:\n    f()\nexcept* ValueError:\n    pass\n", feature_version=OLDEST)
