"""The server among clients that are slow, wrong, hostile or gone."""

import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from spigot_nlp.serve import Server
from spigot_nlp.serve.limits import is_named
from spigot_nlp.serve.server import listening
from tests.spigot_nlp.serve.conftest import request, settings

BODY = {"words": ["The", "cat", "moves"]}


def raw(server, data, *, pause=0.0, pieces=1):
    """What comes back for these bytes, sent in pieces; nothing if the connection was dropped."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        size = max(1, -(-len(data) // pieces))
        received = b""
        try:
            for start in range(0, len(data), size):
                client.sendall(data[start : start + size])
                time.sleep(pause)
            while piece := client.recv(65536):
                received += piece
        except ConnectionError:
            pass
        return received


def message(
    body=b"", *, line="POST /api/parse HTTP/1.1", headers=("Host: localhost", "Content-Type: application/json")
):
    length = [f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([line, *headers, *length, "Connection: close", "", ""]).encode() + body


def test_the_page_and_all_it_refers_to(ask):
    page = ask("GET", "/")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    text = page.body.decode()
    for path in ("/page.css", "/main.js", "/icon.svg"):
        assert f'"{path}"' in text
        assert ask("GET", path).status == 200
    for script in ("cards", "client", "dom", "menu", "state"):
        assert ask("GET", f"/{script}.js").headers["content-type"].startswith("text/javascript")
    style = ask("GET", "/page.css").body.decode()
    assert "--ink: #1c2230" in style
    assert "--ink: #e8ebf2" in style
    assert "theme */" not in style


def test_browsers_are_told_to_be_careful(ask):
    for path in ("/", "/health", "/main.js", "/nothing"):
        headers = ask("GET", path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers
        assert "Python" not in headers["server"]
    policy = ask("GET", "/").headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy


def test_health_and_head(ask):
    assert ask("GET", "/health").value["status"] == "ok"
    head, whole = ask("HEAD", "/"), ask("GET", "/")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.body))


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/nothing", 404, None),
        ("GET", "/../server.py", 404, None),
        ("GET", "/static/page.css", 404, None),
        ("GET", "/%2e%2e/etc/passwd", 404, None),
        ("GET", "/page.css%00", 404, None),
        ("GET", "/api/parse", 405, "POST"),
        ("POST", "/", 405, "GET, HEAD"),
        ("POST", "/elsewhere", 404, None),
        ("PUT", "/api/parse", 405, "POST"),
        ("OPTIONS", "/api/parse", 405, "POST"),
        ("DELETE", "/", 405, "GET, HEAD"),
        ("BREW", "/", 405, "GET, HEAD"),
    ],
)  # fmt: skip
def test_only_what_is_named_can_be_reached(ask, method, path, status, allow):
    reply = ask(method, path, BODY if method in ("POST", "PUT") else None)
    assert reply.status == status
    assert reply.headers.get("allow") == allow
    assert list(reply.value) == ["error"]


def test_only_json_is_read(ask):
    reply = ask("POST", "/api/parse", BODY, {"Content-Type": "text/plain"})
    assert (reply.status, reply.value["error"]) == (415, "the body is text/plain; send application/json.")
    assert ask("POST", "/api/parse", BODY, {"Content-Type": "application/json; charset=utf-8"}).status == 200


def test_a_body_that_is_too_large_is_refused_politely(ask):
    reply = ask("POST", "/api/parse", b"x" * 500_000)
    assert reply.status == 413
    assert "500000 bytes; 20000 are allowed" in reply.value["error"]
    assert reply.headers.get("connection", "close") == "close"  # on a busy machine all of it may have come before


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "192.168.1.5:8000", "localhost.evil", "[::2]"]
)
def test_other_hosts_are_refused_on_loopback(ask, host):
    reply = ask("GET", "/api/systems", None, {"Host": host})
    assert reply.status == 403
    assert "is no name of this server" in reply.value["error"]


def test_names_of_this_machine():
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:9", "127.9.9.9", "[::1]:8000", "[::1]", "x.localhost"):
        assert is_named(host, ("localhost",)), host


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (message(line="GET / HTTP/1.1", headers=()), 400),
        (message(line="GET / HTTP/1.1", headers=("Host: localhost", "Host: evil.example")), 400),
        (message(line="GET /" + "x" * 70_000 + " HTTP/1.1"), 414),
        (message(line="nonsense"), 400),
        (message(headers=("Host: localhost", *(f"X-{k}: y" for k in range(150)))), 431),
        (message(), 411),
        (message(headers=("Host: localhost", "Transfer-Encoding: chunked")), 411),
        (message(headers=("Host: localhost", "Transfer-Encoding: chunked")) + b"zz\r\n", 400),
        (message(headers=("Host: localhost", "Transfer-Encoding: chunked")) + b"3\r\nabcXX\r\n", 400),
        (message(headers=("Host: localhost", "Content-Length: -5")), 400),
        (message(headers=("Host: localhost", "Content-Length: 5", "Content-Length: 6")), 400),
        (message(headers=("Host: localhost", "Content-Length: " + "9" * 30)), 400),
    ],
    ids=[
        "no host", "two hosts", "long", "nonsense", "headers", "no length", "chunked", "no size",
        "bad chunk", "negative", "two lengths", "huge",
    ],
)  # fmt: skip
def test_broken_requests(server, data, status, caplog):
    received = raw(server, data)
    assert caplog.text == ""
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.split()[1] == str(status).encode()
    assert b"content-security-policy" in head.lower()
    assert list(json.loads(body)) == ["error"]


def test_a_connection_is_kept_for_the_next_request(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", "/health")
    assert connection.getresponse().read()
    kept = connection.sock
    connection.request("POST", "/api/parse", json.dumps(BODY), {"Content-Type": "application/json"})
    assert connection.getresponse().status == 200
    assert connection.sock is kept
    connection.close()


def test_slow_clients_are_dropped_however_they_drip(systems):
    with Server(systems[:1], port=0, settings=settings(patience=0.5, idle=0.3)) as server, server.running():
        data = message(json.dumps(BODY).encode())
        head_length = data.index(b"\r\n\r\n") + 4
        # A byte now and then would satisfy a limit on silence, but not one on the whole request.
        dripped = raw(server, data, pause=0.05, pieces=len(data))
        assert dripped == b"" or b" 408 " in dripped.split(b"\r\n")[0]  # it may be gone before it can be told
        late = raw(server, data[: head_length + 3])
        assert b" 408 " in late.split(b"\r\n")[0]
        assert b"did not arrive within 0.5 seconds" in late
        assert raw(server, b"") == b""  # one that says nothing at all
        announced = message(headers=("Host: localhost", "Content-Length: 50000"))
        assert b" 413 " in raw(server, announced).split(b"\r\n")[0]  # one that only says how much it will send
        assert request(server, "GET", "/health").status == 200


def test_no_client_puts_off_the_end(systems):
    """Ones that say nothing, half of a request, or never fetch what they asked for, be it one answer or a stream."""
    limits = {"seconds": 1.0, "patience": 1.0}
    long = json.dumps({"text": "The cat moves. " * 40, "draw": True, "top": 20}).encode()
    usual, streamed = ("Host: localhost", "Content-Type: application/json"), "Accept: application/x-ndjson"
    asked = [b"", b"POST /api", message(long)[:-9], message(long), message(long, headers=(*usual, streamed))]
    with Server(systems[:1], port=0, settings=settings(**limits)) as server:
        with server.running():
            clients = [socket.socket() for _ in asked]
            for client, data in zip(clients, asked, strict=True):
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                client.connect(("127.0.0.1", server.port))
                client.sendall(data)
            time.sleep(0.2)
            end = time.monotonic()
        took = time.monotonic() - end
    for client in clients:
        client.close()
    assert took < server.limits.grace + 3  # on a busy machine


def test_a_stream_says_that_the_server_ends(systems):
    with Server(systems[:1], port=0, settings=settings()) as server:
        with server.running():
            client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            kinds = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
            client.request("POST", "/api/parse", json.dumps({"text": "The cat moves. " * 20_000}), kinds)
            stream = client.getresponse()
            lines = [stream.readline()]
            rest = threading.Thread(target=lambda: lines.extend(stream))
            rest.start()
        rest.join(20)
    client.close()
    assert json.loads(lines[-1]) == {"error": "the server is closing."}
    assert 1 < len(lines) < 20_000
    assert all(json.loads(line)["forms"] for line in lines[:-1])


def test_clients_that_hang_up_are_no_news(server, capfd):
    data = message(json.dumps({**BODY, "draw": True}).encode())
    for part in (data, data[:60], data[:-5]):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # hang up with a reset
            client.sendall(part)
    assert request(server, "POST", "/api/parse", BODY).status == 200
    time.sleep(0.1)
    assert capfd.readouterr().err == ""


def test_a_full_house_answers_503(systems):
    with Server(systems[:1], port=0, settings=settings(connections=2)) as server, server.running():
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        end = time.monotonic() + 60
        while (reply := request(server, "GET", "/health")).status == 200:  # before both are let in
            assert time.monotonic() < end
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert "too many connections" in reply.value["error"]
        for client in held:
            client.close()
        while request(server, "GET", "/health").status == 503:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_answers_that_take_too_long_and_queues_that_are_full(systems, gate):
    with Server(systems[:1], port=0, settings=settings(seconds=0.05)) as server, server.running():
        gate.shut()
        late = request(server, "POST", "/api/parse", BODY)
        gate.open.set()
    assert (late.status, "no answer within 0.05 seconds" in late.value["error"]) == (503, True)
    with (
        Server(systems[:1], port=0, settings=settings(seconds=60.0, waiting=1)) as server,
        server.running(),
        ThreadPoolExecutor(2) as pool,
    ):
        gate.shut()
        first = pool.submit(request, server, "POST", "/api/parse", BODY)
        assert gate.entered.wait(60)
        second = pool.submit(request, server, "POST", "/api/parse", BODY)
        end = time.monotonic() + 60
        while server.api.health.waiting < 1:
            assert time.monotonic() < end
            time.sleep(0.005)
        third = request(server, "POST", "/api/parse", BODY)
        gate.open.set()
        assert [first.result().status, second.result().status, third.status] == [200, 200, 503]
    assert "requests wait already" in third.value["error"]


def test_a_mistake_of_ours_is_one_answer_and_a_line_in_the_log(systems, monkeypatch, caplog):
    monkeypatch.setattr("spigot_nlp.serve.api.parse_fields", lambda *_, **__: 1 / 0)
    with Server(systems[:1], port=0, settings=settings()) as server, server.running():
        reply = request(server, "POST", "/api/parse", BODY)
        assert reply.status == 500
        assert reply.value == {"error": "the server made a mistake (ZeroDivisionError); its log has more."}
        assert request(server, "GET", "/health").status == 200
    assert "ZeroDivisionError: division by zero" in caplog.text
    assert "moves" not in caplog.text  # what people type is theirs


def test_fifty_clients_over_the_network(server):
    bodies = [{"words": ["The", "cat", "sees", "the", "dog"][: 2 + k % 4], "draw": True} for k in range(100)]
    with ThreadPoolExecutor(50) as pool:
        replies = list(pool.map(lambda body: request(server, "POST", "/api/parse", body), bodies))
    assert {reply.status for reply in replies} == {200}
    for body, reply in zip(bodies, replies, strict=True):
        assert reply.value["sentences"][0]["forms"] == body["words"]


def test_places_one_cannot_listen_at(server):
    with pytest.raises(OSError, match=f"port {server.port} is taken; choose another with --port"):
        Server([], port=server.port)
    with pytest.raises(ValueError, match="port is 70000; it must be from 1 to 65535"):
        Server([], port=70000)
    with pytest.raises(ValueError, match="which is no address"):
        Server([], host="no such host", port=0)


def test_elsewhere_any_name_will_do(systems):
    with Server(systems[:1], host="0.0.0.0", port=0, settings=settings()) as server, server.running():
        assert not server.is_local
        assert server.address == f"http://127.0.0.1:{server.port}"
        assert request(server, "GET", "/health", None, {"Host": "parser.example"}).status == 200


def test_the_newer_address_family():
    try:
        server = Server([], host="::1", port=0)
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    with server, server.running():
        assert server.is_local
        assert server.address == f"http://[::1]:{server.port}"
        with socket.create_connection(("::1", server.port), timeout=20) as client:
            client.sendall(message(line="GET /health HTTP/1.1", headers=("Host: [::1]",)))
            assert client.recv(100).startswith(b"HTTP/1.1 200")


def test_answers_do_not_wait_for_confirmation() -> None:
    with listening("127.0.0.1", 0) as server, socket.create_connection(server.getsockname()):
        accepted, _ = server.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
