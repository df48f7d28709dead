"""Machine code that is kept between runs: what numba makes, and never anything broken."""

import json
import subprocess
import sys

import numpy as np
import pytest

from rankmap.refine import kernels, native

pytest.importorskip("numba")

BLOCKS = np.array([[0, 0], [1, 0], [2, 1], [3, 1], [4, 1]])
FIRST = np.arange(6)
CUTS = [[0, 2, 5], [2, 3, 5], [3, 4, 5], [0, 1, 2]]

PROGRAM = """
import pathlib, sys
import numpy as np
from rankmap.refine import native
native.folders = lambda: [pathlib.Path(p) for p in sys.argv[1:]]
out = np.empty((4, 3), dtype=np.int64)
native.block_splits(np.array({blocks}), np.arange(6), out)
print(__import__("json").dumps([out.tolist(), "numba" in sys.modules]))
"""


def in_a_process(*folders, env=None):
    """Return the cuts that a new process finds, and whether it has loaded numba."""
    program = PROGRAM.format(blocks=BLOCKS.tolist())
    argv = [sys.executable, "-c", program, *map(str, folders)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    cuts, numba = json.loads(done.stdout)
    return sorted(cuts), numba


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Return a folder with the code of one kernel, made by numba."""
    folder = tmp_path_factory.mktemp("code") / "made"
    assert in_a_process(folder) == (sorted(CUTS), True)
    return folder


def test_the_kernel_itself_finds_the_same():
    """What the machine code must find."""
    out = np.empty((4, 3), dtype=np.int64)
    kernels.block_splits(BLOCKS, FIRST, out)
    assert sorted(out.tolist()) == sorted(CUTS)


def test_code_is_loaded_without_numba(kept):
    """The second run imports numba no more."""
    assert len(list(kept.iterdir())) == 1
    assert in_a_process(kept) == (sorted(CUTS), False)


@pytest.mark.parametrize("harm", ["cut short", "one bit", "empty", "no header", "no fields"])
def test_broken_code_is_not_read(kept, tmp_path, harm):
    """A file that is not whole is as good as none."""
    (file,) = kept.iterdir()
    raw = file.read_bytes()
    broken = {
        "cut short": raw[: len(raw) // 2],
        "one bit": raw[:-9] + bytes([raw[-9] ^ 1]) + raw[-8:],
        "empty": b"",
        "no header": raw.partition(b"\n")[2],
        "no fields": b"{}\n" + raw.partition(b"\n")[2],
    }[harm]
    (tmp_path / file.name).write_bytes(broken)
    assert native.read(file) is not None
    assert native.read(tmp_path / file.name) is None


def test_code_that_calls_what_is_not_there_is_not_run(kept):
    """LLVM would end the process: names are asked for beforehand."""
    (file,) = kept.iterdir()
    code = native.read(file)
    assert native.ready(code)
    assert not native.ready(code._replace(needs=[*code.needs, "no_such_function"]))


def test_broken_code_is_made_anew(kept, tmp_path):
    """The file is replaced, and the next run loads it."""
    (file,) = kept.iterdir()
    (tmp_path / file.name).write_bytes(file.read_bytes()[:5000])
    assert in_a_process(tmp_path) == (sorted(CUTS), True)
    assert (tmp_path / file.name).read_bytes() == file.read_bytes()


def test_a_folder_that_cannot_be_written_is_passed_over(tmp_path):
    """A file stands where the folder should be: the next one takes the code."""
    (tmp_path / "taken").write_text("")
    second = tmp_path / "second"
    assert in_a_process(tmp_path / "taken", second) == (sorted(CUTS), True)
    assert in_a_process(tmp_path / "taken", second) == (sorted(CUTS), False)


def test_arrays_of_another_kind_are_refused(kept, monkeypatch):
    """Nothing is passed on that the code would misread."""
    monkeypatch.setattr(native, "folders", lambda: [kept])
    kernel = native.Native("rankmap.refine.kernels.block_splits", "int64:2 int64:1 int64:2")
    out = np.empty((4, 3), dtype=np.int64)
    for blocks in (BLOCKS.astype(np.int32), BLOCKS.T.copy().T, BLOCKS[0]):
        with pytest.raises(TypeError, match="block_splits"):
            kernel(blocks, FIRST, out)


def test_numba_can_be_told_to_stay_away(monkeypatch):
    """NUMBA_DISABLE_JIT is heeded."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not native.installed()
    assert native.compiled()
