"""What a client asks for, checked: nothing behind this file sees a value it did not expect."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.serve.schemas import WANTED, ConstraintsRequest, ParseRequest, Triple
from spigot_nlp.stages.constraints import Constraints

Draw = Literal["no", "page", "file"]
_DRAW: Mapping[object, Draw] = {False: "no", True: "page", "file": "file"}
CONSTRAINTS = tuple(ConstraintsRequest.model_fields)
"""The kinds of constraints, as requests and `Constraints` call them."""


@dataclass(frozen=True)
class Limits:
    """How much one client may ask for, and how long it may take.

    Attributes:
        body: Bytes of a request.
        head: Bytes of its first line and its headers.
        headers: How many headers it may have.
        words: Words of a sentence.
        total: Words of a request, counted once for each system.
        characters: Characters of a word.
        systems: Systems of a request.
        top: Next-best heads of a word.
        constraints: Constraints on a sentence.
        batch: Words that are parsed together; those of long sentences count for more.
        waiting: Requests that may wait.
        connections: Connections that may be open.
        seconds: How long an answer may take.
        patience: How long a client may take to send a request or to fetch its answer, in seconds.
        idle: How long a connection may be silent between requests, in seconds.

    Example:
        >>> Limits(words=100).words
        100
    """

    body: int = 64 * 1024
    head: int = 64 * 1024
    headers: int = 100
    words: int = 300
    total: int = 1500
    characters: int = 200
    systems: int = 4
    top: int = 20
    constraints: int = 100
    batch: int = 2048
    waiting: int = 256
    connections: int = 256
    seconds: float = 30.0
    patience: float = 10.0
    idle: float = 60.0


class Refused(Exception):
    """A request that is not answered.

    Attributes:
        status: The code of HTTP for it.
        reason: Why, in one sentence.

    Example:
        >>> Refused(413, "this is too much.").status
        413
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


@dataclass(frozen=True)
class Query:
    """A request to parse.

    Attributes:
        sentences: What to parse.
        systems: Which systems to ask.
        constraints: What must and must not be in the structures of each sentence.
        top: How many heads to list for each word.
        draw: Whether to draw what was found: for a page, or as files of their own.

    Example:
        >>> Query((Sentence(("Rain",)),), ("spigot",), (None,)).draw
        'no'
    """

    sentences: tuple[Sentence, ...]
    systems: tuple[str, ...]
    constraints: tuple[Constraints | None, ...]
    top: int = 5
    draw: Draw = "no"


def read_json(body: bytes) -> object:
    """The value that a body stands for.

    Raises:
        Refused: If it is no JSON.

    Example:
        >>> read_json(b'{"text": "Rain fell."}')
        {'text': 'Rain fell.'}
    """

    def refuse(constant: str) -> object:
        raise ValueError(f"{constant} is no number of JSON")

    try:
        return json.loads(body.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Refused(400, f"the body is no JSON in UTF-8 ({problem}); send one object.") from None


def read_query(given: object, known: Mapping[str, Conventions], limits: Limits = Limits()) -> Query:
    """Check a request.

    Text is cut into words in the manner of the first system that is asked: answers about other words could not be
    compared.

    Args:
        given: What the body says.
        known: The systems there are, each with its manner of cutting words; the first is asked if the request names
            none.
        limits: What is allowed.

    Raises:
        Refused: If anything in it is not as it should be.

    Example:
        >>> query = read_query({"words": ["Rain", "fell"], "constraints": {"heads": [[1, 2]]}}, {"rain": Conventions()})
        >>> query.sentences[0].forms, query.constraints[0].heads
        (('Rain', 'fell'), ((1, 2),))
        >>> read_query({"text": 3}, {"rain": Conventions()})
        Traceback (most recent call last):
        ...
        spigot_nlp.serve.query.Refused: "text" is 3; it must be a string.
    """
    asked = _understood(given, limits)
    systems = _systems(asked.systems, list(known), limits)
    found = _sentences(asked, known[systems[0]] if systems else Conventions(), limits)
    total = sum(map(len, found)) * len(systems)
    if total > limits.total:
        raise Refused(
            413,
            f"this is {sum(map(len, found))} words for {len(systems)} system{'s' if len(systems) > 1 else ''}; "
            f"words times systems may be {limits.total} at most, so send less at a time.",
        )
    if not 1 <= asked.top <= limits.top:
        raise Refused(400, _unwanted("top", asked.top, limits))
    return Query(tuple(found), systems, _constraints(asked.constraints, found, limits), asked.top, _DRAW[asked.draw])


def _understood(given: object, limits: Limits) -> ParseRequest:
    """The request as far as its form goes."""
    if not isinstance(given, dict):
        raise Refused(400, f"the body is {_short(given)}; it must be an object with text or words.")
    for key in given:
        if key not in ParseRequest.model_fields:
            names = ", ".join(ParseRequest.model_fields)
            raise Refused(400, f"{_short(key)} is nothing that can be asked for; there are {names}.")
    try:
        return ParseRequest.model_validate(given)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)
        first = [one for one in wrong if one["loc"][0] == wrong[0]["loc"][0]]
        # Of what could have been meant, that is nearest which was understood the furthest.
        raise Refused(400, _complaint(given, max(first, key=lambda one: len(one["loc"])), limits)) from None


