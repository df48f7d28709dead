# SPDX-License-Identifier: Apache-2.0
"""Every source file names its licence in its first two lines."""

import subprocess
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
SUFFIXES = {".py", ".js", ".c", ".h", ".sh", ".css", ".F90"}
# Programs and files of others, kept as they were published.
FOREIGN = ("tests/samples/", "tests/machines/")
LINE = "SPDX-License-Identifier: Apache-2.0"


def source_files() -> list[Path]:
    """All written source files that git knows."""
    listed = subprocess.run(["git", "ls-files"], cwd=HOUSE, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a checkout: git does not list the files")
    return [
        HOUSE / name
        for name in listed.stdout.splitlines()
        if Path(name).suffix in SUFFIXES and not name.startswith(FOREIGN)
    ]


def test_every_source_file_names_its_licence() -> None:
    """As tools that read licences (reuse, scancode) expect it."""
    without = [
        str(path.relative_to(HOUSE))
        for path in source_files()
        if path.is_file()
        and path.read_text(encoding="utf-8").strip()
        and LINE not in "\n".join(path.read_text(encoding="utf-8").splitlines()[:2])
    ]
    assert not without, f"without '{LINE}': {without}"
