"""Build the library that stands between a program and its MPI, by the program's own compiler.

One source serves three binary interfaces: MPICH's (MPICH, Cray, Intel,
MVAPICH), Open MPI's, and the standard one of MPI 5. A build is kept in the
user's cache under a name made of the source, the MPI and the architecture.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from placement.errors import LaunchError, OutputError, printable

__all__ = [
    "ABI",
    "Compiler",
    "build",
    "checks_addresses",
    "compiler_for",
    "find_compiler",
    "link_line",
    "program_abi",
]

#: Flags of the user's own for the compiler.
FLAGS = "NIDMAP_CFLAGS"

HOME = Path(__file__).parent
SOURCE = HOME / "nidmap_mpi.c"
LIBRARY = "libnidmap_mpi.so"

#: Binary interfaces, by what a program that needs them is linked with.
_NEEDS = (
    ("standard", re.compile(rb"libmpi_abi\.so\.\d+")),
    ("openmpi", re.compile(rb"libmpi\.so\.(?:20|40|80)\b")),
    ("mpich", re.compile(rb"lib(?:mpi|mpich|mpi_[a-z]+|mpifort_[a-z]+|mpifort)\.so\.(?:12|0)\b")),
)

ABI = {
    "mpich": "MPICH's (MPICH, Cray MPICH, Intel MPI, MVAPICH)",
    "openmpi": "Open MPI's",
    "standard": "MPI 5's standard one",
}

#: What a compiler's mpi.h says of itself.
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

#: What the library needs of the system. It is linked with empty ones of these names: with the
#: versions of this node's own, the loader of a node whose C library is older would refuse it,
#: and the program with it.
_SYSTEM = ("libc.so.6", "libdl.so.2", "libpthread.so.0")


class Compiler(NamedTuple):
    """An MPI compiler.

    Attributes
    ----------
    path : str
    abi : str
        ``mpich``, ``openmpi`` or ``standard``.
    version : str
        Of the MPI, as its header says.
    """

    path: str
    abi: str
    version: str


def program_abi(command: Sequence[str], env: Mapping[str, str]) -> str:
    """Return the binary interface that a command's program is linked with.

    Parameters
    ----------
    command : sequence of str
        A launcher, its options, the program and its arguments: each word that
        names a binary file is looked at.
    env : mapping of str to str

    Returns
    -------
    str
        A key of `ABI`; ``linked`` where the program has the library in it already;
        ``static`` where the only program among the words has no dynamic
        libraries; '' where no word tells (a script, Python).
    """
    static = ""
    for word in command[1:]:
        path = shutil.which(word, path=env.get("PATH", os.defpath))
        raw = _elf(path) if path else b""
        if not raw:
            continue
        if b"NIDMAP_RECORD_WINDOW" in raw:
            return "linked"
        for abi, pattern in _NEEDS:
            if pattern.search(raw):
                return abi
        if b"MPI_Init" in raw and b"\0.dynamic\0" not in raw:
            static = "static"
    return static


def checks_addresses(command: Sequence[str], env: Mapping[str, str]) -> bool:
    """Tell whether a command's program is built with GCC's or Clang's address sanitizer.

    It ends at once where another library is loaded before its own, unless it is told not to.
    """
    paths = (shutil.which(word, path=env.get("PATH", os.defpath)) for word in command[1:])
    return any(b"libasan.so" in _elf(path) for path in paths if path)


def _elf(path: str) -> bytes:
    """Return a binary program's content; b'' for anything else."""
    try:
        with open(path, "rb") as file:
            head = file.read(4)
            return head + file.read(1 << 28) if head == b"\x7fELF" else b""
    except OSError:
        return b""


def find_compiler(
    command: Sequence[str], env: Mapping[str, str], abi: str = "", named: str = ""
) -> Compiler:
    """Return the MPI compiler that fits a command.

    Tried in turn: the one named, ``$NIDMAP_MPICC``, Cray's ``cc``, the
    ``mpicc`` beside the launcher, and those on PATH.

    Raises
    ------
    LaunchError
        Where none is there, none works, or none is of the program's interface;
        one line says what is needed.
    """
    asked = named or env.get("NIDMAP_MPICC", "")
    tried = []
    for name in [asked] if asked else _candidates(command, env):
        path = shutil.which(name, path=env.get("PATH", os.defpath))
        found = compiler_for(path, env) if path else None
        if found and abi in ("", found.abi):
            return found
        if found:
            tried.append(f"{name} is of {ABI[found.abi]}")
        elif asked:
            tried.append(f"{printable(asked, 80)} is no MPI compiler that works here")
    need = f"an mpicc of {ABI[abi]} interface" if abi else "an MPI compiler (mpicc, or Cray's cc)"
    said = f" ({'; '.join(dict.fromkeys(tried))})" if tried else ""
    raise LaunchError(
        f"the library before the program needs {need} once{said}",
        "load the MPI's module, or name one with --mpicc",
    )