def _complaint(given: Mapping[str, Any], error: ErrorDetails, limits: Limits) -> str:
    """What is wrong with a field, in one sentence."""
    name = str(error["loc"][0])
    if name != "constraints":
        if error["type"] == "half":
            return f'"{name}" has half a character; send text that is whole Unicode.'
        return _unwanted(name, given[name], limits)
    value = given[name]
    places = list(error["loc"][1:])
    if isinstance(value, list) and (numbers := [place for place in places if isinstance(place, int)]):
        value = value[numbers[0]]
        places = places[places.index(numbers[0]) + 1 :]
    if not isinstance(value, dict):
        return f"a constraint is {_short(value)}; it must be an object with {', '.join(CONSTRAINTS)}."
    for key in value:
        if key not in CONSTRAINTS:
            return f"{_short(key)} is no constraint; there are {', '.join(CONSTRAINTS)}."
    kind = next(place for place in places if place in CONSTRAINTS)
    values = value[kind]
    if not isinstance(values, list):
        return f'"{kind}" is {_short(values)}; it must be a list.'
    number = next(place for place in places[places.index(kind) :] if isinstance(place, int))
    return f'"{kind}" has {_short(values[number])}; {WANTED[str(kind)]}.'


def _unwanted(name: str, value: object, limits: Limits) -> str:
    return f'"{name}" is {_short(value)}; {WANTED[name].format(top=limits.top)}.'


def _systems(given: Sequence[str] | None, names: Sequence[str], limits: Limits) -> tuple[str, ...]:
    if given is None:
        return tuple(names[:1])
    if len(given) > limits.systems or len(set(given)) < len(given):
        raise Refused(400, f'"systems" has {len(given)} names; name {limits.systems} at most, and each once.')
    for name in given:
        if name not in names:
            raise Refused(404, f"no system is called {_short(name)}; there are {', '.join(names)}.")
    return tuple(given)


def _sentences(asked: ParseRequest, conventions: Conventions, limits: Limits) -> list[Sentence]:
    if (asked.text is None) == (asked.words is None):
        raise Refused(400, "a request has either text or words; send one of them.")
    if asked.words is None:
        if asked.tags is not None:
            raise Refused(400, '"tags" belong to "words"; with "text" nobody knows yet which words there are.')
        found = list(conventions.sentences(asked.text or ""))
    else:
        tags = None if asked.tags is None else tuple(asked.tags)
        if tags is not None and len(tags) != len(asked.words):
            raise Refused(400, f"there are {len(asked.words)} words but {len(tags)} tags; send one tag for each word.")
        found = [Sentence(tuple(asked.words), tags=tags)]
    for sentence in found:
        if len(sentence) > limits.words:
            start = " ".join(sentence.forms[:4])
            raise Refused(
                413,
                f"the sentence that begins with {_short(start)} has {len(sentence)} words; "
                f"a sentence may have {limits.words}.",
            )
        for form in sentence.forms:
            if len(form) > limits.characters:
                raise Refused(
                    413, f"the word {_short(form)} has {len(form)} characters; a word may have {limits.characters}."
                )
    return found


def _constraints(
    given: ConstraintsRequest | Sequence[ConstraintsRequest | None] | None, found: Sequence[Sentence], limits: Limits
) -> tuple[Constraints | None, ...]:
    """One entry for each sentence. An object alone is about the first sentence."""
    if given is None:
        return (None,) * len(found)
    entries = [given] if isinstance(given, ConstraintsRequest) else given
    if len(entries) > len(found):
        raise Refused(
            400, f"there are constraints on {len(entries)} sentences, but the text has {len(found)}; send one for each."
        )
    made = [None if entry is None else _constraint(entry, limits) for entry in entries]
    return (*made, *[None] * (len(found) - len(made)))


def _constraint(given: ConstraintsRequest, limits: Limits) -> Constraints | None:
    if sum(len(getattr(given, kind)) for kind in CONSTRAINTS) > limits.constraints:
        raise Refused(413, f"there are more than {limits.constraints} constraints on a sentence; send fewer.")
    made = Constraints(tuple(given.heads), tuple(given.not_heads), _arcs(given.arcs), _arcs(given.not_arcs))
    return None if made == Constraints() else made


def _arcs(given: Sequence[Triple]) -> tuple[Arc, ...]:
    return tuple(Arc(arc[0], arc[1], arc[2] if len(arc) == 3 else "") for arc in given)


def _short(value: object) -> str:
    """A value as it stands in a message, whatever its size."""
    try:
        text = json.dumps(value, default=repr) if not isinstance(value, str) else repr(value[:80])
    except ValueError:  # a number with more digits than Python writes
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
