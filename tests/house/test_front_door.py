"""The front door: what it offers, what stands in its way, and the wheel it ships in."""

import importlib.metadata
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import nidmap

ROOT = Path(__file__).parents[2]


def run(*argv, cwd, **env):
    return subprocess.run(
        [sys.executable, *argv],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("room", ["placement", "rankmap", "workloads", "web"])
def test_a_users_file_that_hides_a_room_is_named(tmp_path, room):
    mine = tmp_path / f"{room}.py"
    mine.write_text("print('mine')\n")
    done = run("-m", "nidmap", "site", "list", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"nidmap: {mine} hides nidmap's own package '{room}'; rename it or run elsewhere\n"
    )


def test_a_users_script_is_told_too(tmp_path):
    (tmp_path / "rankmap.py").write_text("")
    (tmp_path / "script.py").write_text("import nidmap\nnidmap.load_machine('tara')\n")
    done = run("script.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "ImportError" in done.stderr
    assert "rankmap.py hides nidmap's own package 'rankmap'" in done.stderr


@pytest.mark.parametrize("name", sorted(nidmap._API))
def test_every_name_of_the_front_door_is_there(name):
    assert callable(getattr(nidmap, name))
    assert name in nidmap.__all__


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


def test_the_wheel_holds_the_rooms_and_the_sites(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    sites = {f"placement/site-configs/{p.name}" for p in (ROOT / "site-configs").glob("*.toml")}
    assert len(sites) == 15
    assert sites | {"nidmap.py", "placement/plan.py", "rankmap/order.py"} <= names
    tops = {name.split("/")[0] for name in names if "dist-info" not in name}
    assert tops == {"nidmap.py", "placement", "rankmap", "workloads", "web"}


def test_the_wheel_works_away_from_the_checkout(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "installed")
    plan = ("-m", "nidmap", "plan", "-m", "shaheen2", "-N", "216", "--strategy", "blades")
    away = tmp_path / "away"
    away.mkdir()
    done = run(*plan, cwd=away, PYTHONPATH=str(tmp_path / "installed"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("nid[")
