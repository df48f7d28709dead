# SPDX-License-Identifier: Apache-2.0
"""Builds or finds the library that is preloaded between a program and its MPI.

One source serves three binary interfaces: MPICH's (MPICH, Cray, Intel, MVAPICH), Open MPI's,
and the standard one of MPI 5. Wheels ship a library for each (``build_recorders.py`` of the
checkout). Elsewhere the program's own compiler builds it, once: it is kept in the user's cache
under a name made of the source, the MPI and the architecture.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nidmap.placement.errors import LaunchError, NidmapError, OutputError
from nidmap.placement.support.child import Deadline, run_child
from nidmap.rankmap.launch import is_mpiexec
from nidmap.rankmap.launch.queries import mpi_library
from nidmap.rankmap.preload.program_mpi import (
    LINKED,
    STATIC,
    find_binaries,
    find_program,
    launcher_abi,
    program_abi,
)

#: The user's own compiler flags.
FLAGS = "NIDMAP_CFLAGS"

HOME = Path(__file__).parent
SOURCE = HOME / "nidmap_mpi.c"
LIBRARY = "libnidmap_mpi.so"

#: Where wheels have the libraries.
SHIPPED = HOME / "recorders"

ABI = {
    "mpich": "MPICH's (MPICH, Cray MPICH, Intel MPI, MVAPICH)",
    "openmpi": "Open MPI's",
    "standard": "MPI 5's standard one",
}

#: Identifies a compiler's MPI by its mpi.h.
_PROBE = """#include <mpi.h>
#if defined(OPEN_MPI)
nidmap_abi openmpi OMPI_MAJOR_VERSION OMPI_MINOR_VERSION OMPI_RELEASE_VERSION
#elif defined(MPI_ABI_VERSION) && !defined(MPICH_VERSION)
nidmap_abi standard MPI_VERSION MPI_SUBVERSION
#else
nidmap_abi mpich MPI_VERSION MPI_SUBVERSION
#endif
"""

_FLAGS = ("-O2", "-fPIC", "-fvisibility=hidden", "-std=gnu11")

#: System libraries that the library needs. It is linked with empty stubs of these names: linked
#: with this node's own versions, it would be refused by the loader of a node with an older C
#: library, and the program with it.
_SYSTEM = ("libc.so.6", "libdl.so.2", "libpthread.so.0")


class Compiler(NamedTuple):
    """An MPI compiler."""

    path: str
    abi: str  # ``mpich``, ``openmpi`` or ``standard``
    version: str  # of the MPI, as its header says


def find_compilers(
    command: Sequence[str], env: Mapping[str, str], abi: str = "", named: str = ""
) -> list[Compiler]:
    """Return MPI compilers for a command: one per binary interface that it may need.

    Tried in turn: the one named, ``$NIDMAP_MPICC``, Cray's ``cc``, the ``mpicc`` next to the
    launcher, and those on PATH.
    """
    wanted = named or env.get("NIDMAP_MPICC", "")
    fitting: dict[str, Compiler] = {}
    tried = []
    for name in [wanted] if wanted else _compilers_to_try(command, env):
        compiler = _probe_compiler(name, env)
        if compiler and abi in ("", compiler.abi):
            fitting.setdefault(compiler.abi, compiler)
        elif compiler:
            tried.append(f"{name} is of {ABI[compiler.abi]}")
        elif wanted:
            tried.append(f"{wanted} is not an MPI compiler that works here")
        if abi in fitting:
            break
    if fitting:
        return list(fitting.values())
    need = f"an mpicc of {ABI[abi]} interface" if abi else "an MPI compiler (mpicc, or Cray's cc)"
    tried_text = f" ({'; '.join(dict.fromkeys(tried))})" if tried else ""
    raise LaunchError(
        f"the preload library needs {need} once{tried_text}",
        "load the MPI's module, or name the program's own compiler with --mpicc or NIDMAP_MPICC",
    )


def _compilers_to_try(command: Sequence[str], env: Mapping[str, str]) -> list[str]:
    names = ["mpicc", "mpicc_abi", "mpicc.mpich", "mpicc.openmpi"]
    launcher = find_program(command[0], env) if command else None
    places = [launcher, os.path.realpath(launcher)] if launcher else []
    folders = [os.path.dirname(place) for place in places]
    siblings = [os.path.join(folder, name) for folder in folders for name in names]
    cray = ["cc"] if env.get("CRAYPE_VERSION") or env.get("CRAYPE_DIR") else []
    return [*cray, *dict.fromkeys(siblings), *names]


def _probe_compiler(name: str, env: Mapping[str, str]) -> Compiler | None:
    """Return what an MPI compiler is for; None if it does not compile MPI programs."""
    path = find_program(name, env)
    if path:
        with contextlib.suppress(LaunchError):
            answer = run_child([path, "-E", "-x", "c", "-"], env, Deadline(60), script=_PROBE)
            match = re.search(r"^nidmap_abi (\w+) (.*)$", answer.output, re.MULTILINE)
            return Compiler(path, match[1], ".".join(match[2].split())) if match else None
    return None


def build(compiler: Compiler, env: Mapping[str, str]) -> str:
    """Return the library for a compiler's MPI, building it unless it is cached."""
    home = Path(env.get("HOME", tempfile.gettempdir())) / ".cache"
    cache = Path(env.get("XDG_CACHE_HOME") or home) / "nidmap" / "preload"
    folder = cache / _build_key(compiler, env)
    path = folder / LIBRARY
    if path.is_file() and path.stat().st_uid == os.getuid():
        return str(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as work:
            library = Path(work) / LIBRARY
            _compile_library(compiler, env, work, str(library))
            library.replace(path)
    except OSError as error:
        text = f"cannot write {error.filename or folder}: {error.strerror}"
        raise OutputError(text) from None
    return str(path)


def _compile_library(compiler: Compiler, env: Mapping[str, str], work: str, library: str) -> None:
    """Compile with the MPI's headers but link with no MPI, since library names differ."""
    object_file = os.path.join(work, "nidmap_mpi.o")
    user_flags = shlex.split(env.get(FLAGS, ""))
    _call_compiler([compiler.path, *_FLAGS, *user_flags, "-c", str(SOURCE), "-o", object_file], env)
    linker = [find_program(env.get("CC", "") or "cc", env) or compiler.path, "-shared", "-o"]
    bare, keep = ["-nostdlib", "-x", "c", os.devnull], "-Wl,--no-as-needed,-z,lazy"
    empty = {name: os.path.join(work, name) for name in _SYSTEM}
    try:
        for name, path in empty.items():
            _call_compiler([*linker, path, f"-Wl,-soname,{name}", *bare], env)
        _call_compiler(
            [*linker, library, "-nostdlib", object_file, keep, *empty.values(), "-lgcc"], env
        )
        _call_compiler(
            ["true"], {**env, "LD_PRELOAD": library, "LD_BIND_NOW": "1"}
        )  # nothing is missing
    except LaunchError:
        system = ["-ldl", "-lpthread", *user_flags]  # a sanitizer's flags bring its runtime
        _call_compiler([*linker, library, object_file, *system], env)


def _call_compiler(words: Sequence[str], env: Mapping[str, str]) -> None:
    answer = run_child(words, env, Deadline(300))
    if answer.code:
        complaint = answer.complaint or "no reason"
        raise LaunchError(f"{words[0]} cannot build the recorder: {complaint}")


def _build_key(compiler: Compiler, env: Mapping[str, str]) -> str:
    """Return the name of a build: interface, architecture, and a hash of its sources."""
    parts = [path.read_bytes() for path in sorted(HOME.glob("*.[ch]"))]
    parts += [
        compiler.version.encode(),
        platform.machine().encode(),
        platform.libc_ver()[1].encode(),
        env.get(FLAGS, "").encode(),
    ]
    if compiler.abi == "openmpi":  # its versions have interfaces of their own
        parts.append(compiler.path.encode())
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    return f"{compiler.abi}-{platform.machine()}-{digest}"


def link_line(compiler: Compiler) -> str:
    """Return the line that compiles the library into a static program."""
    return f"{compiler.path} -O2 -DNIDMAP_STATIC -o app app.o {SOURCE}"


def libraries_for(command: Sequence[str], env: Mapping[str, str], mpicc: str = "") -> list[str]:
    """Return the libraries for a command's program; none if it is linked with one already.

    Where nobody can say which MPI the program loads there is one for each: all but one
    stand aside in the program.

    `command`: launcher, options, program. `mpicc`: the MPI compiler that builds it; '' takes one
    that is shipped, else looks for a compiler.
    """
    abi = program_abi(command, env)
    if abi == LINKED:
        return []
    if abi == STATIC:
        raise LaunchError(
            "the program is linked statically, so nothing can be preloaded",
            "link it with the options that nidmap record --link prints",
        )
    abi = abi or launcher_abi(command, env)
    if not (mpicc or env.get("NIDMAP_MPICC") or env.get(FLAGS)):
        ready = shipped([abi] if abi else list(ABI))
        if ready:
            return ready
    return [build(compiler, env) for compiler in find_compilers(command, env, abi, mpicc)]


def shipped(abis: Sequence[str]) -> list[str]:
    """Return a wheel's libraries for binary interfaces; none if one is missing."""
    paths = [str(SHIPPED / f"libnidmap_mpi-{abi}.so") for abi in abis]
    # LD_PRELOAD has no way to write a path with a space or a colon.
    good = all(os.path.isfile(path) and not re.search("[ :]", path) for path in paths)
    return paths if good else []


def preload(
    command: Sequence[str],
    libraries: Sequence[str],
    variables: Mapping[str, str],
    env: Mapping[str, str],
) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment with which its ranks load libraries first.

    A program that is linked with the library needs none.

    Launchers pass the environment on by themselves, but for Open MPI's on
    other nodes: that gets options of its own right after its name.
    """
    before = ":".join(path for path in (*libraries, env.get("LD_PRELOAD", "")) if path)
    more = {"LD_PRELOAD": before, **variables}
    # GCC's and Clang's address sanitizer ends a program that loads another library before its own.
    if any(b"libasan.so" in raw for _, raw in find_binaries(command, env)):
        options = env.get("ASAN_OPTIONS", "")
        more["ASAN_OPTIONS"] = f"{options}:verify_asan_link_order=0".lstrip(":")
    return [command[0], *_passing_options(command, list(more), env), *command[1:]], more


def _passing_options(
    command: Sequence[str], names: Sequence[str], env: Mapping[str, str]
) -> list[str]:
    """Return the launcher's options that pass variables on to other nodes."""
    if not is_mpiexec(command[0]):
        return []
    with contextlib.suppress(NidmapError):
        if mpi_library(command[0], env).name == "openmpi":
            return [word for name in names for word in ("-x", name)]
    return []
