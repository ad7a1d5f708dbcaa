"""The answers of the JSON interface, without the network around them: request, batch, inspection, response."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

import spigot
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.inspection import Inspection
from spigot_nlp.serve.batching import Batcher, Busy
from spigot_nlp.serve.requests import CONSTRAINTS, Query, Refused, check_sentence, read_query, read_request
from spigot_nlp.serve.responses import (
    ErrorResponse,
    FreeParse,
    HealthResponse,
    LimitsInfo,
    OutOfVocabulary,
    ParseResponse,
    SentenceParse,
    SystemParse,
    SystemsResponse,
    draw,
    draw_pair,
    free_parse,
    parse_fields,
)
from spigot_nlp.serve.settings import Limits, brief
from spigot_nlp.serve.systems import Served, best_first
from spigot_nlp.stages.constraints import Constraints

_Made = TypeVar("_Made")
_SMALL, _FEW = 1000, 4  # bytes and sentences of requests that are read and answered in less time than a thread takes
_PIECE = 16  # sentences of a stream that are under way at a time
_EXAMPLES = 4  # texts that a page offers to begin with


class Metrics:
    """What has been asked and answered since the start, for Prometheus: `prometheus_client.generate_latest(registry)`.

    Attributes:
        registry: All of the following.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        known = {"namespace": "spigot", "registry": self.registry}
        self.requests = Counter("requests", "Requests by path and status.", ["path", "status"], **known)
        self.in_progress = Gauge("requests_in_progress", "Requests that are being answered.", **known)
        self.seconds = Histogram("parse_seconds", "How long requests to /api/parse took.", **known)
        self.batches = Counter("batches", "Batches that were parsed.", **known)
        self.sentences = Counter("sentences", "Sentences that were parsed, once for each system and demand.", **known)
        self.words = Counter("words", "Words of these sentences.", **known)
        Info("server", "The version.", **known).info({"version": spigot.__version__})


@dataclass(frozen=True, eq=False)
class _Job:
    """A sentence for a system."""

    system: Served
    sentence: Sentence
    constraints: Constraints | None
    top: int

    @property
    def cost(self) -> int:
        """In words of short sentences: the time of a parser grows with the cube of the length."""
        length = len(self.sentence)
        return length + 2 + length**3 // 8000


@dataclass(frozen=True)
class _Asked:
    """What one system is asked about one sentence: with the constraints and, to draw what they changed, without."""

    job: _Job
    free: _Job | None
    ignored: list[str]


