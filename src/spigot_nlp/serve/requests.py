"""What a client asks for: the models of requests, and what they come to. Nothing behind sees an unexpected value."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError
from pydantic_core import PydanticCustomError

from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.serve.settings import Limits, brief, complaint
from spigot_nlp.stages.constraints import Constraints


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


def _not_blank(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("blank", "it must not be blank")
    return value


def _with_role(value: Any) -> Any:
    return [*value, ""] if isinstance(value, list | tuple) and len(value) == 2 else value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


Text: TypeAlias = Annotated[str, Strict()]
Word: TypeAlias = Annotated[Text, AfterValidator(_not_blank)]
Place: TypeAlias = Annotated[int, Strict(), Field(gt=-(2**31), lt=2**31)]
Pair: TypeAlias = tuple[Place, Place]
Triple: TypeAlias = Annotated[
    tuple[Place, Place, Text],
    BeforeValidator(_with_role, json_schema_input_type=tuple[Place, Place] | tuple[Place, Place, Text]),
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ConstraintsRequest(_Request):
    """What the structures of a sentence must have and must not have. Words count from 1, and 0 is the root."""

    heads: list[Pair] = Field(default=[], description="Pairs of a word and the head it must have.")
    not_heads: list[Pair] = Field(default=[], description="Pairs of a word and a head it must not have.")
    arcs: list[Triple] = Field(
        default=[], description="Graph arcs that must be there: predicate, argument, role; without a role, any will do."
    )
    not_arcs: list[Triple] = Field(default=[], description="Graph arcs that must not be there.")


CONSTRAINTS = tuple(ConstraintsRequest.model_fields)
"""The kinds of constraints, as requests and `Constraints` call them."""

_Demands: TypeAlias = list[ConstraintsRequest | None]


class ParseRequest(_Request):
    """A request to parse: either a text, or the words of one sentence."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "The judge hoped to remember it.", "top": 3, "draw": False}]}
    )

    text: Text | None = Field(default=None, description="Text, which is divided into sentences and words.")
    words: list[Word] | None = Field(default=None, description="One sentence as a list of words, instead of text.")
    tags: list[Word] | None = Field(default=None, description="The tags of these words, if they are known.")
    systems: Annotated[list[Text], Field(min_length=1)] | None = Field(
        default=None, description="The systems to ask, by name; by default the first one."
    )
    constraints: (
        Annotated[_Demands, BeforeValidator(_listed, json_schema_input_type=ConstraintsRequest | _Demands)] | None
    ) = Field(default=None, description="Demands on the first sentence, or a list with those on each.")
    top: Annotated[int, Strict()] = Field(default=5, ge=1, description="How many next-best heads of a word to list.")
    draw: Literal[False, True, "file"] = Field(
        default=False, description='Whether drawings come along: true for a page, "file" for files of their own.'
    )


@dataclass(frozen=True)
class Query:
    """A request that was understood.

    Attributes:
        sentences: What to parse.
        systems: Which systems to ask.
        constraints: What must and must not be in the structures of the first sentences.
        top: How many heads to list for each word.
        draw: Whether to draw what was found: for a page, or as files of their own.
    """

    sentences: Iterable[Sentence]
    systems: tuple[str, ...]
    constraints: tuple[Constraints | None, ...] = ()
    top: int = 5
    draw: bool | Literal["file"] = False


def read_request(given: object) -> ParseRequest:
    """The request that a body is, or a value of Python stands for.

    Raises:
        Refused: If its form is not that of a request.

    Example:
        >>> read_request(b'{"text": 3}')
        Traceback (most recent call last):
        ...
        spigot_nlp.serve.requests.Refused: text is 3; it should be a valid string.
    """
    try:
        if isinstance(given, bytes):
            return ParseRequest.model_validate_json(given)
        return ParseRequest.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        raise Refused(400, f"the body is no JSON in UTF-8 ({first['msg'].removeprefix('Invalid JSON: ')}).")
    if not first["loc"]:
        raise Refused(400, f"the body is {brief(first['input'])}; it must be an object with text or words.")
    if first["type"] == "extra_forbidden":
        names = ", ".join(ParseRequest.model_fields if len(first["loc"]) == 1 else CONSTRAINTS)
        raise Refused(400, f"{brief(first['loc'][-1])} is nothing that can be asked for; there are {names}.")
    raise Refused(400, complaint(first))


