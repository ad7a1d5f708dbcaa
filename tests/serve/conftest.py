"""Systems that have learned nothing, which takes no time, and a server that asks them."""

import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch

from spigot.serve import Limits, Server, System
from tests.parsing import classifier, parser

LIMITS = Limits(body=20_000, words=40, total=200, seconds=20.0, patience=5.0)


class Reply(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


Ask = Callable[..., Reply]


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Nothing here is worth dividing."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def systems() -> list[System]:
    """A parser with trees, one without, and a classifier of sentences."""
    torch.manual_seed(1)
    return [
        System("trees", parser("spigot")),
        System("graphs", parser("neurboparser")),
        System("mood", classifier("spigot")),
    ]


@pytest.fixture(scope="session")
def server(systems: list[System]) -> Iterator[Server]:
    """A running server."""
    with Server(systems, port=0, limits=LIMITS) as made, made.running():
        yield made


@pytest.fixture(scope="session")
def ask(server: Server) -> Ask:
    """Send a request: the method and the path, a body, and headers if they matter."""
    return lambda *words, **settings: request(server, *words, **settings)


def request(
    server: Server, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> Reply:
    """Send one request by a connection of its own. What is no text goes as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    given = {"Content-Type": "application/json"} if data is not None else {}
    try:
        connection.request(method, path, data, {**given, **(headers or {})})
        answer = connection.getresponse()
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()
