"""One connection: what a client sends is checked before anything is done about it."""

import io
import ipaddress
import json
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import spigot
from spigot.serve.query import Limits, Refused, read_json
from spigot.serve.resources import Resource

if TYPE_CHECKING:
    from spigot.serve.server import Server

_JSON = "application/json"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


class _Reader(io.RawIOBase):
    """Reads from a client that must get to the end of its request in time, however it divides it."""

    def __init__(self, connection: socket.socket, limits: Limits) -> None:
        self._connection, self._limits = connection, limits
        self._started: float | None = None

    def next_request(self) -> None:
        """Wait as long as a connection may be silent; the clock starts with the first byte."""
        self._started = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._limits.idle
        if self._started is not None:
            left = self._started + self._limits.patience - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long to arrive.")
        self._connection.settimeout(left)
        count = self._connection.recv_into(buffer)
        if self._started is None:
            self._started = time.monotonic()
        return count


class Handler(BaseHTTPRequestHandler):
    """One connection. Requests are answered one after the other until the client hangs up or does something wrong.

    Example:
        >>> from http.client import HTTPConnection
        >>> from spigot.serve.server import Server
        >>> with Server([], port=0) as server, server.running():  # a server gives each connection a handler
        ...     client = HTTPConnection(server.server_name, server.server_port)
        ...     client.request("DELETE", "/health")
        ...     print(client.getresponse().status)
        405
    """

    server: "Server"  # pyright: ignore[reportIncompatibleVariableOverride] (a server is given to its own handlers only)
    protocol_version = "HTTP/1.1"
    server_version = f"spigot/{spigot.__version__}"
    sys_version = ""
    disable_nagle_algorithm = True
    _allow = "GET, HEAD"

    def setup(self) -> None:
        """Read by way of a `_Reader`."""
        super().setup()
        self._reader = _Reader(self.connection, self.server.limits)
        self.rfile.close()
        self.rfile = io.BufferedReader(self._reader)

    def handle_one_request(self) -> None:
        """Wait for a request and answer it."""
        self._reader.next_request()
        super().handle_one_request()

    def do_GET(self) -> None:
        """Give what there is at a path."""
        self._answer(self._get)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Parse."""
        self._answer(self._post)

    def do_PUT(self) -> None:
        """Refuse what nothing here can be asked by."""
        self._answer(self._no_method)

    do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = do_PUT

    def _answer(self, respond: Callable[[str], Resource]) -> None:
        """Send what `respond` makes of the path, or what is wrong."""
        status = HTTPStatus.OK
        try:
            self._check_host()
            found = respond(self.path.split("?")[0].split("#")[0])
        except Refused as refusal:
            status, found = HTTPStatus(refusal.status), as_json({"error": refusal.reason})
        except TimeoutError:
            self.close_connection = True
            status = HTTPStatus.REQUEST_TIMEOUT
            found = as_json({"error": f"the body did not arrive within {self.server.limits.patience:g} seconds."})
        except OSError:
            raise
        except Exception as error:
            traceback.print_exc()
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            found = as_json({"error": f"the server made a mistake ({type(error).__name__}); its log has more."})
        self._send(status, found)

    def _get(self, path: str) -> Resource:
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # nobody is going to read it
        if path in self.server.resources:
            return self.server.resources[path]
        answers = {"/api/systems": self.server.api.systems, "/health": self.server.api.health}
        if path in answers:
            return as_json(answers[path]())
        if path == "/api/parse":
            self._allow = "POST"
            raise Refused(405, "/api/parse is asked by POST with a JSON object; see the page for an example.")
        raise Refused(404, f"there is nothing at {path[:80]}; there are /, /health, /api/systems and /api/parse.")

    def _post(self, path: str) -> Resource:
        body = self._body()
        if path == "/api/parse":
            kind = self.headers.get_content_type()
            if kind != _JSON:  # a page elsewhere could send other kinds without asking first
                raise Refused(415, f"the body is {kind[:80]}; send {_JSON}.")
            return as_json(self.server.api.parse(read_json(body)))
        if path in (*self.server.resources, "/api/systems", "/health"):
            return self._no_method(path)
        raise Refused(404, f"there is nothing at {path[:80]}; requests go to /api/parse.")

    def _no_method(self, path: str) -> Resource:
        self.close_connection = True  # whatever body there is stays unread
        self._allow = "POST" if path == "/api/parse" else "GET, HEAD"
        raise Refused(405, f"{self.command[:20]} is not allowed at {path[:80]}; use {self._allow.split(',')[0]}.")

    def _body(self) -> bytes:
        lengths = self.headers.get_all("Content-Length") or []
        if "Transfer-Encoding" in self.headers or not lengths:
            self.close_connection = True
            raise Refused(411, "the length of the body is not known; send Content-Length.")
        if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()) or len(lengths[0]) > 18:
            self.close_connection = True
            raise Refused(400, f"Content-Length is {', '.join(lengths)[:40]!r}; it must be one whole number.")
        length, most = int(lengths[0]), self.server.limits.body
        if length > most:
            self.close_connection = True
            self._drain(length)
            raise Refused(413, f"the request has {length} bytes; {most} are allowed, so send less at a time.")
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True
            raise Refused(400, f"the body ends after {len(body)} of {length} bytes.")
        return body

    def _drain(self, length: int) -> None:
        """Read on for a while: a client that is still sending would never see the answer."""
        left = min(length, 16 * self.server.limits.body)
        with suppress(TimeoutError):
            while left > 0 and (piece := self.rfile.read1(min(left, 65536))):
                left -= len(piece)

    def _check_host(self) -> None:
        hosts = self.headers.get_all("Host") or [""]
        host = hosts[0]
        if len(hosts) > 1 or (self.request_version == "HTTP/1.1" and not host):
            self.close_connection = True
            raise Refused(400, f"the request names {'several hosts' if host else 'no host'}; send one Host.")
        if self.server.is_local and host and not names_loopback(host):
            self.close_connection = True
            raise Refused(403, f"{host[:80]!r} is not this machine; open {self.server.address} instead.")

    def _send(self, status: HTTPStatus, found: Resource) -> None:
        self.connection.settimeout(self.server.limits.patience)
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", found.policy or _NOTHING)
        self.send_header("Content-Type", found.kind)
        self.send_header("Content-Length", str(len(found.body)))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", self._allow)
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "1")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(found.body)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class finds wrong with a request, said in our manner."""
        self.close_connection = True
        self.request_version = self.protocol_version  # what is not understood counts as a version without headers
        reason = message or HTTPStatus(code).phrase
        self._send(HTTPStatus(code), as_json({"error": f"{reason[:200]}."}))

    def log_message(self, format: str, *arguments: Any) -> None:
        """Requests are not logged: what people type is theirs."""


def as_json(value: object) -> Resource:
    """A value as an answer.

    Example:
        >>> as_json({"error": "naïve"}).body
        b'{"error": "na\\\\u00efve"}'
    """
    return Resource(f"{_JSON}; charset=utf-8", json.dumps(value, allow_nan=False).encode("ascii"))


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


def names_loopback(host: str) -> bool:
    """Whether a Host header names this machine, with any port: it may be forwarded from another one.

    Example:
        >>> names_loopback("localhost:8000"), names_loopback("localhost.example:8000")
        (True, False)
    """
    name = host.rsplit(":", 1)[0] if not host.endswith("]") and ":" in host else host
    name = name.strip().lower().removeprefix("[").removesuffix("]")
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)
