"""The application: who may ask, what it says about itself, how it counts, starts and ends."""

import asyncio
import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.types import Message, Scope

import spigot_nlp.serve
from spigot_nlp.serve import Limits, Server, Settings, create_app, openapi
from spigot_nlp.serve.requests import ParseRequest
from spigot_nlp.serve.responses import HealthResponse, ParseResponse, ReadyResponse, SentenceParse, SystemsResponse
from tests.spigot_nlp.serve.conftest import request, settings

BODY = {"words": ["The", "cat", "moves"]}
TOKEN = "open-sesame-42"


@pytest.fixture(scope="module")
def private(systems):
    """A server with a token, which a page of another origin may ask."""
    origins = ("https://friend.example",)
    with Server(systems[:1], port=0, settings=settings(token=TOKEN, origins=origins)) as made, made.running():
        yield made


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    "headers",
    [
        {}, bearer("open-sesame-43"), bearer(""), {"Authorization": TOKEN}, {"Authorization": f"Basic {TOKEN}"},
        bearer(f"{TOKEN}x"), bearer("ÿ"),
    ],
)  # fmt: skip
def test_whoever_has_not_the_token_learns_nothing(private, headers):
    for method, path, body in (("POST", "/api/parse", BODY), ("GET", "/api/systems", None), ("GET", "/metrics", None)):
        reply = request(private, method, path, body, headers)
        assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
        assert list(reply.value) == ["error"]
        assert TOKEN not in reply.body.decode()


def test_whoever_has_the_token_is_answered(private):
    assert request(private, "POST", "/api/parse", BODY, bearer(TOKEN)).status == 200
    assert request(private, "GET", "/metrics", None, {"Authorization": f"bearer {TOKEN}"}).status == 200
    assert "open-sesame" not in repr(Settings(token=TOKEN))


def test_the_page_and_the_probes_need_no_token(private):
    for path in ("/", "/main.js", "/docs", "/openapi.json", "/health", "/ready"):
        assert request(private, "GET", path).status == 200
    # A page that reaches it by another name does not know the token.
    assert request(private, "GET", "/health", None, {"Host": "parser.example"}).status == 200


def test_pages_of_other_origins_ask_if_they_may(private, ask):
    def preflight(origin, method="POST"):
        asked = {"Origin": origin, "Access-Control-Request-Method": method}
        return {**asked, "Access-Control-Request-Headers": "authorization, content-type"}

    friend = request(private, "OPTIONS", "/api/parse", None, preflight("https://friend.example"))
    assert (friend.status, friend.headers["access-control-allow-origin"]) == (200, "https://friend.example")
    stranger = request(private, "OPTIONS", "/api/parse", None, preflight("https://stranger.example"))
    assert stranger.status == 400
    assert "access-control-allow-origin" not in stranger.headers
    # What is refused can be read by who may ask, and by nobody else.
    refused = request(private, "POST", "/api/parse", BODY, {"Origin": "https://friend.example"})
    assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, "https://friend.example")
    other = request(private, "POST", "/api/parse", BODY, {"Origin": "https://stranger.example", **bearer(TOKEN)})
    assert "access-control-allow-origin" not in other.headers
    assert ask("OPTIONS", "/api/parse", None, preflight("https://friend.example")).status == 405
    again = [request(private, "GET", "/openapi.json", None, {"Origin": "https://friend.example"}) for _ in range(2)]
    assert again[0].headers["vary"] == again[1].headers["vary"] == "Origin"  # nothing is added to what is kept