class Api:
    """Trained systems that answer many clients at once.

    Args:
        systems: The systems, each with a name of its own.
        limits: How much a client may ask for.
        metrics: Where to count what is done.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Arc, Graph
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]))
        >>> parser = fresh(make_config({"data": {"tags": "columns"}}), {"graphs": [rain]})
        >>> with Api([Served("rain", parser)]) as api:
        ...     answer = api.parse({"words": ["Rain", "fell"], "constraints": {"heads": [[1, 2]]}})
        >>> answer.sentences[0].answers[0].heads
        [2, 0]
    """

    def __init__(self, systems: Sequence[Served], limits: Limits = Limits(), metrics: Metrics | None = None) -> None:
        self.limits, self.metrics = limits, metrics or Metrics()
        self._systems = {system.name: system for system in systems}
        self._conventions = {system.name: system.conventions for system in systems}
        for system in systems:
            system.parser.model.eval()
        self._batcher: Batcher[_Job, Inspection] = Batcher(
            self._counted, lambda job: job.cost, most=limits.batch, waiting=limits.waiting
        )

    @cached_property
    def systems(self) -> SystemsResponse:
        """What there is to ask."""
        limits = {name: getattr(self.limits, name) for name in LimitsInfo.model_fields}
        systems = [system.info(self._examples(system)) for system in self._systems.values()]
        return SystemsResponse(systems=systems, limits=LimitsInfo(**limits))

    def _examples(self, system: Served) -> list[str]:
        """Texts to begin with. Of the first system, those first that tell it from the second one."""
        first, *others = self._systems.values()
        known = system.known
        if system is first:
            told = [
                self._run([_Job(each, Sentence(one.sentence.forms), None, 1) for one in known])
                for each in (first, *others[:1])
            ]
            answers = [[one.sentence for one in found if isinstance(one, Inspection)] for found in told]
            known = best_first(known, answers, first.annotations)
        return [one.text for one in known[:_EXAMPLES]]

    @property
    def health(self) -> HealthResponse:
        """That there is somebody."""
        waiting = self._batcher.waiting
        return HealthResponse(status="ok", version=spigot.__version__, systems=len(self._systems), waiting=waiting)

    @property
    def is_ready(self) -> bool:
        """Whether a request that came now would be answered."""
        return self._batcher.has_room

    def parse(self, given: object) -> ParseResponse:
        """Parse the sentences of a request, at once and in this thread.

        Args:
            given: The request, as `json.loads` gives it.

        Returns:
            For each sentence its forms, the answers of the systems in the order they were named, and, if drawings were
            wanted of two systems, a comparison.

        Raises:
            Refused: If the request is not understood, or cannot be done.
        """
        query, asked = self._read(given)
        jobs = _jobs(asked)
        results = self._run(jobs)
        for result in results:
            if isinstance(result, Exception):
                raise Refused(422, str(result))
        return self._response(query, asked, dict(zip(jobs, results, strict=True)))  # pyright: ignore[reportArgumentType] (no exceptions)

    async def answer(self, body: bytes) -> bytes:
        """The same from bytes to bytes, together with the requests that wait at the same time."""
        # What takes a millisecond is done at once: to hand it to another thread and back takes longer.
        query, asked = await _made(lambda: self._read(body), at_once=len(body) <= _SMALL)
        jobs = _jobs(asked)
        with _refusing():
            results = await self._batcher.submit(jobs, seconds=self.limits.seconds)
        found = dict(zip(jobs, results, strict=True))
        small = not query.draw and len(jobs) <= _FEW
        return await _made(lambda: _json(self._response(query, asked, found)), at_once=small)

    async def stream(self, body: bytes, is_closing: Callable[[], object] = lambda: False) -> AsyncIterator[bytes]:
        """The answers to the sentences of a text one by one, as lines of JSON, while the rest is still to be parsed.

        A sentence that cannot be parsed has a line that says why. If the server cannot go on, the last line says so.
        """
        query = await _made(
            lambda: read_query(read_request(body), self._conventions, self.limits, streamed=True), at_once=False
        )
        return self._lines(query, is_closing)

    async def _lines(self, query: Query, is_closing: Callable[[], object]) -> AsyncIterator[bytes]:
        numbered = enumerate(query.sentences)
        try:
            while piece := await _made(lambda: list(itertools.islice(numbered, _PIECE)), at_once=False):
                for line in await asyncio.gather(*(self._line(query, k, sentence) for k, sentence in piece)):
                    yield line + b"\n"
                if is_closing():
                    raise Busy("the server is closing.")
        except Busy as error:
            yield _json(ErrorResponse(error=str(error))) + b"\n"

    async def _line(self, query: Query, k: int, sentence: Sentence) -> bytes:
        try:
            check_sentence(sentence, self.limits)
            asked = self._asked(query, k, sentence)
            jobs = _jobs([asked])
            found = dict(zip(jobs, await self._batcher.submit(jobs, seconds=self.limits.seconds), strict=True))
        except (Refused, ValueError) as error:
            return _json(ErrorResponse(error=str(error)))
        return await _made(lambda: _json(_sentence(query, asked, found)), at_once=not query.draw)

    def close(self) -> None:
        """Answer nobody any more."""
        self._batcher.close()

    def __enter__(self) -> "Api":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def _counted(self, jobs: Sequence[_Job]) -> list[Inspection | Exception]:
        self.metrics.batches.inc()
        self.metrics.sentences.inc(len(jobs))
        self.metrics.words.inc(sum(len(job.sentence) for job in jobs))
        return self._run(jobs)

    def _run(self, jobs: Sequence[_Job]) -> list[Inspection | Exception]:
        """The jobs of each system together; who asks for fewer heads gets fewer later."""
        results: dict[int, Inspection | Exception] = {}
        for system in self._systems.values():
            mine = [k for k, job in enumerate(jobs) if job.system is system]
            if mine:
                some = [jobs[k] for k in mine]
                top = max(job.top for job in some)
                found = system.inspect([job.sentence for job in some], [job.constraints for job in some], top=top)
                results.update(zip(mine, found, strict=True))
        return [results[k] for k in range(len(jobs))]

    def _read(self, given: object) -> tuple[Query, list[list[_Asked]]]:
        query = read_query(read_request(given), self._conventions, self.limits)
        return query, [self._asked(query, k, sentence) for k, sentence in enumerate(query.sentences)]

    def _asked(self, query: Query, k: int, sentence: Sentence) -> list[_Asked]:
        constraints = query.constraints[k] if k < len(query.constraints) else None
        systems = [self._systems[name] for name in query.systems]
        if constraints is None:
            return [_Asked(_Job(system, sentence, None, query.top), None, []) for system in systems]
        _check_places(constraints, systems)
        found = []
        for system in systems:
            kept = system.fitting(constraints)
            try:
                kept.check(len(sentence), system.roles)
            except ValueError as error:
                raise Refused(422, str(error)) from None
            ignored = [field for field in CONSTRAINTS if getattr(kept, field) != getattr(constraints, field)]
            demands = None if kept == Constraints() else kept
            free = _Job(system, sentence, None, 1) if demands is not None and query.draw else None
            found.append(_Asked(_Job(system, sentence, demands, query.top), free, ignored))
        return found

    def _response(
        self, query: Query, asked: Sequence[Sequence[_Asked]], found: Mapping[_Job, Inspection]
    ) -> ParseResponse:
        shares = [(name, self._systems[name].parser.out_of_vocabulary(query.sentences)) for name in query.systems]
        return ParseResponse(
            sentences=[_sentence(query, some, found) for some in asked],
            out_of_vocabulary=[
                OutOfVocabulary(
                    system=name, words=share.words, new=share.new, note=str(share) if share.is_notable else ""
                )
                for name, share in shares
            ],
        )


