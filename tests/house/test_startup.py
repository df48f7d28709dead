# SPDX-License-Identifier: Apache-2.0
"""Start-up counts: what a command imports is what it needs.

No seconds are asserted (`python -m benchmarks cold` shows them): a module
that creeps into the cold path is.
"""

import re
import subprocess
import sys

import pytest

from tests.commands.shapes import xc_dump

#: Modules that must not be loaded by the commands that stand before a submission.
HEAVY = {
    "pandas", "networkx", "yaml", "numba", "scipy", "ClusterShell", "quart", "mpi4py",
    "matplotlib", "numpy.ma", "numpy.testing", "numpy.random", "importlib.metadata",
    "asyncio", "subprocess", "tempfile",
}  # fmt: skip

if sys.version_info < (3, 11):
    HEAVY -= {"subprocess"}  # numpy imports platform, which imports it there

#: What a site config needs on top: TOML and its schema.
SITE = {"msgspec", "tomllib", "tomli"}


def imported(*argv):
    """Return the names of all modules that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "nidmap", *argv],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return set(re.findall(r"^import time:.*\|\s*([\w.]+)$", done.stderr, re.MULTILINE))


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "m.xtprocadmin"
    path.write_text(xc_dump(columns=4, rows=1))
    return str(path)


def test_plan_on_a_dump_is_lean(dump):
    found = imported("plan", "-m", dump, "-N", "8", "--strategy", "blades")
    assert "numpy" in found
    assert found & (HEAVY | SITE) == set()


def test_plan_on_a_site_is_lean():
    found = imported("plan", "-m", "shaheen2", "-N", "8", "--strategy", "blades")
    assert found & HEAVY == set()


def test_help_needs_no_numpy():
    assert "numpy" not in imported("--help")


def test_a_launch_loads_no_numpy_itself():
    """The child that plans does, whose output goes nowhere."""
    assert "numpy" not in imported("run", "--pattern", "ring", "--", "true")


def test_the_test_sees_a_heavy_module():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import yaml"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(r"\|\s*yaml$", done.stderr, re.MULTILINE)
