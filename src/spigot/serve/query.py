"""What a client asks for, checked: nothing behind this file sees a value it did not expect."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spigot.data.sentence import Arc, Sentence
from spigot.data.text.conventions import Conventions
from spigot.models import Constraints

Draw = Literal["no", "page", "file"]
_KEYS = ("text", "words", "tags", "systems", "constraints", "top", "draw")
_PAIRS, _ARCS = ("heads", "not_heads"), ("arcs", "not_arcs")
CONSTRAINTS = (*_PAIRS, *_ARCS)
"""The kinds of constraints, as requests and `Constraints` call them."""


@dataclass(frozen=True)
class Limits:
    """How much one client may ask for, and how long it may take.

    Attributes:
        body: Bytes of a request.
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
        spigot.serve.query.Refused: "text" is 3; it must be a string.
    """
    if not isinstance(given, dict):
        raise Refused(400, f"the body is {_short(given)}; it must be an object with text or words.")
    for key in given:
        if key not in _KEYS:
            raise Refused(400, f"{_short(key)} is nothing that can be asked for; there are {', '.join(_KEYS)}.")
    systems = _systems(given.get("systems"), list(known), limits)
    found = _sentences(given, known[systems[0]] if systems else Conventions(), limits)
    total = sum(map(len, found)) * len(systems)
    if total > limits.total:
        raise Refused(
            413,
            f"this is {sum(map(len, found))} words for {len(systems)} systems; "
            f"words times systems may be {limits.total} at most, so send less at a time.",
        )
    return Query(
        tuple(found),
        systems,
        _constraints(given.get("constraints"), found, limits),
        _number("top", given.get("top", 5), 1, limits.top),
        _draw(given.get("draw", False)),
    )


def _systems(given: object, names: Sequence[str], limits: Limits) -> tuple[str, ...]:
    if given is None:
        return tuple(names[:1])
    if not isinstance(given, list) or not given or not all(isinstance(name, str) for name in given):
        raise Refused(400, f'"systems" is {_short(given)}; it must be a list with the name of at least one system.')
    if len(given) > limits.systems or len(set(given)) < len(given):
        raise Refused(400, f'"systems" has {len(given)} names; name {limits.systems} at most, and each once.')
    for name in given:
        if name not in names:
            raise Refused(404, f"no system is called {_short(name)}; there are {', '.join(names)}.")
    return tuple(given)


def _sentences(given: Mapping[str, Any], conventions: Conventions, limits: Limits) -> list[Sentence]:
    text, words, tags = given.get("text"), given.get("words"), given.get("tags")
    if (text is None) == (words is None):
        raise Refused(400, "a request has either text or words; send one of them.")
    if text is not None:
        if not isinstance(text, str):
            raise Refused(400, f'"text" is {_short(text)}; it must be a string.')
        if tags is not None:
            raise Refused(400, '"tags" belong to "words"; with "text" nobody knows yet which words there are.')
        _check_characters("text", text)
        found = list(conventions.sentences(text))
    else:
        forms = _strings("words", words)
        named = None if tags is None else _strings("tags", tags)
        if named is not None and len(named) != len(forms):
            raise Refused(400, f"there are {len(forms)} words but {len(named)} tags; send one tag for each word.")
        found = [Sentence(forms, tags=named)]
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


def _strings(name: str, given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(value, str) and value.strip() for value in given):
        raise Refused(400, f'"{name}" is {_short(given)}; it must be a list of strings, none of them blank.')
    for value in given:
        _check_characters(name, value)
    return tuple(given)


def _check_characters(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Refused(
            400, f'"{name}" has half a character ({text[error.start]!a}); send text that is whole Unicode.'
        ) from None


def _constraints(given: object, found: Sequence[Sentence], limits: Limits) -> tuple[Constraints | None, ...]:
    """One entry for each sentence. An object alone is about the first sentence."""
    if given is None:
        return (None,) * len(found)
    entries = given if isinstance(given, list) else [given]
    if len(entries) > len(found):
        raise Refused(
            400, f"there are constraints on {len(entries)} sentences, but the text has {len(found)}; send one for each."
        )
    made = [None if entry is None else _constraint(entry, limits) for entry in entries]
    return (*made, *[None] * (len(found) - len(made)))


def _constraint(given: object, limits: Limits) -> Constraints | None:
    if not isinstance(given, dict):
        raise Refused(400, f"a constraint is {_short(given)}; it must be an object with {', '.join(CONSTRAINTS)}.")
    for key, values in given.items():
        if key not in CONSTRAINTS:
            raise Refused(400, f"{_short(key)} is no constraint; there are {', '.join(CONSTRAINTS)}.")
        if not isinstance(values, list):
            raise Refused(400, f'"{key}" is {_short(values)}; it must be a list.')
    if sum(map(len, given.values())) > limits.constraints:
        raise Refused(413, f"there are more than {limits.constraints} constraints on a sentence; send fewer.")
    pairs = {key: tuple(_pair(key, value) for value in given.get(key, [])) for key in _PAIRS}
    arcs = {key: tuple(_arc(key, value) for value in given.get(key, [])) for key in _ARCS}
    if not any(pairs.values()) and not any(arcs.values()):
        return None
    return Constraints(pairs["heads"], pairs["not_heads"], arcs["arcs"], arcs["not_arcs"])


def _pair(key: str, given: object) -> tuple[int, int]:
    if not isinstance(given, list) or len(given) != 2 or not all(map(_is_whole, given)):
        raise Refused(400, f'"{key}" has {_short(given)}; it must have pairs of a word and its head, as numbers.')
    return given[0], given[1]


def _arc(key: str, given: object) -> Arc:
    if (
        not isinstance(given, list)
        or len(given) not in (2, 3)
        or not all(map(_is_whole, given[:2]))
        or not all(isinstance(role, str) for role in given[2:])
    ):
        raise Refused(
            400, f'"{key}" has {_short(given)}; it must have a predicate, an argument and a role: [2, 1, "ARG1"].'
        )
    return Arc(given[0], given[1], given[2] if len(given) == 3 else "")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


def _number(name: str, given: object, low: int, high: int) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not low <= given <= high:
        raise Refused(400, f'"{name}" is {_short(given)}; it must be a whole number from {low} to {high}.')
    return given


def _draw(given: object) -> Draw:
    if given is False:
        return "no"
    if given is True:
        return "page"
    if given == "file":
        return "file"
    raise Refused(400, f'"draw" is {_short(given)}; it must be true, false or "file".')


def _short(value: object) -> str:
    """A value as it stands in a message, whatever its size."""
    text = json.dumps(value, default=repr) if not isinstance(value, str) else repr(value[:80])
    return text if len(text) <= 60 else f"{text[:57]}..."
