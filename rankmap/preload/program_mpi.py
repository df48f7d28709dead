# SPDX-License-Identifier: Apache-2.0
"""Which MPI a command's program will load, determined before it starts.

A library that is built for another MPI than the program's garbles its handles, so what
says most is asked first: the program's own file and the libraries that it needs, the
mpi4py of its Python, and last the launcher that starts it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence

from nidmap.placement.errors import LaunchError, NidmapError
from nidmap.placement.support.child import Deadline, run_child
from nidmap.rankmap.launch import OPENMPI, is_mpiexec
from nidmap.rankmap.launch.queries import mpi_library

#: Results of `program_abi` for a program that contains the library, or can load none.
LINKED, STATIC = "linked", "static"

#: Binary interfaces, by the libraries that a program needs: C's, C++'s and Fortran's.
_NEEDS = (
    ("standard", re.compile(rb"libmpi_abi\.so\.\d+")),
    ("openmpi", re.compile(rb"libmpi(?:_(?:mpifh|usempi\w*|cxx))?\.so\.(?:20|40|80)\b")),
    ("mpich", re.compile(rb"libmpi(?:ch)?(?:fort|cxx|f)?(?:_[a-z0-9]+)*\.so\.(?:12|0)\b")),
)

_PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")

#: Asks a Python for the file of its mpi4py without loading it.
_MPI4PY = "from importlib.util import find_spec as f;print((f('mpi4py.MPI') or f('os')).origin)"

#: Seconds that a program's Python, or the system's list of its libraries, may take to answer.
_PATIENCE = 20.0


def find_program(name: str, env: Mapping[str, str]) -> str | None:
    """Return the path of a program in an environment's PATH; None if there is none."""
    return shutil.which(name, path=env.get("PATH", os.defpath))


def find_binaries(command: Sequence[str], env: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the binary programs among the words after a launcher."""
    for path in filter(None, (find_program(word, env) for word in command[1:])):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            head = file.read(4)
            if head == b"\x7fELF":
                yield path, head + file.read(1 << 28)


def program_abi(command: Sequence[str], env: Mapping[str, str]) -> str:
    """Return the binary interface of the MPI that a command's program loads.

    `command`: a launcher, its options, the program and its arguments: each word that names a
    program is looked at. ``mpich``, ``openmpi`` or ``standard``; ``linked`` where the program has
    the recorder in it already; ``static`` where the only program among the words has no dynamic
    libraries; '' where no word tells (a shell script).
    """
    static = ""
    for path, raw in find_binaries(command, env):
        if b"NIDMAP_RECORD_WINDOW" in raw:
            return LINKED
        dynamic = b"\0.dynamic\0" in raw
        abi = _abi_in(raw) or (_abi_in(_needed_libraries(path, env)) if dynamic else "")
        if abi:
            return abi
        if b"MPI_Init" in raw and not dynamic:
            static = STATIC
    return static or next(
        filter(None, (_mpi4py_abi(p, env) for p in _find_pythons(command, env))), ""
    )


def launcher_abi(command: Sequence[str], env: Mapping[str, str]) -> str:
    """Return the binary interface of a launcher's MPI; '' if it may be any."""
    if is_mpiexec(command[0]):
        with contextlib.suppress(NidmapError):
            return "openmpi" if mpi_library(command[0], env).name == OPENMPI else "mpich"
        return ""
    plugins = [word.removeprefix("--mpi=") for word in command if word.startswith("--mpi=")]
    means = [*plugins, env.get("SLURM_MPI_TYPE", "")][0]
    return "mpich" if means in ("pmi2", "cray_shasta") else ""


def _abi_in(raw: bytes) -> str:
    """Return the interface whose libraries are named in a file or a list; '' for none."""
    return next((abi for abi, pattern in _NEEDS if pattern.search(raw)), "")


def _needed_libraries(path: str, env: Mapping[str, str]) -> bytes:
    """Return the names of all libraries that a program loads, directly or indirectly."""
    with contextlib.suppress(LaunchError):
        return run_child(["ldd", path], env, Deadline(_PATIENCE)).output.encode()
    return b""


def _find_pythons(command: Sequence[str], env: Mapping[str, str]) -> Iterator[str]:
    """Yield the Pythons among a command's words, and those named in its scripts."""
    for path in filter(None, (find_program(word, env) for word in command[1:])):
        if _PYTHON.fullmatch(os.path.basename(path)):
            yield path
            continue
        with contextlib.suppress(OSError), open(path, "rb") as file:
            first = file.readline(256)
        if first.startswith(b"#!"):
            for word in first[2:].decode("utf-8", "replace").split():
                program = find_program(word, env)
                if program and _PYTHON.fullmatch(os.path.basename(program)):
                    yield program


def _mpi4py_abi(python: str, env: Mapping[str, str]) -> str:
    """Return the binary interface of a Python's mpi4py; '' if it has none."""
    with contextlib.suppress(LaunchError, OSError):
        origin = run_child([python, "-c", _MPI4PY], env, Deadline(_PATIENCE)).output.strip()
        with open(origin, "rb") as file:
            return _abi_in(file.read(1 << 28)) or _abi_in(_needed_libraries(origin, env))
    return ""
