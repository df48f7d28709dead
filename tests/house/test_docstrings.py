# SPDX-License-Identifier: Apache-2.0
"""What a user imports is documented in full, all else in a line or two without sections."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import nidmap

ROOT = Path(__file__).parents[2]
ROOMS = ("placement", "rankmap", "workloads", "web")
SECTION = re.compile(r"^ *(Parameters|Returns|Yields|Raises|Attributes|Examples)\n *---", re.M)


def named_on_page():
    """Yield what docs/reference/api.md documents."""
    page = (ROOT / "docs/reference/api.md").read_text()
    for kind, name in re.findall(r"auto(function|class|module):: (\S+)", page):
        if kind != "module":
            module, _, attribute = name.rpartition(".")
            yield getattr(importlib.import_module(module), attribute)
        elif name != "nidmap":
            found = vars(importlib.import_module(name)).values()
            yield from (
                thing
                for thing in found
                if getattr(thing, "__module__", "") == name and hasattr(thing, "__qualname__")
            )


def named_for_plugins():
    """Yield what the examples of CONTRIBUTING.md import: readers, planners, orders, launchers."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("nidmap"):
                module = importlib.import_module(node.module)
                yield from (getattr(module, alias.name) for alias in node.names)


def exported():
    """Yield what `nidmap` itself offers."""
    yield from (getattr(nidmap, name) for name in nidmap.__all__ if name != "main")


def documented_places():
    """Return (module, name) of all that may have sections."""
    things = [*named_on_page(), *named_for_plugins(), *exported()]
    return {(thing.__module__, thing.__qualname__) for thing in things if callable(thing)}


def docstrings(tree, prefix=""):
    """Yield (name, docstring) of a module's functions, classes and methods."""
    for node in ast.iter_child_nodes(tree):
        name = prefix
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = f"{prefix}.{node.name}".strip(".")
            yield name, ast.get_docstring(node) or ""
        yield from docstrings(node, name)


@pytest.mark.parametrize("room", ROOMS)
def test_only_what_users_import_has_sections(room):
    allowed = documented_places()
    wrong = []
    for path in sorted((ROOT / room).rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        module = "nidmap." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name, text in docstrings(ast.parse(path.read_text())):
            owner = name.partition(".")[0]
            known = (module, name) in allowed or (module, owner) in allowed
            if SECTION.search(text) and not known:
                wrong.append(f"{file}: {name}")
    assert not wrong, "say it in a line, and units in a comment at the field"


def of_users(kind):
    """Return what users import, of a kind, each once."""
    things = {thing.__qualname__: thing for thing in [*named_on_page(), *exported()]}
    return [things[name] for name in sorted(things) if kind(things[name])]


@pytest.mark.parametrize("thing", of_users(inspect.isfunction), ids=lambda f: f.__name__)
def test_functions_that_users_import_are_documented_in_full(thing):
    sections = set(SECTION.findall(thing.__doc__))
    assert {"Examples"} <= sections
    if thing.__module__ != "nidmap.placement.errors":
        assert {"Parameters", "Returns"} <= sections


@pytest.mark.parametrize("thing", of_users(inspect.isclass), ids=lambda c: c.__name__)
def test_classes_that_users_import_name_their_fields(thing):
    fields = getattr(thing, "__annotations__", {})
    if any(not name.startswith("_") for name in fields):
        assert "Attributes" in SECTION.findall(thing.__doc__)
