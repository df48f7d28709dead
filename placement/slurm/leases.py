"""Nodes that somebody has plans for: leases of this user's plans, and lists of pending jobs.

A plan leaves a small file with its nodes, good for some minutes; until then no
other plan of the same user takes them for idle, on the same cluster (that of
``$SLURM_CONF``). Plans in flight wait for each other, so that two of them never
choose the same.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator

from placement.commands.common import write_output
from placement.errors import LaunchError, NidmapError
from placement.nodelist import NodeList
from placement.slurm.command import ask
from placement.support.user_cache import user_cache

__all__ = ["FOLDER", "SECONDS", "lease", "leased_nodes", "one_plan_at_a_time", "pinned_nodes"]

#: Names the directory of the leases; there are none where it is empty.
FOLDER = "NIDMAP_LEASES"

#: Seconds that a lease is good for.
SECONDS = 300.0

#: Seconds that a plan waits for another one of the same user.
_PATIENCE = 30.0


def _folder() -> str:
    return user_cache("leases", FOLDER)


def _cluster() -> str:
    """Return what tells clusters with nodes of the same names apart; '' for the usual one."""
    return os.environ.get("SLURM_CONF", "")


@contextlib.contextmanager
def one_plan_at_a_time() -> Iterator[None]:
    """Hold off other plans of this user inside the block; where that cannot be, go on without."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            folder = _folder()
            if folder:
                os.makedirs(folder, mode=0o700, exist_ok=True)
                lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
                stack.callback(os.close, lock)  # which lets go of it, too
                _wait_for(lock)
        yield


def _wait_for(lock: int) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        else:
            return


def lease(nodes: NodeList, seconds: float = SECONDS) -> None:
    """Keep nodes from this user's other plans for some time, where that can be written."""
    folder = _folder()
    if not folder:
        return
    path = os.path.join(folder, f"{os.urandom(8).hex()}.json")
    document = {"until": time.time() + seconds, "cluster": _cluster(), "nodes": nodes.fold()}
    with contextlib.suppress(OSError, NidmapError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        write_output(json.dumps(document), path)


def leased_nodes() -> frozenset[str]:
    """Return the nodes that this user's other plans hold; leases that are over are removed."""
    found: set[str] = set()
    with contextlib.suppress(OSError), os.scandir(_folder() or os.devnull) as entries:
        for path in [entry.path for entry in entries if entry.name.endswith(".json")]:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, NidmapError):
                with open(path, encoding="utf-8") as stream:
                    held = json.load(stream)
                if held["until"] <= time.time():
                    os.unlink(path)
                elif held.get("cluster", "") == _cluster():
                    found.update(NodeList.parse(held["nodes"]))
    return frozenset(found)


def pinned_nodes() -> frozenset[str]:
    """Return the nodes that pending jobs name, anybody's; none where Slurm does not say."""
    with contextlib.suppress(LaunchError, NidmapError):
        lines = ask(["squeue", "-h", "-t", "PD", "-o", "%n"]).output.split()
        return frozenset(name for line in lines for name in NodeList.parse(line))
    return frozenset()