def test_the_interface_describes_itself(ask, private):
    found = ask("GET", "/openapi.json").value
    assert found == json.loads(json.dumps(openapi()))
    assert "security" not in found["paths"]["/api/parse"]["post"]
    assert request(private, "GET", "/openapi.json").value["paths"]["/api/parse"]["post"]["security"] == [{"token": []}]
    schemas = found["components"]["schemas"]

    def check(value):
        """Every reference leads somewhere, and nothing of the Python docstrings is left over."""
        if isinstance(value, dict):
            if "$ref" in value:
                assert value["$ref"].removeprefix("#/components/schemas/") in schemas
            assert ">>>" not in str(value.get("description", ""))
            for inner in value.values():
                check(inner)
        for inner in value if isinstance(value, list) else ():
            check(inner)

    check(found)
    for path, methods in found["paths"].items():
        for method in methods:
            assert ask(method.upper(), path, BODY if method == "post" else None).status == 200
    (example,) = schemas["ParseRequest"]["examples"]
    assert ask("POST", "/api/parse", example).status == 200
    assert ParseRequest.model_validate(example).text == example["text"]


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        {"text": "The cat moves. The dog didn't.", "draw": True, "top": 2},
        {**BODY, "constraints": {"heads": [[1, 2]], "not_arcs": [[3, 2]]}, "draw": "file"},
        {**BODY, "systems": ["trees", "mood"], "draw": True, "constraints": [{"heads": [[1, 2]]}]},
    ],
)
def test_answers_are_as_they_are_described(ask, body):
    ParseResponse.model_validate_json(ask("POST", "/api/parse", body).body, strict=True)


def test_other_answers_are_as_they_are_described(ask):
    SystemsResponse.model_validate_json(ask("GET", "/api/systems").body, strict=True)
    HealthResponse.model_validate_json(ask("GET", "/health").body, strict=True)
    ReadyResponse.model_validate_json(ask("GET", "/ready").body, strict=True)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://stranger.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:9"}, 403),
        ({"Origin": "http://localhost:8000", "Host": "localhost:8000"}, 200),
        ({"Origin": "https://parser.example", "Sec-Fetch-Site": "same-origin"}, 200),  # a proxy gave it another name
        ({"Origin": "http://localhost:8000", "Host": "localhost:8000", "Sec-Fetch-Site": "cross-site"}, 403),
        ({}, 200),
    ],
)
def test_a_page_of_another_origin_is_not_answered(ask, headers, status):
    reply = ask("POST", "/api/parse", BODY, headers)
    assert reply.status == status
    assert status == 200 or "may not ask this" in reply.value["error"]


def test_the_names_of_a_server_can_be_said(systems):
    with Server(systems[:1], port=0, settings=settings(hosts=("*.example.org",))) as server, server.running():
        asked = {host: request(server, "GET", "/health", None, {"Host": host}).status for host in (
            "parser.example.org", "parser.example.org:443", "example.org", "localhost",
        )}  # fmt: skip
    assert list(asked.values()) == [200, 200, 403, 403]


def test_a_long_text_is_answered_line_by_line(ask):
    """More than one answer may have, with a sentence that is too long and one whose demands cannot be met."""
    text = "The cat moves. " * 70 + "cat " * 41 + ". The dog moves."
    demands = [{"heads": [[2, 4]]}, {"heads": [[1, 2], [2, 1]]}]
    assert ask("POST", "/api/parse", {"text": text}).status == 413
    reply = ask("POST", "/api/parse", {"text": text, "constraints": demands}, {"Accept": "application/x-ndjson"})
    assert (reply.status, reply.headers["content-type"]) == (200, "application/x-ndjson")
    lines = [json.loads(line) for line in reply.body.splitlines()]
    wrong = {k: line["error"] for k, line in enumerate(lines) if "error" in line}
    assert list(wrong) == [1, 70]
    assert "word 1 has head 2" in wrong[1]
    assert "a sentence may have 40" in wrong[70]
    good = [SentenceParse.model_validate(line) for k, line in enumerate(lines) if k not in wrong]
    assert [one.forms[1] for one in good] == ["cat"] * 69 + ["dog"]
    assert lines[0]["answers"][0]["heads"][1] == 4
    whole = ask("POST", "/api/parse", {"text": "The cat moves."}).value["sentences"][0]
    assert lines[5]["answers"][0]["heads"] == whole["answers"][0]["heads"]
    for body, status in (({"text": 3}, 400), ({"text": text, "systems": ["oak"]}, 404)):
        assert ask("POST", "/api/parse", body, {"Accept": "application/x-ndjson"}).status == status


