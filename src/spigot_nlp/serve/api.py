"""The answers of the JSON interface, without the network around them."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import spigot
from spigot_nlp.annotations.graphs import TOP
from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.models.inspection import Inspection
from spigot_nlp.serve.answers import draw, draw_pair, plain
from spigot_nlp.serve.batching import Batcher, Busy
from spigot_nlp.serve.examples import best_first
from spigot_nlp.serve.metrics import Metrics
from spigot_nlp.serve.query import CONSTRAINTS, Limits, Query, Refused, read_json, read_query
from spigot_nlp.serve.replies import as_json
from spigot_nlp.serve.systems import Served
from spigot_nlp.stages.constraints import Constraints

_Made = TypeVar("_Made")
_HANDS = 4  # threads that read long requests and write long answers
_SMALL, _FEW = 1000, 4  # bytes and sentences of those that are short
_EXAMPLES = 4  # texts that a page offers to begin with
_FREE = ("heads", "graph", "label", "probabilities", "annotations")
"""What is said of an answer without constraints."""


@dataclass(frozen=True)
class _Job:
    """A sentence for a system."""

    system: str
    sentence: Sentence
    constraints: Constraints | None
    top: int


@dataclass(frozen=True)
class _Asked:
    """A request that was understood: the constraints of each system on each sentence, and what is to be parsed."""

    query: Query
    wanted: Sequence[Sequence[tuple[Constraints | None, list[str]]]]
    jobs: Mapping[tuple[int, int, bool], _Job]


class Api:
    """Trained systems that answer many clients at once.

    Args:
        systems: The systems, each with a name of its own.
        limits: How much a client may ask for.
        together: Whether requests that wait together are parsed together.
        metrics: Where to count what is done.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Graph
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]))
        >>> parser = fresh(make_config({"data": {"tags": "columns"}}), {"graphs": [rain]})
        >>> with Api([Served("rain", parser)]) as api:
        ...     answer = api.parse({"words": ["Rain", "fell"], "constraints": {"heads": [[1, 2]]}})
        >>> answer["sentences"][0]["answers"][0]["heads"]
        [2, 0]
    """

    def __init__(
        self,
        systems: Sequence[Served],
        limits: Limits = Limits(),
        *,
        together: bool = True,
        metrics: Metrics | None = None,
    ) -> None:
        self.limits = limits
        self.metrics = metrics or Metrics()
        self._hands = ThreadPoolExecutor(_HANDS, thread_name_prefix="answering")
        self._beginnings: list[str] | None = None
        self._systems = {system.name: system for system in systems}
        self._conventions = {system.name: system.conventions for system in systems}
        for system in systems:
            system.parser.model.eval()
        self._batcher: Batcher[_Job, Inspection] = Batcher(
            self._run,
            lambda job: _cost(len(job.sentence)),
            most=limits.batch,
            waiting=limits.waiting,
            together=together,
        )

    def systems(self) -> dict[str, Any]:
        """What there is to ask, for `GET /api/systems`."""
        limits = {name: getattr(self.limits, name) for name in ("body", "words", "total", "systems", "top")}
        systems = [{**system.plain(), "examples": self._examples(system)} for system in self._systems.values()]
        return {"systems": systems, "limits": limits}

    def _examples(self, system: Served) -> list[str]:
        """Texts to begin with. Of the first system, those first that tell it from the second one."""
        first, *others = self._systems.values()
        if system is not first:
            return [known.text for known in system.known[:_EXAMPLES]]
        if self._beginnings is None:
            jobs = [
                _Job(each.name, Sentence(known.sentence.forms), None, 1)
                for each in (first, *others[:1])
                for known in first.known
            ]
            try:
                found = [one.sentence for one in self._batcher.submit(jobs, seconds=self.limits.seconds)]
            except (Busy, ValueError):
                return [known.text for known in first.known[:_EXAMPLES]]
            size = len(first.known)
            answers = [found[start : start + size] for start in range(0, len(found), size or 1)]
            self._beginnings = [known.text for known in best_first(first.known, answers, first.annotations)[:_EXAMPLES]]
        return self._beginnings

    def health(self) -> dict[str, Any]:
        """That there is somebody, for `GET /health`."""
        return {
            "status": "ok",
            "version": spigot.__version__,
            "systems": len(self._systems),
            "waiting": self._batcher.waiting,
        }

    @property
    def is_ready(self) -> bool:
        """Whether a request that came now would be answered, for `GET /ready`."""
        return self._batcher.works and not self._batcher.is_full

    def parse(self, given: object) -> dict[str, Any]:
        """Parse the sentences of a request, for `POST /api/parse`.

        Args:
            given: What the body says.

        Returns:
            For each sentence its forms, the answers of the systems in the order they were named, and, if drawings were
            wanted of two systems, a comparison.

        Raises:
            Refused: If the request is not understood, or cannot be done.
        """
        asked = self._understood(given)
        with _refusing():
            results = self._batcher.submit(list(asked.jobs.values()), seconds=self.limits.seconds)
        return self._answered(asked, results)

    async def answer(self, body: bytes) -> bytes:
        """The same from bytes to bytes, for coroutines: no thread is held while a request waits for its batch.

        Example:
            >>> with Api([]) as api:
            ...     asyncio.run(api.answer(b'{"text": ""}'))
            b'{"sentences": [], "foreign": []}'
        """
        # What takes a millisecond is done at once: to hand it to another thread and back takes longer.
        small = len(body) <= _SMALL
        asked = self._read(body) if small else await self.in_thread(lambda: self._read(body))
        with _refusing():
            results = await self._batcher.ask(list(asked.jobs.values()), seconds=self.limits.seconds)
        if small and asked.query.draw == "no" and len(asked.jobs) <= _FEW:
            return as_json(self._answered(asked, results))
        return await self.in_thread(lambda: as_json(self._answered(asked, results)))

    def _read(self, body: bytes) -> _Asked:
        return self._understood(read_json(body))

    async def in_thread(self, make: Callable[[], _Made]) -> _Made:
        """Let another thread make something, while this one takes requests.

        Args:
            make: What makes it.
        """
        return await asyncio.get_running_loop().run_in_executor(self._hands, make)

    def _understood(self, given: object) -> _Asked:
        query = read_query(given, self._conventions, self.limits)
        wanted = [self._constraints(query, name) for name in query.systems]
        jobs: dict[tuple[int, int, bool], _Job] = {}
        for k, sentence in enumerate(query.sentences):
            for s, name in enumerate(query.systems):
                constraints = wanted[s][k][0]
                jobs[k, s, True] = _Job(name, sentence, constraints, query.top)
                if constraints is not None and query.draw != "no":  # what did they change?
                    jobs[k, s, False] = _Job(name, sentence, None, 1)
        return _Asked(query, wanted, jobs)

    def _answered(self, asked: _Asked, results: Sequence[Inspection]) -> dict[str, Any]:
        query, found = asked.query, dict(zip(asked.jobs, results, strict=True))
        sentences = [self._sentence(query, k, found, asked.wanted) for k in range(len(query.sentences))]
        return {"sentences": sentences, "foreign": [self._foreign(query, name) for name in query.systems]}

    def _foreign(self, query: Query, name: str) -> dict[str, Any]:
        """How much of a request is new to a system, and what to tell a reader about it, if anything."""
        share = self._systems[name].parser.foreign(query.sentences)
        note = str(share) if share.is_notable else ""
        return {"system": name, "words": share.words, "new": share.new, "note": note}

    def close(self) -> None:
        """Answer nobody any more."""
        self._batcher.close()
        self._hands.shutdown()

    def __enter__(self) -> "Api":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def _run(self, jobs: Sequence[_Job]) -> list[Inspection | Exception]:
        """The jobs of each system together; who asks for fewer heads gets fewer later."""
        results: dict[int, Inspection | Exception] = {}
        self.metrics.batch([len(job.sentence) for job in jobs])
        for name, system in self._systems.items():
            mine = [k for k, job in enumerate(jobs) if job.system == name]
            if not mine:
                continue
            found = system.inspect(
                [jobs[k].sentence for k in mine],
                [jobs[k].constraints for k in mine],
                top=max(jobs[k].top for k in mine),
            )
            results.update(zip(mine, found, strict=True))
        return [results[k] for k in range(len(jobs))]

    def _constraints(self, query: Query, name: str) -> list[tuple[Constraints | None, list[str]]]:
        """For each sentence the constraints that this system has a place for, and which kinds it has none for."""
        system = self._systems[name]
        found: list[tuple[Constraints | None, list[str]]] = []
        for sentence, constraints in zip(query.sentences, query.constraints, strict=True):
            if constraints is None:
                found.append((None, []))
                continue
            _check_places(constraints, [self._systems[other] for other in query.systems])
            kept = _fitting(constraints, system)
            try:
                kept.check(len(sentence), system.about.roles)
            except ValueError as error:
                raise Refused(422, str(error)) from None
            ignored = [field for field in CONSTRAINTS if getattr(kept, field) != getattr(constraints, field)]
            found.append((None if kept == Constraints() else kept, ignored))
        return found

    def _sentence(
        self,
        query: Query,
        k: int,
        found: dict[tuple[int, int, bool], Inspection],
        wanted: Sequence[Sequence[tuple[Constraints | None, list[str]]]],
    ) -> dict[str, Any]:
        standalone = query.draw == "file"
        answers = []
        for s, name in enumerate(query.systems):
            mine, free, given = found[k, s, True], found.get((k, s, False)), self._systems[name].annotations
            answer = {"system": name, **plain(mine, given, top=query.top), "ignored": wanted[s][k][1]}
            if query.draw != "no":
                answer["svg"] = draw(mine, given, free=free, constraints=wanted[s][k][0], standalone=standalone)
            if query.draw == "page":
                answer["passed"] = self._passed(self._systems[name], mine)
            if free is not None:
                without = plain(free, given)
                answer["free"] = {field: without[field] for field in _FREE}
            answers.append(answer)
        whole: dict[str, Any] = {"forms": list(query.sentences[k].forms), "answers": answers}
        if query.draw != "no" and len(query.systems) == 2:
            demands = (wanted[0][k][0], wanted[1][k][0])
            pair = found[k, 0, True], found[k, 1, True]
            given = {a.name: a for name in query.systems for a in self._systems[name].annotations}
            whole["compare"] = draw_pair(*pair, list(given.values()), constraints=demands, standalone=standalone)
        return whole

    def _passed(self, system: Served, found: Inspection) -> dict[str, str]:
        """A drawing of the structure that passed each wire, by the wire's name."""
        by_name = {annotation.name: annotation for annotation in system.annotations}
        passed = ((wire.name, by_name.get(wire.annotation)) for wire in system.about.wires)
        return {name: draw(found, [annotation]) for name, annotation in passed if annotation is not None}


