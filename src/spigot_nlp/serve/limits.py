"""Clients that are slow, silent, garbled, too many or not meant: what uvicorn leaves to a proxy is done here."""

import asyncio
import fnmatch
import hashlib
import hmac
import ipaddress
import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import h11
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol
from uvicorn.server import ServerState

from spigot_nlp.serve.api import Metrics
from spigot_nlp.serve.requests import Refused
from spigot_nlp.serve.responses import ErrorResponse
from spigot_nlp.serve.settings import Limits, Settings

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "content-type": "application/json; charset=utf-8",
}
"""What every reply says unless it says otherwise."""

_PATHS = {"/api/parse", "/api/systems"}  # that are counted by themselves
_PATIENT = (h11.IDLE, h11.SEND_RESPONSE)  # states in which something can still be said
_log = logging.getLogger("spigot_nlp.serve")


def reply(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A reply with headers that tell browsers to be careful."""
    return Response(body, status, {**HEADERS, **(headers or {})})


def refusal(status: int, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    """One sentence about why there is no answer."""
    later = {"retry-after": "1"} if status == 503 else {}
    body = ErrorResponse(error=reason).model_dump_json(ensure_ascii=True).encode()
    return reply(body, status, {**later, **(headers or {})})


def is_loopback(host: str) -> bool:
    """Whether an address is one that only this machine can reach.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


def is_named(host: str, names: tuple[str, ...]) -> bool:
    """Whether a Host header, with any port, is one of these names; `localhost` is whatever names this machine.

    Example:
        >>> is_named("127.0.0.1:8000", ("localhost",)), is_named("localhost.example", ("localhost",))
        (True, False)
        >>> is_named("a.example.org", ("*.example.org",))
        True
    """
    name = host.rsplit(":", 1)[0] if not host.endswith("]") and ":" in host else host
    name = name.strip().lower().removeprefix("[").removesuffix("]")
    if "localhost" in names and (name.endswith(".localhost") or is_loopback(name)):
        return True
    return any(fnmatch.fnmatchcase(name, one.lower()) for one in names)


class Guard:
    """Lets requests through that are whole, meant for this server and allowed; says to the others why they are not.

    Whatever goes wrong behind it becomes one sentence, too: what is known about it stands in the log.

    Args:
        app: The application behind it.
        settings: Who may ask, and how much.
        metrics: Where to count.
    """

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self.app, self._settings, self._metrics = app, settings, metrics
        self._token = None if settings.token is None else _digest(settings.token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, watched, started = scope["path"], _Watched(scope, receive, send), time.perf_counter()
        with self._metrics.in_progress.track_inprogress():
            await self._answer(scope, watched)
        self._metrics.requests.labels(path if path in _PATHS else "other", watched.status or "none").inc()
        if path == "/api/parse":
            self._metrics.seconds.observe(time.perf_counter() - started)

    async def _answer(self, scope: Scope, watched: "_Watched") -> None:
        try:
            self._check(scope)
            await self.app(scope, watched.receive, watched.send)
            return
        except Refused as problem:
            found = refusal(
                problem.status, problem.reason, {"www-authenticate": "Bearer"} if problem.status == 401 else {}
            )
        except ClientDisconnect:  # no news
            return
        except Exception as error:
            _log.exception("a request to %s failed", scope["path"][:80].encode("ascii", "replace").decode())
            found = refusal(500, f"the server made a mistake ({type(error).__name__}); its log has more.")
        if not watched.status:
            await found(scope, watched.receive, watched.send)

    def _check(self, scope: Scope) -> None:
        headers, limits = Headers(scope=scope), self._settings.limits
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > limits.head:
            raise Refused(414, f"the address has more than {limits.head} bytes; send less.")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > limits.head:
            raise Refused(431, f"the headers have more than {limits.head} bytes; send less.")
        if len(headers) > limits.headers:
            raise Refused(431, f"the request has {len(headers)} headers; {limits.headers} are allowed, so send fewer.")
        self._check_host(scope, headers)
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            self._check_origin(headers)
        path = scope["path"]
        if self._token is not None and (path.startswith("/api/") or path == "/metrics"):
            kind, _, given = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(_digest(given.strip()), self._token):
                raise Refused(401, "this needs the token of this server; send it as Authorization: Bearer TOKEN.")

    def _check_host(self, scope: Scope, headers: Headers) -> None:
        hosts = headers.getlist("host")
        if len(hosts) > 1 or (not hosts and scope.get("http_version") == "1.1"):
            raise Refused(400, f"the request names {'several hosts' if hosts else 'no host'}; send one Host.")
        server = scope.get("server")
        local = self._token is None and server is not None and is_loopback(str(server[0]))
        names = self._settings.hosts or (("localhost",) if local else ("*",))
        if hosts and not is_named(hosts[0], names):
            raise Refused(403, f"{hosts[0][:80]!r} is no name of this server; ask it as {' or '.join(names)}.")

    def _check_origin(self, headers: Headers) -> None:
        """A page elsewhere may not have a browser ask on its behalf. Browsers say so themselves where they are sure of
        the connection, and elsewhere name the origin."""
        origin, site, allowed = headers.get("origin"), headers.get("sec-fetch-site"), self._settings.origins
        if origin is None or origin in allowed or "*" in allowed or site in ("same-origin", "none"):
            return
        if site is not None or urlsplit(origin).netloc != headers.get("host"):
            raise Refused(403, f"a page of {origin[:80]} may not ask this; the server can allow it as an origin.")


class _Watched:
    """What passes between a server and an application, seen from outside."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.unread = any(
            name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
            for name, value in scope["headers"]
        )
        self.status = 0
        self._keeps = scope.get("http_version", "1.1").startswith("1.")
        self._receive, self._send = receive, send

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            self.unread = False
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            ending = [(b"connection", b"close")] if self.unread and self._keeps else []  # nobody will read the rest
            message = {**message, "headers": [*message.get("headers", ()), *ending]}  # of its own: others may add more
        await self._send(message)


async def read_body(request: Request, most: int, patience: float) -> bytes:
    """The body of a request, if it says how long it is, is not too long, and comes in time.

    Args:
        request: The request.
        most: How many bytes it may have.
        patience: How many seconds it may take.

    Raises:
        Refused: If it is not so.
    """
    lengths = request.headers.getlist("content-length")
    if "transfer-encoding" in request.headers or not lengths:
        raise Refused(411, "the length of the body is not known; send Content-Length.")
    if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()) or len(lengths[0]) > 18:
        raise Refused(400, f"Content-Length is {', '.join(lengths)[:40]!r}; it must be one whole number.")
    length, body = int(lengths[0]), bytearray()
    # A client that is still sending would not see that it sends too much: for a while the rest is read, and dropped.
    dropped = 16 * most if length > most and "expect" not in request.headers else 0
    try:
        async with asyncio.timeout(patience):
            if length <= most or dropped:
                async for piece in request.stream():
                    if length <= most:
                        body += piece
                    elif (dropped := dropped - len(piece)) < 0:
                        break
                    if len(body) > length:
                        raise Refused(400, f"the body has more than the {length} bytes that were announced.")
    except TimeoutError:
        if length <= most:
            raise Refused(408, f"the body did not arrive within {patience:g} seconds.") from None
    if length > most:
        raise Refused(413, f"the request has {length} bytes; {most} are allowed, so send less at a time.")
    if len(body) < length:
        raise Refused(400, f"the body ends after {len(body)} of {length} bytes.")
    return bytes(body)


def _digest(token: str) -> bytes:
    """Of one length for all tokens, so that comparing takes equally long for all."""
    return hashlib.sha256(token.encode()).digest()


class Protocol(H11Protocol):
    """One connection of uvicorn, with limits on how long its client may take and how many there may be.

    uvicorn takes it by `--http spigot_nlp.serve.limits:Protocol`; `spigot serve` uses it anyway. The limits are those
    of the application.
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
        self._reading = self._writing = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (as uvicorn has it)
        """Begin to wait. Those who are too many are told so, and if far too many, not even that."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(1, 0)  # to be told as soon as a client does not fetch what is written
        if len(self.connections) > 2 * self._limits.connections or self.app_state.get("closing"):
            transport.abort()
        elif len(self.connections) > self._limits.connections:
            self.app = _full
        self._reading = self._timer(self._reading, self._limits.idle, transport.close)

    def data_received(self, data: bytes) -> None:
        """The headers of a request must all be here in time, however a client divides them."""
        if not self._begun and (self.cycle is None or self.cycle.response_complete):
            self._begun = True
            self._reading = self._timer(self._reading, self._limits.patience, self._late)
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:  # the application has it now
            self._begun = False
            self._reading = self._timer(self._reading)

    def pause_writing(self) -> None:
        """The client must fetch what is written in time, too."""
        super().pause_writing()
        self._writing = self._timer(self._writing, self._limits.patience, self.transport.abort)

    def resume_writing(self) -> None:
        """It has."""
        super().resume_writing()
        self._writing = self._timer(self._writing)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._reading, self._writing = self._timer(self._reading), self._timer(self._writing)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Take no more requests; the answer under way is the last one, and a stream ends with the next piece."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self.cycle.keep_alive = False
            self.cycle.scope.get("state", {})["closing"] = True

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

    def _timer(
        self, before: asyncio.TimerHandle | None, seconds: float = 0, then: Callable[[], object] | None = None
    ) -> asyncio.TimerHandle | None:
        """A timer in place of the one before."""
        if before is not None:
            before.cancel()
        return None if then is None else self.loop.call_later(seconds, then)

    def _late(self) -> None:
        self._refuse(408, f"the request did not arrive within {self._limits.patience:g} seconds.")

    def _refuse(self, status: int, reason: str) -> None:
        if self.cycle is not None:  # the application may have begun: what it says comes too late
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.transport.is_closing():
            return
        if self.conn.our_state in _PATIENT:
            found = refusal(status, reason, {"connection": "close"})
            headers = [*self.server_state.default_headers, *found.raw_headers]
            events = (
                h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status]),
                h11.Data(data=bytes(found.body)),
                h11.EndOfMessage(),
            )
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


async def _full(scope: Scope, receive: Receive, send: Send) -> None:
    found = refusal(503, "too many connections are open; try again soon.", {"connection": "close"})
    await found(scope, receive, send)
