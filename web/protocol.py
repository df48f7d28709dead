"""Connections that must come to the point, and a server that ends its streams first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from web.app import EVENTS
from web.asgi import no_request

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

__all__ = ["Protocol", "Server"]

#: Seconds in which a request's head must have come.
PATIENCE = 20.0

#: Seconds that the sender of what is no request has to read that it is none.
_LINGER = 2.0

#: Connections at once; more are cut.
CONNECTIONS = 1500


class Protocol(H11Protocol):
    """A connection whose requests must come in time."""

    refused = False
    since = 0.0

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request; too many connections are cut."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.abort()
            return
        self.since = self.loop.time()
        self.loop.call_later(PATIENCE, self._patience_ends)

    def data_received(self, data: bytes) -> None:
        """Take what has come, unless it was refused."""
        if not self.refused:
            super().data_received(data)

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio asks for a bool
        """Answer first where the other end only says that it has sent everything."""
        answering = self.cycle is not None and not self.cycle.response_complete
        return bool(answering and self.cycle.scope["path"] != EVENTS)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, with the headers that every answer has."""
        del msg
        self.refused = True
        self.transport.write(no_request())
        if self.transport.can_write_eof():
            self.transport.write_eof()  # closed at once, the answer would be lost unread
        self.loop.call_later(_LINGER, self.transport.close)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self.since = self.loop.time()

    def _patience_ends(self) -> None:
        """Hang up where nothing whole has come for too long; one timer a connection looks."""
        if self.transport.is_closing():
            return
        answering = self.cycle is not None and not self.cycle.response_complete
        left = PATIENCE if answering else self.since + PATIENCE - self.loop.time()
        if left <= 0:
            self.transport.close()
        else:
            self.loop.call_later(left, self._patience_ends)


class Server(uvicorn.Server):
    """A server that ends its streams before it waits for its connections.

    Parameters
    ----------
    config : uvicorn.Config
    ending : callable
        Ends the streams.
    """

    def __init__(self, config: uvicorn.Config, ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._ending = ending

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then everything else."""
        self._ending()
        await asyncio.sleep(0.05)
        await super().shutdown(sockets)
