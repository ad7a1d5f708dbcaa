"""uvicorn with the application, for people one does not have to trust."""

import math
import os
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from uvicorn.supervisors import Multiprocess

import spigot
from spigot_nlp.serve.addresses import is_loopback, listening
from spigot_nlp.serve.api import Api
from spigot_nlp.serve.application import create_app
from spigot_nlp.serve.protocol import Protocol
from spigot_nlp.serve.query import Limits
from spigot_nlp.serve.settings import Settings
from spigot_nlp.serve.systems import Served

_LAST = 10.0  # seconds more in which a server that is told to end does so


@dataclass(frozen=True)
class Certificate:
    """What a server proves who it is by, so that connections are encrypted.

    Attributes:
        chain: A file with the certificate, and those above it, in PEM.
        key: The file with its private key, if that is another one.

    Raises:
        ValueError: If there are no such files, or the key is another's.

    Example:
        >>> Certificate(Path("none.pem"))
        Traceback (most recent call last):
        ...
        ValueError: none.pem is no certificate with its key in PEM (No such file or directory); give both files.
    """

    chain: Path
    key: Path | None = None

    def __post_init__(self) -> None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.chain, self.key, password="")
        except OSError as error:
            named = f"{self.chain} is no certificate with its key" + ("" if self.key is None else f" {self.key}")
            raise ValueError(f"{named} in PEM ({error.strerror or error}); give both files.") from None


class Server:
    """Serves a page and the JSON interface until it is closed.

    Only what is named in the application can be fetched: no file is opened after the start. On a loopback address,
    requests that name another host are refused, so that no page elsewhere can reach it through a name of its own,
    unless there is a token. Whoever is being answered when the server ends gets the answer.

    Args:
        systems: What to ask.
        host: The address to listen at.
        port: The port; 0 takes any that is free.
        limits: How much a client may ask for.
        together: Whether requests that wait together are parsed together.
        token: What clients must send as `Authorization: Bearer ...`.
        origins: Web pages elsewhere that may ask.
        certificate: Encrypt connections with it.

    Raises:
        OSError: If the port is taken, or the address is none of this machine.

    Example:
        >>> from urllib.request import urlopen
        >>> with Server([], port=0) as server, server.running():
        ...     print(urlopen(f"{server.address}/health").read().decode()[:15])
        {"status": "ok"
    """

    def __init__(
        self,
        systems: Sequence[Served],
        host: str = "127.0.0.1",
        port: int = 8000,
        limits: Limits = Limits(),
        *,
        together: bool = True,
        token: str | None = None,
        origins: Sequence[str] = (),
        certificate: Certificate | None = None,
    ) -> None:
        settings = Settings(token=token, origins=tuple(origins), together=together, limits=limits)
        self._socket = listening(host, port)
        self.server_name, self.server_port = str(self._socket.getsockname()[0]), int(self._socket.getsockname()[1])
        self.is_local = is_loopback(self.server_name)
        self.address = address(self._socket, encrypted=certificate is not None)
        self.limits = limits
        self.api = Api(systems, limits, together=together)
        settings = replace(settings, local=self.is_local and token is None)
        self._uvicorn = uvicorn.Server(_config(create_app(self.api, settings), limits, certificate))

    def serve_forever(self) -> None:
        """Serve until somebody interrupts, or `close` is called; whoever waits then gets the answer first."""
        self._uvicorn.run(sockets=[self._socket])

    @contextmanager
    def running(self) -> Iterator["Server"]:
        """Serve in another thread for as long as a `with` block lasts."""
        thread = threading.Thread(target=self.serve_forever, name="serving", daemon=True)
        thread.start()
        try:
            while not self._uvicorn.started and thread.is_alive():
                time.sleep(0.005)
            yield self
        finally:
            self._uvicorn.should_exit = True
            thread.join(_graceful(self.limits) + _LAST)
            self._uvicorn.force_exit = True  # if somebody holds a connection all the same
            thread.join(_LAST)

    def close(self) -> None:
        """Give the port back and answer nobody any more."""
        self._uvicorn.should_exit = True
        self._socket.close()
        self.api.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


def serve_by_workers(
    workers: int, settings: Settings, listener: socket.socket, certificate: Certificate | None = None
) -> None:
    """Serve by several processes at one address, each with the systems in its own memory, until somebody interrupts.

    A process that dies is replaced. It takes the signals of this process, so this must be its main thread.

    Args:
        workers: How many.
        settings: What is served, to whom, and how.
        listener: Where they all listen.
        certificate: Encrypt connections with it.
    """
    with tempfile.TemporaryDirectory(prefix="spigot-serve-") as folder:
        shared = settings if settings.metrics is not None else replace(settings, metrics=Path(folder))
        variables = shared.environment()
        before = {name: os.environ[name] for name in variables if name in os.environ}
        os.environ.update(variables)  # not an argument: those are for everybody to see
        try:
            config = _config("spigot_nlp.serve:app", settings.limits, certificate, workers)
            Multiprocess(config, sockets=[listener]).run()
        finally:
            for name in variables:
                del os.environ[name]
            os.environ.update(before)


def address(listener: socket.socket, *, encrypted: bool = False) -> str:
    """Where to point a browser.

    Example:
        >>> with listening("127.0.0.1", 0) as found:
        ...     address(found) == f"http://127.0.0.1:{found.getsockname()[1]}"
        True
    """
    host, port = listener.getsockname()[:2]
    if listener.family == socket.AF_INET6:
        host = f"[{'::1' if host == '::' else host}]"
    return f"http{'s' if encrypted else ''}://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"


def _graceful(limits: Limits) -> int:
    """How many seconds an answer under way may take when the server ends."""
    return math.ceil(limits.seconds + limits.patience)


def _config(app: Starlette | str, limits: Limits, certificate: Certificate | None, workers: int = 1) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="on",
        workers=workers,
        log_config=None,
        log_level="error",
        access_log=False,  # requests are not logged: what people type is theirs
        server_header=False,
        headers=[("server", f"spigot/{spigot.__version__}")],
        proxy_headers=False,  # nobody here asks where a request comes from
        h11_max_incomplete_event_size=limits.head,
        timeout_keep_alive=limits.idle,  # pyright: ignore[reportArgumentType] (parts of a second will do)
        timeout_graceful_shutdown=_graceful(limits),
        timeout_worker_healthcheck=120,  # loading may take long on a busy machine
        ssl_certfile=None if certificate is None else certificate.chain,
        ssl_keyfile=None if certificate is None else certificate.key,
    )
