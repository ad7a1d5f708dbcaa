"""Corpora on a Ray cluster of two nodes in one machine: the same answers, whoever is lost."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spigot_nlp.scale import Options, parse, parse_corpus, read_manifest
from tests.spigot_nlp.scale.conftest import TEXTS
from tests.spigot_nlp.scale.test_corpus import expected, sentences

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'torch-spigot[ray]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("ray"),
    # Ray leaves sockets and files to the end of the process, and says of some of its own names that they will go.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PAIRS = 15


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Any, Any]]:
    """A cluster of a head without room for workers, and two nodes with room for one each; and the second of these."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_health_check_period_ms", "500")
        patch.setenv("RAY_health_check_failure_threshold", "20")
        started = next((found for found in map(_started, range(3)) if found is not None), None)
        if started is None:
            pytest.skip("Ray does not start on this machine")
        yield started
        ray.shutdown()
        started[0].shutdown()


def _started(trial: int) -> tuple[Any, Any] | None:
    """Ray gives itself half a minute, and a busy machine may take longer."""
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]  # an extra

    cluster = Cluster()
    try:
        cluster.add_node(num_cpus=0, include_dashboard=False)
        cluster.add_node(num_cpus=1)
        second = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    except Exception:
        ray.shutdown()
        cluster.shutdown()
        return None
    return cluster, second


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """The documents, many times over, in files of some pieces each."""
    folder = tmp_path / "many"
    folder.mkdir()
    for k in range(PAIRS):
        lines = [json.dumps({"id": f"{k}-{name}", "text": text}) for name, text in TEXTS.items()]
        (folder / f"{k:02}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def check(model: Path, out: Path) -> None:
    """Nothing is lost, nothing is there twice, and all is as it should be."""
    wanted = [(f"{k}-{name}", s.forms, s.heads, s.graph) for k in range(PAIRS) for name, s in expected(model)]
    assert [(s.get("document"), s.forms, s.heads, s.graph) for s in sentences(out)] == wanted
    manifest = read_manifest(out)
    assert manifest.complete
    assert (manifest.counts.documents, manifest.counts.errors) == (PAIRS * len(TEXTS), 0)
    assert manifest.counts.sentences == len(wanted)


def parsed(model: Path, many: Path, out: Path, once: Callable[[], object]) -> None:
    """Parse, and do something when some pieces are done and others are not."""
    told: list[int] = []

    def watch(progress: Any) -> None:
        if progress.doing == "parsing" and progress.done >= 5 and not told:
            told.append(progress.done)
            once()

    parse_corpus(model, [many], out, Options(piece=300), on="auto", watch=watch)
    assert told[0] < len(read_manifest(out).shards)
    check(model, out)


def actor_pids() -> list[int]:
    """The processes of workers: Ray calls them by their class."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cmdline").read_bytes().startswith(b"ray::Actor"):
                found.append(int(path.name))
        except OSError:
            continue
    return found


def test_a_worker_is_killed(nodes: Any, model: Path, many: Path, tmp_path: Path) -> None:
    parsed(model, many, tmp_path / "out", lambda: os.kill(actor_pids()[0], signal.SIGKILL))


def test_a_data_set_of_documents(nodes: Any, model: Path) -> None:
    rows = [{"id": name, "text": text} for name, text in TEXTS.items()] + [{"id": "bad", "text": None}]
    found = parse(ray.data.from_items(rows), model, workers=1, batch=2).take_all()
    wanted = [(name, list(s.forms), list(s.heads or ())) for name, s in expected(model)]
    good = [row for row in found if row["error"] is None]
    assert [(row["document"], list(row["words"]), list(row["heads"])) for row in good] == wanted
    assert [(row["document"], row["error"]) for row in found if row["error"]] == [
        ("bad", "the column 'text' is NoneType, not text.")
    ]


def test_a_node_is_lost(nodes: Any, model: Path, many: Path, tmp_path: Path) -> None:
    cluster, second = nodes

    def lose() -> None:
        threading.Thread(target=cluster.remove_node, args=(second,), kwargs={"allow_graceful": False}).start()
        time.sleep(1)

    parsed(model, many, tmp_path / "out", lose)
