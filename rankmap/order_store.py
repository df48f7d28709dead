"""Orders that took a while to think out, kept in the user's cache directory.

``nidmap order`` writes them and ``nidmap run`` takes them, so that a job whose
order was made beforehand, or by an earlier run, starts without thinking. An
order is found by all that it was made from: nodes, ranks a node, pattern,
strategy, machine, and the files that these name.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
import time
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import NidmapError
from rankmap.order import Order
from rankmap.orders import arrange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankmap.slots import Slots

__all__ = ["arrange_and_store", "stored_or_arranged"]

#: Names the directory of the orders; none are kept where it is empty.
FOLDER = "NIDMAP_ORDERS"

#: Processor seconds from which an order is worth keeping, and how many are kept.
WORTH, MOST = 0.2, 200

#: What is kept of an order beside its slots.
_WORDS = ("strategy", "pattern", "remark")

_SECONDS = re.compile(r"([:,])seconds=[0-9.e+-]+,?")


def stored_or_arranged(
    slots: Slots, pattern: str, strategy: str, machine_specs: Sequence[str] = ()
) -> Order:
    """Return the order that is kept for these slots, else a new one (`rankmap.orders.arrange`).

    Parameters
    ----------
    slots : Slots
    pattern, strategy : str
        How long a strategy may think (``seconds=``) does not matter for what is kept.
    machine_specs : sequence of str
        As ``-m`` takes them.

    Raises
    ------
    NidmapError
        A pattern or a strategy that cannot be, where nothing is kept.
    """
    path = _path(slots, pattern, strategy, machine_specs)
    found = _read(path, slots) if path else None
    return found or arrange_and_store(slots, pattern, strategy, machine_specs)


def arrange_and_store(
    slots: Slots, pattern: str, strategy: str, machine_specs: Sequence[str] = ()
) -> Order:
    """Return a new order, and keep it if it took more than `WORTH` seconds of work."""
    began = time.process_time()
    made = arrange(slots, pattern, strategy)
    path = _path(slots, pattern, strategy, machine_specs)
    if path and time.process_time() - began >= WORTH:
        with contextlib.suppress(OSError):
            _write(path, made)
    return made


def _path(slots: Slots, pattern: str, strategy: str, machine_specs: Sequence[str]) -> str:
    """Return where the order of a job is kept, '' where none are."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.environ.get(FOLDER, os.path.join(cache, "nidmap", "orders"))
    if not folder or "-" in machine_specs:
        return ""
    key = [
        os.stat(__file__).st_mtime_ns,  # another installation may know better orders
        slots.names.tolist(),
        slots.counts.tolist(),
        _SECONDS.sub(r"\1", strategy).rstrip(":,"),
        pattern,
        list(machine_specs),
        [_file_state(spec) for spec in (pattern, strategy, *machine_specs)],
    ]
    return os.path.join(folder, f"{sha256(json.dumps(key).encode()).hexdigest()[:32]}.json")


def _file_state(spec: str) -> list[tuple[str, int, int]]:
    """Return size and time of the files that a specification names (``graph:FILE``, a dump)."""
    found = []
    for word in {spec, spec.partition(":")[2], *re.split("[:,=]", spec)}:
        with contextlib.suppress(OSError, ValueError):
            state = os.stat(word)
            found.append((os.path.abspath(word), state.st_size, state.st_mtime_ns))
    return sorted(found)


def _read(path: str, slots: Slots) -> Order | None:
    """Return a kept order; None where there is none, or what is there is no order of the slots."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, NidmapError):
        with open(path, encoding="utf-8") as stream:
            held = json.load(stream)
        row = np.array(held["slots"], dtype=np.int64)
        return Order(row, slots, *(str(held[name]) for name in _WORDS))
    return None


def _write(path: str, made: Order) -> None:
    """Keep an order, whole or not at all, and let go of the oldest."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    held = {"slots": made.slots.tolist(), **{name: getattr(made, name) for name in _WORDS}}
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".part", delete=False) as stream:
        json.dump(held, stream)
    os.replace(stream.name, path)
    with os.scandir(folder) as entries:
        oldest = sorted((entry.stat().st_mtime, entry.path) for entry in entries)
    for _, old in oldest[:-MOST]:
        os.unlink(old)