def _jobs(asked: Iterable[Iterable[_Asked]]) -> list[_Job]:
    return [job for some in asked for one in some for job in (one.job, one.free) if job is not None]


def _sentence(query: Query, asked: Sequence[_Asked], found: Mapping[_Job, Inspection]) -> SentenceParse:
    standalone, answers = query.draw == "file", []
    for one in asked:
        system, mine, free = one.job.system, found[one.job], None if one.free is None else found[one.free]
        given = system.annotations
        more = {}
        if query.draw:
            more["svg"] = draw(mine, given, free=free, constraints=one.job.constraints, standalone=standalone)
        if query.draw is True:
            by_name = {annotation.name: annotation for annotation in given}
            passed = ((wire.name, by_name.get(wire.annotation)) for wire in system.wires)
            more["passed"] = {name: draw(mine, [one]) for name, one in passed if one is not None}
        if free is not None:
            more["free"] = FreeParse(**free_parse(free, given))
        fields = parse_fields(mine, given, top=query.top)
        answers.append(SystemParse(system=system.name, ignored=one.ignored, **fields, **more))
    forms = list(asked[0].job.sentence.forms) if asked else []
    if not (query.draw and len(asked) == 2):
        return SentenceParse(forms=forms, answers=answers)
    first, second = (one.job for one in asked)
    given = {a.name: a for job in (first, second) for a in job.system.annotations}
    demands = (first.constraints, second.constraints)
    pair = draw_pair(found[first], found[second], [*given.values()], constraints=demands, standalone=standalone)
    return SentenceParse(forms=forms, answers=answers, compare=pair)


def _json(response: ParseResponse | SentenceParse | ErrorResponse) -> bytes:
    return response.__pydantic_serializer__.to_json(response, exclude_unset=True)


async def _made(make: Callable[[], _Made], *, at_once: bool) -> _Made:
    """What takes long is made in another thread, while this one takes requests."""
    return make() if at_once else await asyncio.to_thread(make)


@contextmanager
def _refusing() -> Iterator[None]:
    """What the decoder cannot do is no mistake of ours."""
    try:
        yield
    except Busy as error:
        raise Refused(503, str(error)) from None
    except ValueError as error:
        raise Refused(422, str(error)) from None


def _check_places(constraints: Constraints, systems: Sequence[Served]) -> None:
    """Every constraint must mean something to one of the systems at least."""
    kept = [system.fitting(constraints) for system in systems]
    who = f"{' and '.join(system.name for system in systems)} {'have' if len(systems) > 1 else 'has'}"
    for kind, alone in constraints.by_kind().items():
        for field, wanted in ((name, one) for name in CONSTRAINTS for one in getattr(alone, name)):
            if any(wanted in getattr(fitting, field) for fitting in kept):
                continue
            if not any(kind in system.held for system in systems):
                raise Refused(422, f"{who} no {kind} of which parts can be forced or forbidden; leave {field} out.")
            known = sorted({role for system in systems for role in system.roles})
            more = f" and {len(known) - 12} more" if len(known) > 12 else ""
            raise Refused(422, f"{who} no role {brief(wanted[-1])}; there are {', '.join(known[:12])}{more}.")
