"""uvicorn with the application, for people one does not have to trust."""

import asyncio
import errno
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

import spigot
from spigot_nlp.serve.api import Api
from spigot_nlp.serve.application import create_app
from spigot_nlp.serve.limits import Protocol, is_loopback
from spigot_nlp.serve.settings import Settings
from spigot_nlp.serve.systems import Served


class Server:
    """Serves a page and the JSON interface until it is closed.

    Only what is named in the application can be fetched: no file is opened after the start. Whoever is being answered
    when the server ends gets the answer, if it does not take longer than the grace time of the limits.

    Args:
        systems: What to ask.
        host: The address to listen at.
        port: The port; 0 takes any that is free.
        settings: Who may ask, and how much.
        certificate: Encrypt connections with this certificate, a file in PEM.
        key: Its private key, if that is in another file.

    Raises:
        OSError: If the port is taken, or the address is none of this machine.
        ValueError: If the address is none at all, or the certificate is none.

    Example:
        >>> from urllib.request import urlopen
        >>> with Server([], port=0) as server, server.running():
        ...     print(urlopen(f"{server.address}/health").read().decode()[:15])
        {"status":"ok",
    """

    def __init__(
        self,
        systems: Sequence[Served],
        host: str = "127.0.0.1",
        port: int = 8000,
        settings: Settings = Settings(),
        *,
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> None:
        _check_certificate(certificate, key)
        self._socket = listening(host, port)
        self.host: str = self._socket.getsockname()[0]
        self.port: int = self._socket.getsockname()[1]
        self.is_local = is_loopback(self.host)
        if not settings.hosts:
            names = ("localhost",) if self.is_local and settings.token is None else ("*",)
            settings = settings.model_copy(update={"hosts": names})
        self.limits = settings.limits
        self.api = Api(systems, settings.limits)
        config = uvicorn.Config(
            create_app(self.api, settings),
            http=Protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="error",
            access_log=False,  # requests are not logged: what people type is theirs
            server_header=False,
            headers=[("server", f"spigot/{spigot.__version__}")],
            proxy_headers=False,  # nobody here asks where a request comes from
            h11_max_incomplete_event_size=self.limits.head,
            timeout_keep_alive=self.limits.idle,  # pyright: ignore[reportArgumentType] (parts of a second will do)
            timeout_graceful_shutdown=int(self.limits.grace) + 2,  # if all else fails
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        self._uvicorn = _Uvicorn(config, self.limits.grace)

    @property
    def address(self) -> str:
        """Where to point a browser."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        scheme = "http" if self._uvicorn.config.ssl_certfile is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def serve_forever(self) -> None:
        """Serve until somebody interrupts, or `close` is called; whoever waits then gets the answer first."""
        # From before its loop is made until it is gone, so that no signal finds the two half-way.
        signals = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
        before = {number: signal.signal(number, self._uvicorn.handle_exit) for number in signals}
        try:
            self._uvicorn.run(sockets=[self._socket])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def running(self) -> Iterator["Server"]:
        """Serve in another thread for as long as a `with` block lasts."""
        thread = threading.Thread(target=self.serve_forever, name="serving", daemon=True)
        thread.start()
        try:
            while not self._uvicorn.started and thread.is_alive():
                time.sleep(0.005)
            if not self._uvicorn.started:
                raise RuntimeError("the server did not start; its log has more.")
            yield self
        finally:
            self._uvicorn.should_exit = True
            thread.join()

    def close(self) -> None:
        """Give the port back and answer nobody any more."""
        self._uvicorn.should_exit = True
        self._socket.close()
        self.api.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


class _Uvicorn(uvicorn.Server):
    """A server whose end no client can put off."""

    def __init__(self, config: uvicorn.Config, grace: float) -> None:
        super().__init__(config)
        self._grace = grace

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End when all who are being answered have their answers, or when the time is up."""
        self.lifespan.state["closing"] = True  # for connections that are accepted already, but not yet made
        timer = asyncio.get_running_loop().call_later(self._grace, self._drop)
        await super().shutdown(sockets)
        timer.cancel()

    def _drop(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def listening(host: str, port: int) -> socket.socket:
    """A socket at an address, which nobody else has; port 0 takes any that is free."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port is {port}; it must be from 1 to 65535, or 0 for any free one.")
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise ValueError(f"host is {host!r}, which is no address ({error.strerror}); use 127.0.0.1.") from None
    made = socket.socket(family)
    try:
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it; without it an answer of two parts waits 40 ms for the client to confirm the first.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.bind(where)
        made.listen(2048)  # from now on the port is taken; those who come before the start wait
    except OSError as error:
        made.close()
        known = {
            errno.EADDRINUSE: f"port {port} is taken; choose another with --port, or 0 for any free one.",
            errno.EACCES: f"port {port} needs more rights than this program has; choose one above 1023 with --port.",
        }
        usual = f"cannot listen at {host} port {port}: {error.strerror or error}."
        raise OSError(known.get(error.errno or 0, usual)) from None
    return made


def _check_certificate(certificate: Path | None, key: Path | None) -> None:
    if certificate is None:
        if key is not None:
            raise ValueError(f"{key} is the key of no certificate; give --certificate, too.")
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except OSError as error:
        named = f"{certificate} is no certificate with its key" + ("" if key is None else f" {key}")
        raise ValueError(f"{named} in PEM ({error.strerror or error}); give both files.") from None
