"""`spigot serve` from the command line."""

import json
import os
import shutil
import signal
import threading
import urllib.request
from pathlib import Path

import pytest

import spigot_nlp.serve.server
from spigot_nlp import cli
from spigot_nlp.serve import Server


@pytest.fixture
def interrupted(monkeypatch):
    """Somebody presses Ctrl-C as soon as the server runs."""

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", stop)


def test_it_answers_until_it_is_told_to_end(trained, capsys, monkeypatch):
    """All but the process: a client asks, then the process is asked to terminate."""
    answers = []
    serve_forever = Server.serve_forever

    def client(address: str) -> None:
        try:
            body = json.dumps({"text": "The cat sleeps."}).encode()
            asked = urllib.request.Request(f"{address}/api/parse", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(asked, timeout=60) as answer:
                answers.append(json.load(answer)["sentences"][0]["answers"][0])
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    def with_a_client(server: Server) -> None:
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        threading.Thread(target=client, args=(server.address,), daemon=True).start()
        serve_forever(server)

    monkeypatch.setattr(Server, "serve_forever", with_a_client)
    assert cli.main(["serve", str(trained), "--port", "0", "--threads", "1"]) == 0
    assert [(found["system"], found["forms"]) for found in answers] == [(trained.name, ["The", "cat", "sleeps", "."])]
    assert capsys.readouterr().err.splitlines()[-2:] == ["Serving 1 system; Ctrl-C ends it.", "Stopped."]


def test_ctrl_c_is_no_failure_and_gives_the_port_back(trained, interrupted, capsys):
    before = signal.getsignal(signal.SIGTERM)
    assert cli.main(["serve", str(trained), "--port", "0"]) == 0
    address, said = capsys.readouterr()
    assert address.startswith("http://127.0.0.1:")
    assert said.splitlines() == [
        "spigot has no tagger: it was trained with tags from files, and reads text without.",
        "Serving 1 system; Ctrl-C ends it.",
        "Stopped.",
    ]
    assert signal.getsignal(signal.SIGTERM) is before
    with Server([], port=int(address.strip().rsplit(":", 1)[1])):
        pass


def test_the_page_is_opened_where_wanted(trained, interrupted, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert cli.main(["serve", str(trained), "--port", "0", "--open"]) == 0
    assert opened == [capsys.readouterr().out.strip()]


def test_strangers_are_warned_of(trained, interrupted, capsys):
    assert cli.main(["serve", str(trained), "--port", "0", "--host", "0.0.0.0"]) == 0
    assert "Warning: whoever can reach 0.0.0.0 can use this page; there is no password." in capsys.readouterr().err


def test_options_go_before_the_environment(trained, capsys, monkeypatch):
    told = []
    monkeypatch.setattr(Server, "serve_forever", lambda server: told.append(server))
    monkeypatch.setenv("SPIGOT_SERVE_TOKEN", "s3cret")
    monkeypatch.setenv("SPIGOT_SERVE_ORIGINS", "https://c.example")
    monkeypatch.setenv("SPIGOT_SERVE_LIMITS", '{"words": 7}')
    words = ["--port", "0", "--threads", "1", "--origin", "https://a.example", "--origin", "https://b.example"]
    made = []
    create = spigot_nlp.serve.server.create_app
    monkeypatch.setattr(
        "spigot_nlp.serve.server.create_app", lambda api, settings: (made.append(settings), create(api, settings))[1]
    )
    assert cli.main(["serve", str(trained), *words]) == 0
    assert len(told) == 1
    (settings,) = made
    assert (settings.runs, settings.token, settings.threads) == ((trained,), "s3cret", 1)
    assert settings.origins == ("https://a.example", "https://b.example")
    assert settings.limits.words == 7
    assert "s3cret" not in "".join(capsys.readouterr())


def test_what_cannot_be_served(trained, interrupted, capsys, tmp_path):
    def complaint(*words: str | Path) -> str:
        assert cli.main(["serve", *map(str, words)]) == 1
        out, said = capsys.readouterr()
        assert out == ""
        return said.strip()

    assert "is no run folder: it has no config.toml" in complaint(tmp_path)
    assert "is given twice; give each run once." in complaint(trained, trained)
    assert "threads is 0; it should be greater than 0" in complaint(trained, "--threads", "0")
    assert complaint(trained, "--key", "k.pem").endswith("k.pem is the key of no certificate; give --certificate, too.")
    assert "none.pem is no certificate" in complaint(trained, "--certificate", "none.pem")
    assert "token is refused" in complaint(trained, "--token", "")
    half = shutil.copytree(trained, tmp_path / "half")
    (half / "model.safetensors").unlink()
    assert "There is no" in complaint(half)
    assert "model.safetensors; the training has not got that far." in complaint(half)
    with Server([], port=0) as other:
        port = other.port
        assert complaint(trained, "--port", str(port)).endswith(
            f"port {port} is taken; choose another with --port, or 0 for any free one."
        )
