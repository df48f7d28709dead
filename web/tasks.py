"""What a worker can be asked for, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement.machine import Machine
    from web.snapshot import Snapshot

__all__ = ["TASKS"]


def _figure(name: str) -> Callable[..., bytes]:
    """Return the task that answers one of `web.figures` as JSON."""

    def task(machine: Machine, free: bytes, asked: dict[str, Any]) -> bytes:
        from web import figures

        mask = np.unpackbits(np.frombuffer(free, dtype=np.uint8), count=len(machine))
        return msgspec.json.encode(getattr(figures, name)(machine, mask.astype(bool), asked))

    return task


def _resolve(machine: Machine, text: str) -> bytes:
    from web.resolve import resolve

    return msgspec.json.encode(resolve(machine, text))


def _ask(machine: Machine, sources: tuple[str, ...], users: bool) -> Snapshot:
    from web.sources import ask

    return ask(machine, sources, users)


def _takeaway(machine: Machine, now: Snapshot, wanted: dict[str, Any]) -> tuple[bytes, str]:
    from web.takeaway import made

    return made(machine, now, wanted)


TASKS: dict[str, Callable[..., Any]] = {
    **{name: _figure(name) for name in ("describe", "compare", "plan", "order", "hops")},
    "resolve": _resolve,
    "ask": _ask,
    "takeaway": _takeaway,
}
