"""What a client sends is checked before anything is done about it."""

import asyncio
import hashlib
import hmac
import logging
import time
from contextlib import suppress
from typing import Any

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spigot_nlp.serve.addresses import is_loopback, names_loopback
from spigot_nlp.serve.metrics import Metrics
from spigot_nlp.serve.query import Limits, Refused
from spigot_nlp.serve.replies import refusal
from spigot_nlp.serve.settings import Settings

_METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"}
_VERSIONS = {"1.0", "1.1", "2", "3"}  # as servers of ASGI call them
_log = logging.getLogger("spigot_nlp.serve")


class Guard:
    """Lets requests through that are whole, meant for this server and allowed; says to the others why they are not.

    Whatever goes wrong behind it becomes one sentence, too: what is known about it stands in the log.

    Args:
        app: The application behind it.
        settings: Who may ask, and how much.
        metrics: Where to count.

    Example:
        >>> async def refuse(scope, receive, send):
        ...     raise Refused(404, "there is nothing.")
        >>> async def send(message):
        ...     print(message.get("status") or message["body"].decode())
        >>> scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}
        >>> asyncio.run(Guard(refuse, Settings(), Metrics())(scope, lambda: None, send))
        404
        {"error": "there is nothing."}
    """

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self.app, self._settings, self._metrics = app, settings, metrics
        self._token = None if settings.token is None else _digest(settings.token.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        watched = _Watched(scope, receive, send)
        started = time.perf_counter()
        self._metrics.begin()
        try:
            await self._answer(scope, watched)
        finally:
            self._metrics.end(scope["path"], watched.status, time.perf_counter() - started)

    async def _answer(self, scope: Scope, watched: "_Watched") -> None:
        found: Response | None = None
        try:
            self._check(scope)
            await self.app(scope, watched.receive, watched.send)
        except Refused as problem:
            allowed = {"www-authenticate": "Bearer"} if problem.status == 401 else {}
            found = refusal(problem.status, problem.reason, allowed)
        except ClientDisconnect:  # no news
            return
        except Exception as error:
            _log.exception("a request to %s failed", scope["path"][:80].encode("ascii", "replace").decode())
            found = refusal(500, f"the server made a mistake ({type(error).__name__}); its log has more.")
        if found is not None and not watched.status:
            await found(scope, watched.receive, watched.send)

    def _check(self, scope: Scope) -> None:
        headers, limits = Headers(scope=scope), self._settings.limits
        if scope.get("http_version", "1.1") not in _VERSIONS:
            raise Refused(505, f"the request is one of HTTP {scope['http_version'][:20]}; send HTTP/1.1.")
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > limits.head:
            raise Refused(414, f"the address has more than {limits.head} bytes; send less.")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > limits.head:
            raise Refused(431, f"the headers have more than {limits.head} bytes; send less.")
        if len(headers) > limits.headers:
            raise Refused(431, f"the request has {len(headers)} headers; {limits.headers} are allowed, so send fewer.")
        if scope["method"] not in _METHODS:
            raise Refused(501, f"{scope['method'][:20]} is no method that is known here; use GET or POST.")
        self._check_host(scope, headers)
        path = scope["path"]
        if self._token is not None and (path.startswith("/api/") or path == "/metrics"):
            kind, _, given = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(_digest(given.strip().encode()), self._token):
                raise Refused(401, "this needs the token of this server; send it as Authorization: Bearer TOKEN.")

    def _check_host(self, scope: Scope, headers: Headers) -> None:
        hosts = headers.getlist("host")
        if len(hosts) > 1 or (not hosts and scope.get("http_version") == "1.1"):
            raise Refused(400, f"the request names {'several hosts' if hosts else 'no host'}; send one Host.")
        local = self._settings.local
        if local is None:
            server = scope.get("server")
            local = self._token is None and server is not None and is_loopback(str(server[0]))
        if local and hosts and not names_loopback(hosts[0]):
            raise Refused(403, f"{hosts[0][:80]!r} is not this machine; ask it as localhost instead.")


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


async def read_body(request: Request, limits: Limits) -> bytes:
    """The body of a request, if it says how long it is, is not too long, and comes in time.

    Args:
        request: The request.
        limits: What is allowed.

    Raises:
        Refused: If it is not so.

    Example:
        >>> async def receive():
        ...     return {"type": "http.request", "body": b"{}", "more_body": False}
        >>> scope = {"type": "http", "headers": [(b"content-length", b"2")]}
        >>> asyncio.run(read_body(Request(scope, receive), Limits()))
        b'{}'
    """
    lengths = request.headers.getlist("content-length")
    if "transfer-encoding" in request.headers or not lengths:
        raise Refused(411, "the length of the body is not known; send Content-Length.")
    if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()) or len(lengths[0]) > 18:
        raise Refused(400, f"Content-Length is {', '.join(lengths)[:40]!r}; it must be one whole number.")
    length = int(lengths[0])
    if length > limits.body:
        if "expect" not in request.headers:
            await _drain(request, limits)
        raise Refused(413, f"the request has {length} bytes; {limits.body} are allowed, so send less at a time.")
    body = bytearray()
    try:
        async with asyncio.timeout(limits.patience):
            async for piece in request.stream():
                body += piece
                if len(body) > length:
                    raise Refused(400, f"the body has more than the {length} bytes that were announced.")
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {limits.patience:g} seconds.") from None
    if len(body) < length:
        raise Refused(400, f"the body ends after {len(body)} of {length} bytes.")
    return bytes(body)


async def _drain(request: Request, limits: Limits) -> None:
    """Read on for a while: a client that is still sending would never see the answer."""
    left = 16 * limits.body
    with suppress(TimeoutError):
        async with asyncio.timeout(limits.patience):
            async for piece in request.stream():
                left -= len(piece)
                if left < 0:
                    break


class Origins(CORSMiddleware):
    """Lets pages of some other origins ask, and tells those of others so in one sentence.

    Example:
        >>> origins = Origins(Guard, allow_origins=["https://a.example"], allow_methods=["POST"])
        >>> asked = Headers({"origin": "https://b.example", "access-control-request-method": "POST"})
        >>> origins.preflight_response(asked).body
        b'{"error": "a page of https://b.example may not ask this (disallowed CORS origin)."}'
    """

    def preflight_response(self, request_headers: Headers, *more: Any, **other: Any) -> Response:
        """What a browser is told that asks on behalf of a page."""
        found = super().preflight_response(request_headers, *more, **other)
        if found.status_code < 400:
            return found
        kept = {name: value for name, value in found.headers.items() if name.startswith(("access-", "vary"))}
        origin, problem = request_headers.get("origin", "")[:80], bytes(found.body).decode()
        reason = f"a page of {origin} may not ask this ({problem[:1].lower()}{problem[1:]})."
        return refusal(found.status_code, reason, kept)


def _digest(token: bytes) -> bytes:
    """Of one length for all tokens, so that comparing takes equally long for all."""
    return hashlib.sha256(token).digest()