def counts(text):
    """The numbers of a page of metrics, by name and labels."""
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_what_is_done_is_counted(systems):
    with Server(systems[:1], port=0, settings=settings()) as server, server.running():
        for body in (BODY, {"text": "The cat moves. The dog moves."}, {"text": 3}):
            request(server, "POST", "/api/parse", body)
        request(server, "GET", "/nothing")
        reply = request(server, "GET", "/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=")
    found = counts(reply.body.decode())
    assert found['spigot_requests_total{path="/api/parse",status="200"}'] == 2
    assert found['spigot_requests_total{path="/api/parse",status="400"}'] == 1
    assert found['spigot_requests_total{path="other",status="404"}'] == 1
    assert found["spigot_sentences_total"] == 3
    assert found["spigot_words_total"] == 3 + 4 + 4
    assert 1 <= found["spigot_batches_total"] <= 3
    assert found['spigot_parse_seconds_bucket{le="+Inf"}'] == found["spigot_parse_seconds_count"] == 3
    assert found["spigot_requests_in_progress"] == 1  # the one that asks
    buckets = [value for name, value in found.items() if "_bucket" in name]
    assert buckets == sorted(buckets)


def test_readiness_follows_the_queue(systems, gate):
    with (
        Server(systems[:1], port=0, settings=settings(seconds=60.0, waiting=1)) as server,
        server.running(),
        ThreadPoolExecutor(2) as pool,
    ):
        assert request(server, "GET", "/ready").value == {"status": "ready"}
        gate.shut()
        first = pool.submit(request, server, "POST", "/api/parse", BODY)
        assert gate.entered.wait(60)
        second = pool.submit(request, server, "POST", "/api/parse", BODY)
        end = time.monotonic() + 60
        while (reply := request(server, "GET", "/ready")).status == 200:
            assert time.monotonic() < end
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert request(server, "GET", "/health").status == 200
        gate.open.set()
        assert [first.result().status, second.result().status] == [200, 200]
        assert request(server, "GET", "/ready").status == 200


def test_what_is_under_way_is_finished_at_the_end(systems, gate):
    """A server that is told to end while it parses sends the answer first, and takes nobody else."""
    with Server(systems[:1], port=0, settings=settings()) as server, ThreadPoolExecutor(1) as pool:
        idle = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        with server.running():
            gate.shut()
            idle.request("GET", "/health")  # a client that keeps its connection open holds nobody up
            idle.getresponse().read()
            waiting = pool.submit(request, server, "POST", "/api/parse", BODY)
            assert gate.entered.wait(60)
            threading.Timer(0.3, gate.open.set).start()
        reply = waiting.result(20)
        assert (reply.status, reply.value["sentences"][0]["forms"]) == (200, BODY["words"])
        idle.close()
        with pytest.raises(ConnectionError):
            socket.create_connection(("127.0.0.1", server.port), timeout=5)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    folder = tmp_path_factory.mktemp("tls")
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "chain.pem")]
    subprocess.run([*words.split(), *names, *files], check=True, capture_output=True)
    return {"certificate": folder / "chain.pem", "key": folder / "key.pem"}


def test_connections_can_be_encrypted(systems, certificate):
    with Server(systems[:1], port=0, settings=settings(), **certificate) as server, server.running():
        assert server.address == f"https://127.0.0.1:{server.port}"
        trusted = ssl.create_default_context(cafile=certificate["certificate"])
        client = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=20, context=trusted)
        client.request("POST", "/api/parse", json.dumps(BODY), {"Content-Type": "application/json"})
        assert client.getresponse().status == 200
        client.close()
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            request(server, "GET", "/health")  # in the open


def test_certificates_that_are_none(certificate, tmp_path):
    chain, other = certificate["certificate"], tmp_path / "other.pem"
    with pytest.raises(ValueError, match=r"chain.pem is no certificate with its key in PEM .*; give both files"):
        Server([], port=0, certificate=chain)
    other.write_text("nonsense")
    with pytest.raises(ValueError, match=r"chain.pem is no certificate with its key .*other.pem in PEM"):
        Server([], port=0, certificate=chain, key=other)
    with pytest.raises(ValueError, match="is the key of no certificate"):
        Server([], port=0, key=certificate["key"])