@contextmanager
def _refusing() -> Iterator[None]:
    """What the decoder cannot do is no mistake of ours."""
    try:
        yield
    except Busy as error:
        raise Refused(503, str(error)) from None
    except ValueError as error:
        raise Refused(422, str(error)) from None


def _cost(length: int) -> int:
    """What a sentence costs, in words of short ones: the time of a parser grows with the cube of the length."""
    return length + 2 + length**3 // 8000


def _fitting(constraints: Constraints, system: Served) -> Constraints:
    """Without what is about structures or roles that the system does not have."""
    kept = {kind: alone for kind, alone in constraints.by_kind().items() if kind in system.held}

    def known(arcs: Sequence[Arc]) -> tuple[Arc, ...]:
        return tuple(arc for arc in arcs if arc.role in ("", TOP) or arc.role in system.about.roles)

    def all_of_them(field: str) -> tuple[Any, ...]:
        return tuple(each for alone in kept.values() for each in getattr(alone, field))

    return Constraints(
        heads=all_of_them("heads"),
        not_heads=all_of_them("not_heads"),
        arcs=known(all_of_them("arcs")),
        not_arcs=known(all_of_them("not_arcs")),
    )


def _check_places(constraints: Constraints, systems: Sequence[Served]) -> None:
    """Every constraint must mean something to one of the systems at least."""
    kept = [_fitting(constraints, system) for system in systems]
    names = " and ".join(system.name for system in systems)
    have = "have" if len(systems) > 1 else "has"
    for kind, alone in constraints.by_kind().items():
        for field in CONSTRAINTS:
            for wanted in getattr(alone, field):
                if any(wanted in getattr(fitting, field) for fitting in kept):
                    continue
                if not any(kind in system.held for system in systems):
                    what = f"no {kind} of which parts can be forced or forbidden; leave {field} out"
                else:
                    known = sorted({role for system in systems for role in system.about.roles})
                    what = f"no role {wanted[-1][:40]!r}; there are {', '.join(known[:12])}"
                    what += f" and {len(known) - 12} more" if len(known) > 12 else ""
                raise Refused(422, f"{names} {have} {what}.")