def read_query(
    asked: ParseRequest, known: Mapping[str, Conventions], limits: Limits = Limits(), *, streamed: bool = False
) -> Query:
    """Check what a request asks for.

    Text is cut into words in the manner of the first system that is asked: answers about other words could not be
    compared.

    Args:
        asked: The request.
        known: The systems there are, each with its manner of cutting words; the first is asked if the request names
            none.
        limits: What is allowed.
        streamed: Whether the sentences are checked one by one, as they are taken.

    Raises:
        Refused: If anything in it is not as it should be.

    Example:
        >>> asked = read_request({"words": ["Rain", "fell"], "constraints": {"heads": [[1, 2]]}})
        >>> query = read_query(asked, {"rain": Conventions()})
        >>> query.sentences[0].forms, query.constraints[0].heads
        (('Rain', 'fell'), ((1, 2),))
    """
    systems = _systems(asked.systems, list(known), limits)
    if asked.top > limits.top:
        raise Refused(400, f"top is {brief(asked.top)}; it must be from 1 to {limits.top}.")
    constraints = tuple(None if one is None else _constraints(one, limits) for one in asked.constraints or ())
    sentences = _sentences(asked, known[systems[0]] if systems else Conventions())
    if not streamed:
        sentences = list(sentences)
        for sentence in sentences:
            check_sentence(sentence, limits)
        _check_sizes(sentences, len(systems), len(constraints), limits)
    return Query(sentences, systems, constraints, asked.top, asked.draw)


def check_sentence(sentence: Sentence, limits: Limits) -> None:
    """Refuse a sentence that is too long, or has a word that is."""
    if len(sentence) > limits.words:
        start = brief(" ".join(sentence.forms[:4]))
        most = f"a sentence may have {limits.words}"
        raise Refused(413, f"the sentence that begins with {start} has {len(sentence)} words; {most}.")
    longest = max(sentence.forms, key=len, default="")
    if len(longest) > limits.characters:
        most = f"a word may have {limits.characters}"
        raise Refused(413, f"the word {brief(longest)} has {len(longest)} characters; {most}.")


def _check_sizes(found: Sequence[Sentence], systems: int, demands: int, limits: Limits) -> None:
    words = sum(map(len, found))
    if words * systems > limits.total:
        what = f"{words} words for {systems} system{'s' if systems > 1 else ''}"
        most = f"words times systems may be {limits.total} at most"
        raise Refused(413, f"this is {what}; {most}, so send less at a time, or take the answer as a stream.")
    if demands > len(found):
        raise Refused(
            400, f"there are constraints on {demands} sentences, but the text has {len(found)}; send one for each."
        )


def _systems(given: Sequence[str] | None, names: Sequence[str], limits: Limits) -> tuple[str, ...]:
    if given is None:
        return tuple(names[:1])
    if len(given) > limits.systems or len(set(given)) < len(given):
        raise Refused(400, f"systems has {len(given)} names; name {limits.systems} at most, and each once.")
    for name in given:
        if name not in names:
            raise Refused(404, f"no system is called {brief(name)}; there are {', '.join(names)}.")
    return tuple(given)


def _sentences(asked: ParseRequest, conventions: Conventions) -> Iterable[Sentence]:
    if (asked.text is None) == (asked.words is None):
        raise Refused(400, "a request has either text or words; send one of them.")
    if asked.words is None:
        if asked.tags is not None:
            raise Refused(400, "tags belong to words; with text nobody knows yet which words there are.")
        return conventions.sentences(asked.text or "")
    if asked.tags is not None and len(asked.tags) != len(asked.words):
        raise Refused(400, f"there are {len(asked.words)} words but {len(asked.tags)} tags; send one for each.")
    return [Sentence(tuple(asked.words), tags=None if asked.tags is None else tuple(asked.tags))]


def _constraints(given: ConstraintsRequest, limits: Limits) -> Constraints | None:
    if sum(len(getattr(given, kind)) for kind in CONSTRAINTS) > limits.constraints:
        raise Refused(413, f"there are more than {limits.constraints} constraints on a sentence; send fewer.")
    made = Constraints(
        tuple(given.heads),
        tuple(given.not_heads),
        tuple(Arc(*arc) for arc in given.arcs),
        tuple(Arc(*arc) for arc in given.not_arcs),
    )
    return None if made == Constraints() else made
