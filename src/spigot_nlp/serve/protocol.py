"""Connections that are slow, silent, garbled or too many: what uvicorn leaves to a proxy is done here."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from spigot_nlp.serve.query import Limits
from spigot_nlp.serve.replies import refusal

_PATIENT = (h11.IDLE, h11.SEND_RESPONSE)  # states in which something can still be said


class Protocol(H11Protocol):
    """One connection of uvicorn, with limits on how long its client may take and how many there may be.

    uvicorn takes it by `--http spigot_nlp.serve.protocol:Protocol`; `spigot serve` uses it anyway. The limits are those
    of the application.

    Example:
        >>> issubclass(Protocol, H11Protocol)
        True
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits: Limits = app_state.get("limits", Limits())
        self._begun = False  # the first byte of a request is here, but not yet all of its headers
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (as uvicorn has it)
        """Begin to wait. Those who are too many are told so, and if far too many, not even that."""
        super().connection_made(transport)
        if len(self.connections) > 2 * self._limits.connections:
            transport.abort()
            return
        if len(self.connections) > self._limits.connections:
            self.app = _full
        self._wait(self._limits.idle, transport.close)

    def data_received(self, data: bytes) -> None:
        """The headers of a request must all be here in time, however a client divides them."""
        if not self._begun and (self.cycle is None or self.cycle.response_complete):
            self._begun = True
            self._wait(self._limits.patience, self._late)
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:  # the application has it now
            self._begun = False
            self._wait(0, None)

    def on_response_complete(self) -> None:
        """The client must fetch its answer in time, too."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self.loop.call_later(self._limits.patience, self._forgotten)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._wait(0, None)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What is no request of HTTP is told so in our manner."""
        error = sys.exception()
        status = getattr(error, "error_status_hint", 400)
        reason = f"the request is not understood ({str(error or msg).rstrip('.')}); send HTTP/1.1."
        if status == 431:
            status = 431 if b"\n" in self.conn.trailing_data[0] else 414
            what = "headers have" if status == 431 else "first line has"
            reason = f"the {what} more than {self._limits.head} bytes; send less."
        self._refuse(status, reason)

    def _wait(self, seconds: float, then: Callable[[], object] | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if then is None else self.loop.call_later(seconds, then)

    def _late(self) -> None:
        self._refuse(408, f"the request did not arrive within {self._limits.patience:g} seconds.")

    def _forgotten(self) -> None:
        if self.transport.get_write_buffer_size() and self.cycle.response_complete:
            self.transport.abort()

    def _refuse(self, status: int, reason: str) -> None:
        if self.transport.is_closing():
            return
        if self.conn.our_state in _PATIENT:
            found = refusal(status, reason, {"connection": "close"})
            headers = [*self.server_state.default_headers, *found.raw_headers]
            phrase = {408: b"Request Timeout", 414: b"URI Too Long", 431: b"Request Header Fields Too Large"}
            events = (
                h11.Response(status_code=status, headers=headers, reason=phrase.get(status, b"Bad Request")),
                h11.Data(data=bytes(found.body)),
                h11.EndOfMessage(),
            )
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


async def _full(scope: Scope, receive: Receive, send: Send) -> None:
    found = refusal(503, "too many connections are open; try again soon.", {"connection": "close"})
    await found(scope, receive, send)
