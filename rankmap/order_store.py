"""Orders that took a while to think out, kept in the user's cache directory.

``nidmap order`` writes them and ``nidmap run`` takes them, so that a job whose
order was made beforehand, or by an earlier run, starts without thinking. An
order is found by all that it was made from: nodes, ranks a node, pattern,
strategy, what else is said of the job, the machine with its figures, and the
files that these name. One that there was too little time for is taken only by
those who have no more.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from placement.errors import NidmapError
from placement.support.user_cache import user_cache
from rankmap.order import Order
from rankmap.slots import Slots

__all__ = ["Wish", "arrange_and_store", "stored_order"]

#: Names the directory of the orders; none are kept where it is empty.
FOLDER = "NIDMAP_ORDERS"

#: Processor seconds from which an order is worth keeping, and how many are kept.
WORTH, MOST = 0.2, 200

#: What is kept of an order beside its slots.
_WORDS = ("strategy", "pattern", "remark")


@dataclass(frozen=True, slots=True)
class Wish:
    """What order is wanted.

    Attributes
    ----------
    pattern, strategy : str
    job : mapping of str to anything
        What else is said of what the job sends (`rankmap.search.job.KEYS`).
    seconds : float
        Of processor time that there are for it.
    machine_specs : tuple of str
        As ``-m`` takes them.
    """

    pattern: str
    strategy: str
    job: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = math.inf
    machine_specs: tuple[str, ...] = ()


def stored_order(slots: Slots, wish: Wish) -> Order | None:
    """Return the order that is kept for these slots; None where none is, or more time may help."""
    path = _path(slots, wish)
    return _read(path, slots, wish.seconds) if path else None


def arrange_and_store(slots: Slots, wish: Wish) -> Order:
    """Return a new order, and keep it if it took more than `WORTH` seconds of work.

    Raises
    ------
    NidmapError
        A pattern or a strategy that cannot be.
    """
    from rankmap.search.by_strategy import order_by_strategy

    began = time.process_time()
    made = order_by_strategy(slots, wish.pattern, wish.strategy, wish.job, wish.seconds)
    path = _path(slots, wish)
    if path and time.process_time() - began >= WORTH:
        with contextlib.suppress(OSError):
            _write(path, made, wish.seconds)
    return made


def _path(slots: Slots, wish: Wish) -> str:
    """Return where the order of a job is kept, '' where none are."""
    folder = user_cache("orders", FOLDER)
    others = wish.job.get("background")
    if not folder or "-" in (*wish.machine_specs, others) or others == "slurm":
        return ""
    named = (wish.pattern, wish.strategy, *wish.machine_specs, others or "")
    key = [
        os.stat(__file__).st_mtime_ns,  # another installation may know better orders
        slots.names.tolist(),
        slots.counts.tolist(),
        wish.strategy,
        wish.pattern,
        sorted(wish.job.items()),
        list(wish.machine_specs),
        _figures(slots),
        [_file_state(spec) for spec in named],
    ]
    text = json.dumps(key, default=repr)
    return os.path.join(folder, f"{sha256(text.encode()).hexdigest()[:32]}.json")


def _figures(slots: Slots) -> list[Any]:
    """Return what is stated of the machine: bandwidths, routing, MPI, what a site says else."""
    if slots.machine is None:
        return []
    topology = slots.machine.topology
    stated = (sorted(x.items()) for x in (topology.bandwidth, topology.parameters))
    return [topology.wiring, *stated, slots.machine.coords[slots.rows].tolist()]


def _file_state(spec: str) -> list[tuple[str, int, int]]:
    """Return size and time of the files that a specification names (``graph:FILE``, a dump)."""
    found = []
    for word in {spec, spec.partition(":")[2], *re.split("[:,=]", spec)}:
        with contextlib.suppress(OSError, ValueError):
            state = os.stat(word)
            found.append((os.path.abspath(word), state.st_size, state.st_mtime_ns))
    return sorted(found)


def _read(path: str, slots: Slots, seconds: float) -> Order | None:
    """Return a kept order; None where there is none, or one that more seconds might better.

    What is there may also be no order of these slots.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, NidmapError):
        with open(path, encoding="utf-8") as stream:
            held = json.load(stream)
        if not held["finished"] and held["seconds"] < seconds:
            return None
        row = np.array(held["slots"], dtype=np.int64)
        strategy, pattern, remark = (str(held[name]) for name in _WORDS)
        return Order(row, slots, strategy, pattern, remark, held["optimised"])
    return None


def _write(path: str, made: Order, seconds: float) -> None:
    """Keep an order, whole or not at all, and let go of the oldest."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    optimised = made.optimised
    held = {
        "slots": made.slots.tolist(),
        **{name: getattr(made, name) for name in _WORDS},
        "optimised": optimised,
        "finished": optimised is None or optimised["finished"],
        "seconds": min(seconds, 1e9),
    }
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".part", delete=False) as stream:
        json.dump(held, stream)
    os.replace(stream.name, path)
    with os.scandir(folder) as entries:
        oldest = sorted((entry.stat().st_mtime, entry.path) for entry in entries)
    for _, old in oldest[:-MOST]:
        os.unlink(old)