def _candidates(command: Sequence[str], env: Mapping[str, str]) -> list[str]:
    names = ["mpicc", "mpicc_abi", "mpicc.mpich", "mpicc.openmpi"]
    launcher = shutil.which(command[0], path=env.get("PATH", os.defpath)) if command else None
    folders = []
    if launcher:
        folders = [os.path.dirname(launcher), os.path.dirname(os.path.realpath(launcher))]
    beside = [os.path.join(folder, name) for folder in folders for name in names]
    cray = ["cc"] if env.get("CRAYPE_VERSION") or env.get("CRAYPE_DIR") else []
    return [*cray, *dict.fromkeys(beside), *names]


def compiler_for(path: str, env: Mapping[str, str]) -> Compiler | None:
    """Return what an MPI compiler is for; None where it does not compile MPI programs."""
    try:
        done = subprocess.run(
            [path, "-E", "-x", "c", "-"],
            input=_PROBE,
            env=dict(env),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = re.search(r"^nidmap_abi (\w+) (.*)$", done.stdout, re.MULTILINE)
    return Compiler(path, said[1], ".".join(said[2].split())) if said else None


def build(compiler: Compiler, env: Mapping[str, str]) -> str:
    """Return the library for a compiler's MPI; it is built unless it is in the cache.

    Raises
    ------
    LaunchError
        Where it does not compile: the compiler's first line of complaint.
    OutputError
        Where the cache cannot be written.
    """
    folder = _cache(env) / _key(compiler, env)
    path = folder / LIBRARY
    if path.is_file() and path.stat().st_uid == os.getuid():
        return str(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as work:
            made = Path(work) / LIBRARY
            _compile(compiler, env, work, str(made))
            made.replace(path)
    except OSError as error:
        text = f"cannot write {error.filename or folder}: {error.strerror}"
        raise OutputError(text) from None
    return str(path)


def _compile(compiler: Compiler, env: Mapping[str, str], work: str, made: str) -> None:
    """Compile with the MPI's headers; link with no MPI, since names of libraries differ."""
    thing = os.path.join(work, "nidmap_mpi.o")
    flags = (*_FLAGS, *shlex.split(env.get(FLAGS, "")))
    _call([compiler.path, *flags, "-c", str(SOURCE), "-o", thing], env)
    plain = shutil.which(env.get("CC", "") or "cc", path=env.get("PATH", os.defpath))
    linker = [plain or compiler.path, "-shared", "-o"]
    bare, keep = ["-nostdlib", "-x", "c", os.devnull], "-Wl,--no-as-needed,-z,lazy"
    empty = {name: os.path.join(work, name) for name in _SYSTEM}
    try:
        for name, path in empty.items():
            _call([*linker, path, f"-Wl,-soname,{name}", *bare], env)
        _call([*linker, made, "-nostdlib", thing, keep, *empty.values(), "-lgcc"], env)
        _call(["true"], {**env, "LD_PRELOAD": made, "LD_BIND_NOW": "1"})  # nothing is missing
    except LaunchError:
        _call([*linker, made, thing, "-ldl", "-lpthread"], env)


def _call(words: Sequence[str], env: Mapping[str, str]) -> None:
    done = subprocess.run(
        words, env=dict(env), capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        said = printable(next(iter(done.stderr.strip().splitlines()), "no reason"), 200)
        raise LaunchError(f"{printable(words[0], 60)} cannot build the recorder: {said}")


def _cache(env: Mapping[str, str]) -> Path:
    home = Path(env.get("HOME", tempfile.gettempdir())) / ".cache"
    return Path(env.get("XDG_CACHE_HOME") or home) / "nidmap" / "preload"


def _key(compiler: Compiler, env: Mapping[str, str]) -> str:
    """Return the name of a build: the interface, the architecture, and a hash of what it is of."""
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
    """Return the line that compiles the library into a static program.

    Examples
    --------
    >>> link_line(Compiler("mpicc", "mpich", "4.0")).split()[:3]
    ['mpicc', '-O2', '-DNIDMAP_STATIC']
    """
    return f"{compiler.path} -O2 -DNIDMAP_STATIC -o app app.o {SOURCE}"
