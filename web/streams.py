"""Event streams: each viewer is told of a new state, by one task and no thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from web.live import Live

    Send = Callable[[dict[str, Any]], Awaitable[None]]
    Receive = Callable[[], Awaitable[dict[str, Any]]]

__all__ = ["Streams"]

#: Seconds between two signs of life.
PING = 15.0


class Streams:
    """All open streams of one server.

    A stream that falls behind is told the newest state only, so that none
    holds more than one event.

    Parameters
    ----------
    live : Live
    most : int
        Streams at once.
    """

    def __init__(self, live: Live, most: int = 256) -> None:
        self.live = live
        self.most = most
        self._open: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        live.listen(self.wake)

    def __len__(self) -> int:
        return len(self._open)

    @property
    def full(self) -> bool:
        """Whether no more may be opened."""
        return len(self._open) >= self.most

    def wake(self) -> None:
        """Tell all streams; may be called from any thread."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._set)

    def close(self) -> None:
        """End all streams."""
        self._closing = True
        self.wake()

    def _set(self) -> None:
        for event in self._open:
            event.set()

    async def serve(self, send: Send, receive: Receive, headers: list[tuple[bytes, bytes]]) -> None:
        """Send events until the other end hangs up or the server is stopped."""
        self._loop = asyncio.get_running_loop()
        event = asyncio.Event()
        event.set()
        self._open.add(event)
        gone = asyncio.ensure_future(_hangs_up(receive))
        gone.add_done_callback(lambda _: event.set())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send(_chunk(b"retry: 3000\n\n"))
            while not (gone.done() or self._closing):
                try:
                    await asyncio.wait_for(event.wait(), PING)
                    event.clear()
                    if gone.done() or self._closing:
                        break
                    await send(_chunk(self.live.event))
                except TimeoutError:
                    await send(_chunk(b": ping\n\n"))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._open.discard(event)
            gone.cancel()


def _chunk(raw: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": raw, "more_body": True}


async def _hangs_up(receive: Receive) -> None:
    """Return when the other end has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass
