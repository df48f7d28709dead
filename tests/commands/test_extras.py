# SPDX-License-Identifier: Apache-2.0
"""What is not installed is said in one line; the core does its work without any extra."""

import ast
import itertools
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from nidmap.placement.commands import EXTRAS, NAMES, missing
from nidmap.placement.sites.loading import tomllib
from nidmap.workloads.results import save

ROOT = Path(__file__).parents[2]

#: A process to which the given packages are not installed.
WITHOUT = "import sys; sys.modules.update(dict.fromkeys({}, None));"
DOOR = f"{WITHOUT} from nidmap import main; main()"


def nidmap(*argv, without, cwd=None):
    done = subprocess.run(
        [sys.executable, "-c", DOOR.format(without), *argv],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=cwd,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


CORE = """
--help
site show shaheen2
machine show -m shaheen2
machine export -m tara --format topology-conf
nodes fold nid00012 nid00013
plan -m shaheen2 -N 216 --strategy blades
plan -m torus:4x4x4 -N 8 --pattern alltoall
order -m torus:4x4 --nodes 0-3 --ppn 4 --pattern stencil:4x4
predict -m torus:4x4 --nodes 0-3 --pattern alltoall --bytes 1000
compare -m torus:4x4 -N 4 --pattern alltoall --bytes 1000
"""


def test_the_core_needs_no_extra():
    """One process, as none of its commands can load what another must not."""
    program = (
        f"{WITHOUT.format(tuple(EXTRAS))} import nidmap\n"
        "from nidmap.placement.commands import run\n"
        "for line in sys.stdin:\n"
        "    print(line, end='', flush=True)\n"
        "    print('code', run(line.split()), flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=CORE.lstrip(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for line in CORE.split("\n")[1:-1]:
        _, _, said = done.stdout.partition(f"{line}\n")
        out, _, code = said.partition("code ")
        assert out
        assert code.startswith("0\n"), (line, done.stderr)


COMPARE = ("compare", "-m", "torus:4x4", "-N", "4", "--pattern", "alltoall", "-o", "c.svg")
NEEDS = [
    ("networkx", "graphs", ("machine", "export", "-m", "torus:2x2", "--format", "graphml")),
    ("pandas", "tables", ("machine", "export", "-m", "torus:2x2", "-o", "t.csv")),
    ("matplotlib", "plot", COMPARE),
    ("Quart", "web", ("web", "serve", "-m", "torus:2x2")),
    ("quickjs-ng", "web", ("web", "export", "-m", "torus:2x2", "-o", "t.svg")),
    ("mpi4py", "mpi", ("bench", "sort", "--items", "1000")),
]


everything_here = pytest.mark.skipif(
    any(find_spec(module) is None for module in EXTRAS),
    reason="not all extras are installed ([all])",
)


@everything_here
@pytest.mark.parametrize(("package", "extra", "argv"), NEEDS, ids=lambda one: str(one)[:40])
def test_a_missing_package_is_one_line_with_the_install_command(tmp_path, package, extra, argv):
    names = {"quickjs-ng": "quickjs", "Quart": "quart"}
    save(str(tmp_path / "s.csv"), {"program": "sort"}, [{"phase": "sort", "warmup": 0, "max": 1.0}])
    code, out, err = nidmap(*argv, without=(names.get(package, package),), cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err.endswith(f"needs {package}, which is not installed; pip install 'nidmap[{extra}]'\n")
    assert err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"s.csv"}


def test_every_extra_brings_what_is_said_to_be_in_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    brought = project["optional-dependencies"]
    for module, extra in EXTRAS.items():
        name = str(missing(module)).split("needs ")[1].split(",")[0]
        several = {"llvmlite": "numba"}
        assert any(one.startswith(several.get(module, name)) for one in brought[extra]), module
    everything = brought["all"][0]
    assert set(EXTRAS.values()) <= set(everything[len("nidmap[") : -1].split(","))
    core = {one.split(">")[0] for one in project["dependencies"]}
    assert core == {"numpy", "click", "msgspec", "PyYAML", "tomli"}


def test_what_is_imported_is_declared():
    """Every package that our code names in an import is one that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *itertools.chain(*project["optional-dependencies"].values()),
    ]
    declared = {re.split(r"[^A-Za-z0-9_.-]", one)[0].lower() for one in wanted}
    others = {"yaml": "pyyaml", "llvmlite": "numba"}  # numba's own part
    imported = set()
    for room in ("placement", "rankmap", "workloads", "web"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    imported.add((node.module or "").partition(".")[0])
    imported -= {*sys.stdlib_module_names, "nidmap"}
    names = {module: others.get(module, NAMES.get(module, module)).lower() for module in imported}
    assert not {module for module, name in names.items() if name not in declared}
