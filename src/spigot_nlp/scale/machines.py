"""Workers that are actors of a Ray cluster."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import spigot
from spigot_nlp.ray_cluster import cores, join_cluster, last_line
from spigot_nlp.scale.processes import answered
from spigot_nlp.scale.team import Failure, Hand, Lost
from spigot_nlp.scale.worker import Order, Worker

_LOOK = 5.0  # seconds between two looks at the machines of the cluster


class RayTeam:
    """Actors of a Ray cluster, one for every so many cores; as many as there is room for, whoever comes or goes.

    The files of the model are handed to them, so that no machine has to see its folder. The folder of the shards must
    be the same one, under the same name, on every machine, and so must files that are to be read by their paths.

    Args:
        order: What each is told.
        on: `"ray"` for the cluster of this machine, which is started if there is none; or the address of one.
        places: How many actors there are to be; by default as many as there is room for.

    Raises:
        ModuleNotFoundError: If Ray is not installed; it says how to.
        ConnectionError: If there is no cluster.
        ValueError: If that is no address, or no machine has so many cores.
    """

    def __init__(self, order: Order, on: str, places: int | None = None) -> None:
        self._ray = join_cluster(on)
        most = max(cores(self._ray).values(), default=0)
        if most < order.threads:
            raise ValueError(
                f"--threads is {order.threads}, and no machine of the cluster has more than {most} cores; give fewer."
            )
        self._order, self._places = order, places
        self._packed = self._ray.put(dict(order.packed or {}))
        self._looked, self._room = 0.0, 0

    def __enter__(self) -> "RayTeam":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @property
    def places(self) -> int:
        if self._places is not None:
            return self._places
        if time.monotonic() - self._looked > _LOOK or not self._room:
            self._room = sum(number // self._order.threads for number in cores(self._ray).values())
            self._looked = time.monotonic()
        return max(1, self._room)

    def hire(self) -> Hand:
        # Ray would run an actor again that has died, with what it had; here whoever hands out work decides.
        gpus = 1 if self._order.device.startswith("cuda") else 0
        made = self._ray.remote(num_cpus=self._order.threads, num_gpus=gpus, max_restarts=0, max_task_retries=0)(Actor)
        return _RayHand(self._ray, made.remote(replace(self._order, packed=None), self._packed, spigot.__version__))

    def wait(self, hands: Sequence[Any], seconds: float) -> list[Any]:
        by_answer = {hand.answer: hand for hand in hands}
        ready, _ = self._ray.wait(list(by_answer), num_returns=1, timeout=seconds)
        return [by_answer[answer] for answer in ready]


class _RayHand:
    """An actor."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor
        self.answer = actor.ready.remote()

    def give(self, task: Any) -> None:
        self.answer = self._actor.do.remote(task)

    def heard(self) -> Any:
        try:
            return self._ray.get(self.answer)
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            said = str(error)
            if "low on memory" in said:
                raise Lost("Ray ended a worker where memory ran out.") from None
            if "node has died" in said or "node was terminated" in said:
                raise Lost("a machine has left the cluster.") from None
            raise Lost(f"a Ray worker died: {last_line(error)}") from None

    def dismiss(self) -> None:
        self._ray.kill(self._actor)


class Actor:
    """A worker on some machine of a cluster.

    Args:
        order: What it is told.
        packed: The files of the model.
        wanted: The version of spigot there has to be.

    Example:
        >>> from spigot_nlp.scale.shards import Look
        >>> Actor(Order("runs/spigot", "out", Look("jsonl")), {}, spigot.__version__).ready() is None
        True
    """

    def __init__(self, order: Order, packed: Mapping[str, bytes], wanted: str) -> None:
        self._worker, self._wanted = Worker(replace(order, packed=packed)), wanted

    def ready(self) -> Failure | None:
        """Whether it can work here."""
        if problem := self._worker.unfit():
            return Failure(problem)
        if spigot.__version__ != self._wanted:
            return Failure(f"a machine has spigot {spigot.__version__}, not {self._wanted}; install the same.")
        return None

    def do(self, task: Any) -> Any:
        """Survey a file, or parse a piece."""
        return answered(self._worker, task)


def packed_model(folder: Path) -> dict[str, bytes]:
    """The files of a model that are needed to use it, under their paths in its folder.

    Args:
        folder: The folder of the model.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "config.toml").write_text("name = 'x'")
        >>> packed_model(folder)
        {'config.toml': b"name = 'x'"}
    """
    from spigot_nlp.models.checkpoint import CONFIG, MODEL, TAGGER, VOCAB

    paths = [folder / name for name in (CONFIG, VOCAB, TAGGER, MODEL)]
    paths += sorted((folder / "encoders").rglob("*"))  # what transformers need beside their weights
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.is_file()}
