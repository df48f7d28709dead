# SPDX-License-Identifier: Apache-2.0
"""Where numba caches compiled kernels, and whether numba is available at all.

Machine code is run as it is read, so only a folder is used that belongs to this
user and that nobody else may write to. It is next to the package where that can be
written, else in the user's cache directory, else in the temporary folder. Its name
holds a hash of the kernels' sources: numba itself asks only whether the file of the
kernel that is called has changed, not the files of what that kernel calls.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

#: Of the kernels that are called from Python those with most others in them: their file and name.
ENTRIES = ("bisection.bisect", "exchanges.replace_ranks")

#: How a user gets numba.
INSTALL = "pip install 'nidmap[fast]'"


def numba_installed() -> bool:
    """Tell whether numba is installed and may compile (see numba's NUMBA_DISABLE_JIT)."""
    if os.environ.get("NUMBA_DISABLE_JIT", "") not in ("", "0"):
        return False
    try:
        return find_spec("numba") is not None
    except (ImportError, ValueError):
        return False


def kernels_compiled() -> bool:
    """Tell whether the kernels have been compiled, maybe by an earlier run, or are not wanted."""
    loaded = sys.modules.get("nidmap.rankmap.refine.bisection")
    if not numba_installed() or (loaded is not None and loaded.bisect.signatures):
        return True
    folder = cache_folder()
    return folder is not None and all(any(folder.glob(f"*/{name}-*.nbi")) for name in ENTRIES)


def remark() -> str:
    """Return a remark on how graphs are mapped here; '' for none."""
    if not numba_installed():
        return f"numba is not installed: mapped with less search ({INSTALL})"
    folder = cache_folder()
    if folder is None:
        return "kernels are recompiled each time: no folder for numba's cache is writable"
    if folder.parent == Path(tempfile.gettempdir()):
        return f"compiled kernels are kept in {folder}: ~/.cache cannot be written"
    return ""


@cache
def cache_folder() -> Path | None:
    """Return the folder for compiled kernels; None if there is no safe one."""
    name = f"kernels-{_fingerprint_kernels()}"
    named = os.environ.get("NUMBA_CACHE_DIR")
    candidates = [
        *([Path(named) / name] if named else []),
        Path(__file__).parent / "__pycache__" / name,
        Path(user_cache(name)),
        Path(tempfile.gettempdir()) / f"nidmap-{os.geteuid()}-{name}",
    ]
    return next(filter(_is_safe, candidates), None)


def _is_safe(path: Path) -> bool:
    """Create a folder if necessary, and tell whether it belongs to this user alone."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError:
        return False
    private = stat.S_ISDIR(status.st_mode) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return private and status.st_uid == os.geteuid() and os.access(path, os.W_OK | os.X_OK)


def _fingerprint_kernels() -> str:
    """Return a hash of the kernels' sources, of Python and of the processor model."""
    digest = hashlib.sha256(sys.version.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        source = path.read_bytes()
        if b"refine.jit import" in source or path.name in ("budget.py", "jit.py"):
            digest.update(source)
    try:
        lines = Path("/proc/cpuinfo").read_bytes().split(b"\n\n")[0].split(b"\n")
    except OSError:
        lines = []
    for line in lines:
        if line.startswith((b"model name", b"flags", b"Features", b"cpu\t")):
            digest.update(line)
    return digest.hexdigest()[:16]


def user_cache(name: str) -> str:
    """Return the path of a folder in the user's cache, which may not exist."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "nidmap", name)
