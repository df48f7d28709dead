# SPDX-License-Identifier: Apache-2.0
"""The front door: what it offers, what stands in its way, and the wheel it ships in."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import nidmap
from nidmap.placement import hooks

ROOT = Path(__file__).parents[2]


def run(*argv, cwd, **env):
    return subprocess.run(
        [sys.executable, *argv],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


ROOMS = ("placement", "rankmap", "workloads", "web")


@pytest.mark.parametrize("room", ROOMS)
def test_a_users_file_named_as_a_room_hides_nothing(tmp_path, room):
    (tmp_path / f"{room}.py").write_text("raise SystemExit('mine')\n")
    done = run("-m", "nidmap", "nodes", "fold", "n[1-2]", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "n[1-2]\n"), done.stderr


@pytest.fixture
def unlinked(tmp_path):
    """Lay out a checkout as Git leaves it where it may not make links."""
    shutil.copytree(ROOT / "nidmap", tmp_path / "nidmap", symlinks=True)
    link = tmp_path / "nidmap" / "rankmap"
    link.unlink()
    link.write_text("../rankmap")
    for room in ("placement", "workloads", "web", "site-configs"):
        (tmp_path / room).symlink_to(ROOT / room)
    return tmp_path


def test_a_checkout_without_links_says_so(unlinked):
    link = unlinked / "nidmap" / "rankmap"
    line = (
        f"{link} should be a link to ../rankmap; clone with core.symlinks=true, "
        "or pip install the checkout"
    )
    done = run("-m", "nidmap", "site", "list", cwd=unlinked)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"nidmap: {line}\n")
    done = run("-c", "import nidmap; nidmap.plan", cwd=unlinked)
    assert done.stderr.splitlines()[-1] == f"ImportError: {line}"


@pytest.mark.parametrize("name", nidmap.__all__)
def test_every_name_of_the_front_door_is_there(name):
    assert callable(getattr(nidmap, name))


def test_what_the_front_door_names_is_there():
    brought = [where for where, _ in hooks.COMMANDS.values()]
    for where in [*brought, *hooks.STRATEGIES.values(), *hooks.SERVICES.values()]:
        assert hooks.load(where)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'plann'"):
        nidmap.plann  # noqa: B018  # the access is the test


def test_a_program_that_imports_keeps_its_own_settings(tmp_path):
    said = (
        "import gc, os; os.environ.pop('OPENBLAS_NUM_THREADS', None);"
        " before = gc.get_threshold(), dict(os.environ); import nidmap;"
        " nidmap.plan, nidmap.reorder; print(before == (gc.get_threshold(), dict(os.environ)))"
    )
    done = run("-c", said, cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert done.stdout == "True\n", done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel from the checkout with the project's own build backend."""
    if "hatchling" not in {d.name.lower() for d in importlib.metadata.distributions()}:
        pytest.skip("hatchling is not installed (extra [dev])")
    from hatchling.builders.wheel import WheelBuilder

    folder = tmp_path_factory.mktemp("wheel")
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(built)


def test_a_build_of_its_own_has_what_the_commands_import(monkeypatch):
    build = pytest.importorskip("hatchling.build")
    monkeypatch.chdir(ROOT)
    asked = " ".join(build.get_requires_for_build_wheel())
    assert all(name in asked for name in ("click", "msgspec", "numpy", "pyyaml"))


def test_the_wheel_holds_the_rooms_and_the_sites(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    sites = {f"nidmap/site-configs/{p.name}" for p in (ROOT / "site-configs").glob("*.toml")}
    assert len(sites) == 19
    assert sites | {"nidmap/__main__.py", "nidmap/placement/plan.py"} <= names
    tops = {name.split("/")[0] for name in names if "dist-info" not in name}
    data = next(top for top in tops if top.endswith(".data"))
    assert tops == {"nidmap", data}
    assert {f"nidmap/{room}/py.typed" for room in ROOMS} <= names
    pages = {name for name in names if name.startswith(f"{data}/data/share/man/man1/")}
    assert {name.rpartition("/")[2] for name in pages} >= {
        "nidmap.1",
        "nidmap-plan.1",
        "nidmap-site-show.1",
    }


@pytest.mark.slow
def test_one_file_plans_where_nothing_is_installed(wheel, tmp_path):
    pytest.importorskip("shiv", reason="shiv is not installed (extra [dev])")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    for name in ("numpy", "click", "msgspec"):
        for path in importlib.metadata.files(name):
            if path.parts[0] != ".." and "tests" not in path.parts and path.suffix != ".pyc":
                (site / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path.locate(), site / path)
    one = tmp_path / "nidmap.pyz"
    made = run(
        "-m", "shiv", "-c", "nidmap", "--site-packages", str(site), "-o", str(one), cwd=tmp_path
    )
    assert made.returncode == 0, made.stderr
    shutil.rmtree(site)
    home = tmp_path / "home"
    done = run("-P", "-s", "-S", str(one), "plan", "-m", "shaheen2", "-N", "216", cwd=tmp_path,
               HOME=str(home), SHIV_ROOT=str(home))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("nid[")
    words = ["--pattern", "ring", "--nodes", "a,b", "--dry-run", "--", "srun", "-n2", "/bin/true"]
    done = run("-P", "-s", "-S", str(one), "run", *words, cwd=tmp_path,
               HOME=str(home), SHIV_ROOT=str(home))  # fmt: skip
    assert "srun --nodelist=" in done.stdout, done.stderr


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_reads_the_pages(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)
    (folder,) = tmp_path.glob("*.data/data/share/man/man1")
    for path in folder.iterdir():
        done = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-l", str(path)],
            env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        assert "NAME" in done.stdout


def test_the_wheel_works_away_from_the_checkout(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "installed")
    plan = ("-m", "nidmap", "plan", "-m", "shaheen2", "-N", "216", "--strategy", "blades")
    away = tmp_path / "away"
    away.mkdir()
    done = run(*plan, cwd=away, PYTHONPATH=str(tmp_path / "installed"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("nid[")
