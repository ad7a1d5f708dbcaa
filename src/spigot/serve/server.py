"""The page and its interface over HTTP, for people one does not have to trust."""

import errno
import socket
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any

from spigot.serve.api import Api
from spigot.serve.handler import Handler, as_json, is_loopback
from spigot.serve.query import Limits
from spigot.serve.resources import resources
from spigot.serve.systems import Served


class Server(ThreadingHTTPServer):
    """Serves a page and the JSON interface until it is closed.

    Only what is named here can be fetched: no file is opened after the start. On a loopback address, requests that
    name another host are refused, so that no page elsewhere can reach it through a name of its own.

    Args:
        systems: What to ask.
        host: The address to listen at.
        port: The port; 0 takes any that is free.
        limits: How much a client may ask for.
        together: Whether requests that wait together are parsed together.

    Raises:
        OSError: If the port is taken, or the address is none of this machine.

    Example:
        >>> from urllib.request import urlopen
        >>> with Server([], port=0) as server, server.running():
        ...     print(urlopen(f"{server.address}/health").read().decode()[:15])
        {"status": "ok"
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        systems: Sequence[Served],
        host: str = "127.0.0.1",
        port: int = 8000,
        limits: Limits = Limits(),
        *,
        together: bool = True,
    ) -> None:
        family, where = _resolve(host, port)
        self.address_family = family
        self.is_local = is_loopback(where[0])
        self.limits = limits
        self.resources = resources()
        self._slots = threading.BoundedSemaphore(limits.connections)
        try:
            super().__init__(where, Handler)
        except OSError as error:
            raise _unusable(error, host, port) from None
        self.api = Api(systems, limits, together=together)

    def server_bind(self) -> None:
        """Take the port, without asking a name server what this machine is called."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    @property
    def address(self) -> str:
        """Where to point a browser."""
        host = self.server_name
        if self.address_family == socket.AF_INET6:
            host = f"[{'::1' if host == '::' else host}]"
        return f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{self.server_port}"

    @contextmanager
    def running(self) -> Iterator["Server"]:
        """Serve in another thread for as long as a `with` block lasts."""
        thread = threading.Thread(target=self.serve_forever, args=(0.05,), name="serving", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            thread.join()

    def server_close(self) -> None:
        """Give the port back and answer nobody any more."""
        super().server_close()
        if hasattr(self, "api"):
            self.api.close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection a thread, if there are not too many."""
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        try:
            request.settimeout(1)
            request.sendall(_full())
        except OSError:
            pass
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection until it ends."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up or fall silent are no news."""
        if not isinstance(sys.exception(), OSError):
            traceback.print_exc()


def _full() -> bytes:
    found = as_json({"error": "too many connections are open; try again soon."})
    head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: {found.kind}\r\nContent-Length: {len(found.body)}\r\n"
    return f"{head}Retry-After: 1\r\nConnection: close\r\n\r\n".encode() + found.body


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    if not 0 <= port <= 65535:
        raise ValueError(f"port is {port}; it must be from 1 to 65535, or 0 for any free one.")
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise ValueError(f"host is {host!r}, which is no address ({error.strerror}); use 127.0.0.1.") from None
    return family, (str(where[0]), int(where[1]))


def _unusable(error: OSError, host: str, port: int) -> OSError:
    if error.errno == errno.EADDRINUSE:
        return OSError(f"port {port} is taken; choose another with --port, or 0 for any free one.")
    if error.errno == errno.EACCES:
        return OSError(f"port {port} needs more rights than this program has; choose one above 1023 with --port.")
    return OSError(f"cannot listen at {host} port {port}: {error.strerror or error}.")
