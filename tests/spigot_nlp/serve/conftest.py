"""Systems that have learned nothing, which takes no time, and a server that asks them."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from spigot_nlp.config import make_config
from spigot_nlp.corpora.corpus import Corpus, Split
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.models.inspection import inspect
from spigot_nlp.serve import Limits, Served, Server, Settings, open_systems
from spigot_nlp.training import train
from spigot_nlp.training.start import build
from tests.spigot_nlp.parsing import classifier, experiment, parser, reviews, sentences
from tests.spigot_nlp.serve.browser import Browser, browser

SMALL = {"encoder": {"word_dim": 8, "lemma_dim": 4, "tag_dim": 4, "hidden": 8}, "mlp": 8}
GRAPHS = {**SMALL, "annotation": "graphs", "pruning": {"learned": False, "rare_role": 0}}
STAGES: dict[str, dict[str, Any]] = {
    "three": {
        "syntax": {**SMALL, "annotation": "trees"},
        "semantics": {**GRAPHS, "reads": {"stage": "syntax", "as": "heads"}},
        "mood": {**SMALL, "annotation": "label", "reads": {"stage": "semantics", "as": "roles", "estimator": "ste"}},
    },
    "two": {"second": {**GRAPHS, "field": "second"}, "semantics": GRAPHS},
    "named": {
        "chunks": {**SMALL, "annotation": "tags", "field": "chunks"},
        "mood": {**SMALL, "annotation": "label", "field": "mood"},
    },
}
"""Three stages, two graphs, and tags and a class under names of their own."""

LIMITS = Limits(body=20_000, words=40, total=200, seconds=20.0, patience=5.0)


def settings(**given: Any) -> Settings:
    """Settings with those limits, but for what is given: other limits, a token, origins."""
    limits = {name: value for name, value in given.items() if name in Limits.model_fields}
    others = {name: value for name, value in given.items() if name not in limits}
    return Settings(limits=LIMITS.model_copy(update=limits), **others)


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


@pytest.fixture(scope="session")
def systems() -> list[Served]:
    """A parser with trees, one without, and a classifier of sentences."""
    torch.manual_seed(1)
    return [
        Served("trees", parser("spigot")),
        Served("graphs", parser("neurboparser")),
        Served("mood", classifier("spigot")),
    ]


def named(sentence: Sentence) -> Sentence:
    """With a second graph, and with tags and a class under names of their own."""
    chunks = tuple("NP" if tag in ("DT", "NN") else "VP" for tag in sentence.tags or ())
    return sentence.put("second", sentence.graph).put("chunks", chunks).put("mood", len(sentence) % 2)


@pytest.fixture(scope="session")
def of_stages() -> dict[str, Served]:
    """Systems that the paper does not have, by name."""
    some = Split([named(sentence) for sentence in sentences(12)])
    labels = replace(some, train=[*map(named, reviews(12))])
    corpus = Corpus({"trees": some, "graphs": some, "labels": labels})
    return {
        name: Served(name, build(make_config({"data": {"tags": "columns"}, "stages": stages}), corpus))
        for name, stages in STAGES.items()
    }


@pytest.fixture(scope="session")
def server(systems: list[Served]) -> Iterator[Server]:
    """A running server."""
    with Server(systems, port=0, settings=settings()) as made, made.running():
        yield made


@pytest.fixture(scope="session")
def ask(server: Server) -> Ask:
    """Send a request: the method and the path, a body, and headers if they matter."""
    return lambda *words, **more: request(server, *words, **more)


def request(
    server: Server, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> Reply:
    """Send one request by a connection of its own. What is no text goes as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    given = {"Content-Type": "application/json"} if data is not None else {}
    try:
        connection.request(method, path, data, {**given, **(headers or {})})
        answer = connection.getresponse()
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


class Gate:
    """Where parsing stops from when it is shut until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.entered, self._monkeypatch = threading.Event(), threading.Event(), monkeypatch

    def shut(self) -> None:
        self.open.clear()
        self.entered.clear()
        self._monkeypatch.setattr("spigot_nlp.serve.systems.inspect", self._inspect)

    def _inspect(self, *given: Any, **named: Any) -> Any:
        self.entered.set()
        assert self.open.wait(60)
        return inspect(*given, **named)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was trained a little, with a tagger."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    corpus = {"train": 14, "dev": 4, "test": 2}
    tagged = {"data__tags": "predicted", "data__folds": 2}
    small = experiment(data__source="synthetic", data__synthetic=corpus, training__epochs=1, **tagged)
    train(small, folder)
    return folder


@pytest.fixture(scope="session")
def site(systems: list[Served], of_stages: dict[str, Served], run: Path) -> Iterator[Server]:
    """A server with that run, systems that know nothing, and one whose data have hyphens within words."""
    uncut = Served("uncut", systems[0].parser)
    vars(uncut)["conventions"] = Conventions(hyphens=False)  # in place of what its vocabulary says
    with (
        Server([*open_systems([run]), *systems, uncut, *of_stages.values()], port=0, settings=settings()) as made,
        made.running(),
    ):
        yield made


@pytest.fixture(scope="session")
def driven() -> Iterator[Browser]:
    with browser() as made:
        yield made