def test_settings_come_from_the_environment():
    given = {
        "RUNS": "a:b", "TOKEN": "s3cret", "HOSTS": "a.example, *.b.example", "ORIGINS": "https://a.example,*",
        "DEVICE": "cuda:1", "PRECISION": "bfloat16", "THREADS": "2", "LIMITS": '{"body": 10, "seconds": 2}',
    }  # fmt: skip
    assert Settings.from_environment({f"SPIGOT_SERVE_{name}": value for name, value in given.items()}) == Settings(
        runs=(Path("a"), Path("b")),
        token="s3cret",
        hosts=("a.example", "*.b.example"),
        origins=("https://a.example", "*"),
        device="cuda:1",
        precision="bfloat16",
        threads=2,
        limits=Limits(body=10, seconds=2),
    )
    assert Settings.from_environment({"PATH": "/bin"}) == Settings()
    # Kubernetes makes variables for a service of this name.
    assert Settings.from_environment({"SPIGOT_SERVE_SERVICE_HOST": "10.0.0.1", "SPIGOT_SERVE_PORT": "x"}) == Settings()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("TOKEN", "", "token is refused"),
        ("TOKEN", "naïve", "as a header holds them"),
        ("TOKEN", " a", "token is refused"),
        ("ORIGINS", "example.org", "give scheme, host and port"),
        ("ORIGINS", "https://example.org/page", "give scheme, host and port"),
        ("THREADS", "two", "threads is 'two'"),
        ("THREADS", "0", "threads is '0'"),
        ("PRECISION", "float16", "precision is 'float16'; it should be"),
        ("LIMITS", "body=3", "must be a JSON object"),
        ("LIMITS", "[3]", "must be a JSON object"),
        ("LIMITS", '{"bodies": 3}', "bodies is not known here; there are body"),
        ("LIMITS", '{"body": 1.5}', "body is 1.5; it should be a valid integer"),
        ("LIMITS", '{"seconds": -1}', "seconds is -1; it should be greater than 0"),
        ("TOKENS", "a", "did you mean SPIGOT_SERVE_TOKEN?"),
    ],
)
def test_settings_that_make_no_sense(name, value, reason):
    with pytest.raises(ValueError, match=re.escape(reason)) as error:
        Settings.from_environment({f"SPIGOT_SERVE_{name}": value})
    assert "\n" not in str(error.value)


def test_an_application_of_the_environment_loads_when_it_starts(monkeypatch, tmp_path, systems):
    """What `uvicorn spigot_nlp.serve:app` does, without uvicorn: start, ask, end."""
    monkeypatch.setenv("SPIGOT_SERVE_RUNS", str(tmp_path / "trees"))
    monkeypatch.setattr("spigot_nlp.serve.systems.Parser.load", lambda run, **how: systems[0].parser)
    app = spigot_nlp.serve.from_environment()

    async def ask(method: str, path: str, body: bytes = b"") -> tuple[int, object]:
        sent: list[Message] = []
        headers = [(b"content-length", str(len(body)).encode()), (b"content-type", b"application/json")]
        scope: Scope = {"type": "http", "method": method, "path": path, "headers": headers, "http_version": "2"}

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return sent[0]["status"], json.loads(sent[1]["body"])

    async def whole() -> list[tuple[int, object]]:
        early = await ask("GET", "/ready")
        async with app.router.lifespan_context(app) as state:
            assert state["limits"] == Limits()  # pyright: ignore
            found = [await ask("GET", "/ready"), await ask("POST", "/api/parse", json.dumps(BODY).encode())]
        return [early, *found, await ask("GET", "/health")]

    (early, _), (ready, _), (parsed, answer), (late, said) = asyncio.run(whole())
    assert (early, ready, parsed, late) == (503, 200, 200, 503)
    assert answer["sentences"][0]["answers"][0]["system"] == "trees"  # pyright: ignore[reportIndexIssue]
    assert said == {"error": "the server is starting or closing; try again soon."}


def test_an_application_without_a_run_says_so_at_the_start():
    app = create_app(settings=Settings(runs=()))

    async def start() -> None:
        async with app.router.lifespan_context(app):
            pass

    with pytest.raises(ValueError, match="there is no run to serve"):
        asyncio.run(start())
    assert type(spigot_nlp.serve.app).__name__ == "Starlette"
    assert spigot_nlp.serve.app is spigot_nlp.serve.app
    with pytest.raises(AttributeError, match="has no attribute 'apps'"):
        spigot_nlp.serve.apps  # pyright: ignore[reportAttributeAccessIssue]  # noqa: B018
