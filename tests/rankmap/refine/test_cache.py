# SPDX-License-Identifier: Apache-2.0
"""Where compiled kernels are kept: a folder of this user's alone, or none."""

import json
import os
import subprocess
import sys

import pytest

from nidmap.rankmap.refine import cache

SMALL = """
import json, sys
import numpy as np
from nidmap.rankmap.refine import cache, jit
folder = cache.cache_folder()
value = int(jit.draw(np.array([1, 0], dtype=np.uint64)))
made = sorted(p.name.split("-")[0] for p in folder.rglob("*.nbi")) if folder else []
hits = sum(jit.draw.stats.cache_hits.values())
print(json.dumps([str(folder), made, hits, cache.remark(), value]))
"""


def in_a_process(package, **env):
    """Return what a new process says that has the package elsewhere."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "XDG", "PYTHON"))}
    given = {**kept, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", **env}
    done = subprocess.run(
        [sys.executable, "-c", SMALL], env=given, cwd=package,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.fixture
def package(tmp_path):
    """Return a copy of the packages in which nothing is compiled, and nothing can be kept."""
    import shutil

    import nidmap

    root = os.path.dirname(nidmap.__file__)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(root, tmp_path / "site" / "nidmap", ignore=ignored)
    (tmp_path / "site" / "nidmap" / "rankmap" / "refine" / "__pycache__").write_text("no folder")
    return tmp_path / "site"


def test_the_second_process_loads_what_the_first_compiled(package, tmp_path):
    pytest.importorskip("numba")
    places = {"XDG_CACHE_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    first, again = in_a_process(package, **places), in_a_process(package, **places)
    assert first[0].startswith(str(tmp_path / "home" / "nidmap" / "kernels-"))
    assert first[1] == ["jit.draw"]
    assert (first[2], again[2]) == (0, 1)
    assert first[3] == ""
    assert first[4] == again[4]


def test_a_home_that_cannot_be_written_leaves_the_temporary_folder_and_says_so(package, tmp_path):
    pytest.importorskip("numba")
    (tmp_path / "home").write_text("no folder")
    found = in_a_process(package, XDG_CACHE_HOME=str(tmp_path / "home"), TMPDIR=str(tmp_path))
    assert found[0].startswith(f"{tmp_path}/nidmap-{os.geteuid()}-kernels-")
    assert found[1] == ["jit.draw"]
    assert found[3] == f"compiled kernels are kept in {found[0]}: ~/.cache cannot be written"


def test_without_any_folder_kernels_still_run(package, tmp_path):
    pytest.importorskip("numba")
    (tmp_path / "home").write_text("no folder")
    program = SMALL.replace("folder = ", "cache._is_safe = lambda path: False\nfolder = ")
    program = program.replace("import cache, jit", "import cache").replace(
        "value = ", "from nidmap.rankmap.refine import jit\nvalue = "
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    folder, made, _, remark, _ = json.loads(done.stdout)
    assert (folder, made) == ("None", [])
    assert remark.startswith("kernels are recompiled each time")


def test_a_folder_of_somebody_else_is_never_used(tmp_path, monkeypatch):
    mine = tmp_path / "mine"
    assert cache._is_safe(mine)
    assert oct(mine.stat().st_mode & 0o777) == "0o700"
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    assert not cache._is_safe(mine)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_to_is_never_used(tmp_path, mode):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    assert not cache._is_safe(folder)


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert cache._is_safe(tmp_path / "real")
    assert not cache._is_safe(tmp_path / "link")


def test_numba_can_be_told_to_stay_away(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not cache.numba_installed()
    assert cache.kernels_compiled()
    assert "numba is not installed" in cache.remark()


def test_numba_itself_keeps_its_settings(monkeypatch):
    numba = pytest.importorskip("numba")
    from nidmap.rankmap.refine import jit

    monkeypatch.setattr(numba.config, "CACHE_DIR", "theirs")
    jit.kernel(lambda: 1)
    assert numba.config.CACHE_DIR == "theirs"
