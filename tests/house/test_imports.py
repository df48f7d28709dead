# SPDX-License-Identifier: Apache-2.0
"""Data goes left to right, imports go right to left: the rooms hold to it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("placement", "rankmap", "workloads", "web")

#: Inside a room: what a part must never import, by the seam it would break.
FORBIDDEN = {
    "placement/readers": (
        "nidmap.placement.machine",
        "nidmap.placement.planners",
        "nidmap.placement.emit",
        "subprocess",
    ),
    "placement/planners": (
        "nidmap.placement.readers",
        "nidmap.placement.slurm",
        "nidmap.placement.emit",
        "subprocess",
    ),
    "placement/emit.py": (
        "nidmap.placement.topologies",
        "nidmap.placement.machine",
        "nidmap.placement.planners",
    ),
    "rankmap/orders": (
        "subprocess",
        "nidmap.rankmap.emit",
        "nidmap.rankmap.launch",
        "nidmap.placement.readers",
    ),
    "rankmap/emit": ("nidmap.placement.topologies", "nidmap.placement.planners", "subprocess"),
}

#: Circles of imports that are left: none may join them, and those that end go from here.
CIRCLES = ()


def modules(folder):
    part = ROOT / folder
    return [part] if part.is_file() else sorted(part.rglob("*.py"))


def name_of(path):
    """Return the module that a file is: ``nidmap.placement.machine``."""
    parts = ("nidmap", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


#: A module of ours, or something in it, in a string.
DOTTED = re.compile(rf"\bnidmap\.(?:{'|'.join(ROOMS)})\.(?:\w+\.?)*")

KNOWN = {name_of(path) for room in ROOMS for path in modules(room)}


@cache
def parsed(path):
    return ast.parse(path.read_text())


@cache
def imported(tree):
    """Return every module name that a file imports at run time."""
    return tuple(imports_of(tree))


def imports_of(tree):
    """Yield every module name that a piece of a file imports at run time."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def named(tree):
    """Yield every module of ours that a string names: an import in disguise."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in docstrings:
                continue
            for found in DOTTED.findall(node.value):
                if found.endswith(".") or found in KNOWN or found.rpartition(".")[0] in KNOWN:
                    yield found


def under_main(tree):
    """Yield the names that a file imports where it is run as a program."""
    for node in tree.body:
        if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            yield from imports_of(node)


def room_of(name):
    """Return the room that a module of ours is in: ``nidmap.web.app`` is in ``web``."""
    return name.split(".")[1] if name.startswith("nidmap.") else ""


def is_outside(name):
    """Say whether no room may import a module: a bare room is a folder, not what is installed."""
    top = name.split(".")[0]
    front_door = top == "nidmap" and room_of(name) not in ROOMS
    return front_door or top in (*ROOMS, "benchmarks", "tests")


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_leftwards(room):
    later = ROOMS[ROOMS.index(room) + 1 :]
    wrong = []
    for path in modules(room):
        tree = parsed(path)
        here = path.relative_to(ROOT)
        wrong += [f"{here} imports {n}" for n in imported(tree) if room_of(n) in later]
        wrong += [f"{here} names {n}" for n in named(tree) if room_of(n) in later]
    assert wrong == []


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_are_entered_by_the_front_door_and_do_not_use_it(room):
    wrong = []
    for path in modules(room):
        tree = parsed(path)
        allowed = set(imported(tree)) if path.name == "__main__.py" else set(under_main(tree))
        wrong += [f"{path} imports {n}" for n in set(imported(tree)) - allowed if is_outside(n)]
    assert wrong == []


@pytest.mark.parametrize("part", FORBIDDEN)
def test_seams_inside_a_room(part):
    files = modules(part)
    assert files
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in imported(parsed(path))
        if any(name == f or name.startswith(f + ".") for f in FORBIDDEN[part])
    ]
    assert wrong == []


#: Modules outside of folders of commands that are part of the command line all the same.
COMMAND_LINE = ("web.nodes", "web.figures", "workloads.options", "workloads.world")


def is_command(module):
    """Say whether a module is part of the command line."""
    room, *parts = module.removeprefix("nidmap.").split(".")
    return ".".join([room, *parts]) in COMMAND_LINE or bool({"command", "commands"} & set(parts))


def test_only_commands_import_commands():
    graph = import_graph()
    wrong = [
        (module, used)
        for module in graph
        for used in graph[module]
        if used.split(".")[2:3] == ["commands"] and not is_command(module)
    ]
    assert wrong == []


def import_graph():
    """Return module -> the modules of ours that it imports, those of functions and types too."""
    graph = {}
    for path in (path for room in ROOMS for path in modules(room)):
        graph[name_of(path)] = found = set()
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                found.update(name if name in KNOWN else node.module for name in inner)
    return {one: (found & KNOWN) - {one} for one, found in graph.items()}


def circles(graph):
    """Return the sets of modules that import each other in a circle (Tarjan's components)."""
    number, low, stack, found = {}, {}, [], []

    def visit(one):
        number[one] = low[one] = len(number)
        stack.append(one)
        for other in graph[one]:
            if other not in number:
                visit(other)
                low[one] = min(low[one], low[other])
            elif other in stack:
                low[one] = min(low[one], number[other])
        if low[one] == number[one]:
            start = stack.index(one)
            if len(stack) - start > 1:
                found.append(frozenset(stack[start:]))
            del stack[start:]

    for one in graph:
        if one not in number:
            visit(one)
    return found


def test_no_import_circles():
    new = [sorted(c) for c in circles(import_graph()) if not any(c <= set(k) for k in CIRCLES)]
    assert new == []


def folder_of(module):
    """Return the package of a module, or the module itself where it is at the top of its room."""
    parts = module.split(".")[1:]
    is_package = ROOT.joinpath(*parts).is_dir()
    return ".".join(parts if is_package or len(parts) < 3 else parts[:-1])


def folder_graph(graph):
    """Return folder -> the folders that its modules import."""
    edges = {}
    for one, others in graph.items():
        edges.setdefault(folder_of(one), set()).update(map(folder_of, others))
    return {one: others - {one} for one, others in edges.items()}


def test_no_folders_import_in_a_circle():
    found = circles(folder_graph(import_graph()))
    assert [sorted(circle) for circle in found] == []


def test_folder_circles_are_seen():
    graph = {
        "nidmap.web.b.c": {"nidmap.web.d", "nidmap.web.b.e"},
        "nidmap.web.d": {"nidmap.web.b.e"},
        "nidmap.web.b.e": {"nidmap.web.b.c"},
    }
    assert circles(folder_graph(graph)) == [{"web.b", "web.d"}]


def test_circles_are_seen():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}
    assert circles(graph) == [{"b", "c"}]


def test_the_test_sees_a_wrong_import():
    tree = ast.parse(
        "def f():\n    from nidmap.web.app import x\n    import_module('nidmap.rankmap.score')\n"
    )
    assert "nidmap.web.app" in set(imported(tree))
    assert set(named(tree)) == {"nidmap.rankmap.score"}
    assert set(named(ast.parse("f'nidmap.rankmap.{part}'"))) == {"nidmap.rankmap."}
    assert is_outside("rankmap.score")
    assert is_outside("nidmap")
    assert not is_outside("nidmap.web")
