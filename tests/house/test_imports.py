"""Data goes left to right, imports go right to left: the rooms hold to it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("placement", "rankmap", "workloads", "web")

#: Inside placement: what a part must never import, by the seam it would break.
FORBIDDEN = {
    "placement/readers": (
        "placement.machine",
        "placement.planners",
        "placement.emit",
        "subprocess",
    ),
    "placement/planners": ("placement.readers", "placement.slurm", "placement.emit", "subprocess"),
    "placement/emit": ("placement.topologies", "placement.machine", "placement.planners"),
    "rankmap/orders": ("subprocess", "rankmap.emit", "rankmap.launch", "placement.readers"),
    "rankmap/emit": ("placement.topologies", "placement.planners", "subprocess"),
}


def modules(folder):
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path):
    """Yield every module name that a file imports at run time."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
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


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_leftwards(room):
    later = ROOMS[ROOMS.index(room) + 1 :]
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(room)
        for name in imported(path)
        if name.split(".")[0] in later
    ]
    assert wrong == []


@pytest.mark.parametrize("part", FORBIDDEN)
def test_seams_inside_a_room(part):
    files = modules(part)
    assert files
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in imported(path)
        if any(name == f or name.startswith(f + ".") for f in FORBIDDEN[part])
    ]
    assert wrong == []


def test_the_test_sees_a_wrong_import(tmp_path):
    probe = tmp_path / "probe.py"
    probe.write_text("def f():\n    from web.app import x\n")
    assert "web.app" in set(imported(probe))
