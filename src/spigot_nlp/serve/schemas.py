"""What requests and answers look like: the models behind the checks and behind the description of the interface."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict
from pydantic_core import PydanticCustomError


def _whole(value: str) -> str:
    """JSON can name half of a pair of surrogates, which no text can hold."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError("half", "it has half a character") from None
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("blank", "it is blank")
    return value


Text: TypeAlias = Annotated[str, Strict(), AfterValidator(_whole)]
Word: TypeAlias = Annotated[Text, AfterValidator(_not_blank)]
Place: TypeAlias = Annotated[int, Strict(), Field(gt=-(2**31), lt=2**31)]
Pair: TypeAlias = tuple[Place, Place]
Triple: TypeAlias = tuple[Place, Place] | tuple[Place, Place, Text]

WANTED = {
    "text": "it must be a string",
    "words": "it must be a list of strings, none of them blank",
    "tags": "it must be a list of strings, none of them blank",
    "systems": "it must be a list with the name of at least one system",
    "top": "it must be a whole number from 1 to {top}",
    "draw": 'it must be true, false or "file"',
    "heads": "it must have pairs of a word and its head, as numbers",
    "not_heads": "it must have pairs of a word and its head, as numbers",
    "arcs": 'it must have a predicate, an argument and a role: [2, 1, "ARG1"]',
    "not_arcs": 'it must have a predicate, an argument and a role: [2, 1, "ARG1"]',
}
"""What each field must be, as a refusal says it; in braces stands a limit."""


class _Asked(BaseModel):
    """What a client sends: nothing that has no name here."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Answered(BaseModel):
    """What a client gets."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class ConstraintsRequest(_Asked):
    """What the structures of a sentence must have and must not have. Words count from 1, and 0 is the root.

    Example:
        >>> ConstraintsRequest.model_validate({"heads": [[1, 2]]}).heads
        [(1, 2)]
    """

    heads: list[Pair] = Field(default=[], description="Pairs of a word and the head it must have.")
    not_heads: list[Pair] = Field(default=[], description="Pairs of a word and a head it must not have.")
    arcs: list[Triple] = Field(
        default=[], description="Graph arcs that must be there: predicate, argument, role; without a role, any will do."
    )
    not_arcs: list[Triple] = Field(default=[], description="Graph arcs that must not be there.")


class ParseRequest(_Asked):
    """A request to parse: either a text, or the words of one sentence.

    Example:
        >>> ParseRequest.model_validate({"text": "Rain fell."}).top
        5
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "The judge hoped to remember it.", "top": 3, "draw": False}]}
    )

    text: Text | None = Field(default=None, description="Text, which is divided into sentences and words.")
    words: list[Word] | None = Field(default=None, description="One sentence as a list of words, instead of text.")
    tags: list[Word] | None = Field(default=None, description="The tags of these words, if they are known.")
    systems: list[Text] | None = Field(
        default=None, min_length=1, description="The systems to ask, by name; by default the first one."
    )
    constraints: ConstraintsRequest | list[ConstraintsRequest | None] | None = Field(
        default=None, description="Demands on the first sentence, or a list with those on each."
    )
    top: Annotated[int, Strict()] = Field(default=5, description="How many next-best heads of a word to list.")
    draw: Annotated[bool, Strict()] | Literal["file"] = Field(
        default=False, description='Whether drawings come along: true for a page, "file" for files of their own.'
    )


class HeadAnswer(_Answered):
    """A head that a word could have.

    Example:
        >>> HeadAnswer(head=0, score=2.0, difference=0.0, marginal=None).head
        0
    """

    head: int = Field(description="The word, counted from 1; 0 is the root.")
    score: float | None
    difference: float | None = Field(description="Its score less that of the head that was chosen.")
    marginal: float | None = Field(description="Its probability, where the system has one.")
    relation: str | None = Field(default=None, description="Its relation, where the system finds relations.")


class RoleAnswer(_Answered):
    """Another role that an arc could have.

    Example:
        >>> RoleAnswer(role="ARG2", difference=-1.5).role
        'ARG2'
    """

    role: str
    difference: float | None


class ArcAnswer(_Answered):
    """The score of an arc of a graph.

    Example:
        >>> ArcAnswer(arc=(2, 1, "ARG1"), score=1.5, next_roles=[]).arc
        (2, 1, 'ARG1')
    """

    arc: tuple[int, int, str] = Field(description="Predicate, argument, role.")
    score: float | None
    next_roles: list[RoleAnswer]


class GraphAnswer(_Answered):
    """A semantic graph.

    Example:
        >>> GraphAnswer(arcs=[(2, 1, "ARG1")], tops=[2], predicates=[2]).tops
        [2]
    """

    arcs: list[tuple[int, int, str]] = Field(description="Predicate, argument, role.")
    tops: list[int]
    predicates: list[int]


class AnnotationAnswer(_Answered):
    """An annotation under a name of its own, as values and as it is drawn.

    Example:
        >>> AnnotationAnswer(value=["NP"], arcs=None, marks=["NP"], note=None, probabilities=None).marks
        ['NP']
    """

    value: Any = Field(description="The annotation in the form that its kind has.")
    arcs: list[tuple[int, int, str]] | None
    marks: list[str] | None
    note: str | None
    probabilities: dict[str, float | None] | None


class FreeAnswer(_Answered):
    """What a system finds without the constraints.

    Example:
        >>> FreeAnswer(heads=[2, 0], graph=None, label=None, probabilities=None, annotations={}).heads
        [2, 0]
    """

    heads: list[int] | None
    graph: GraphAnswer | None
    label: int | None
    probabilities: dict[str, float | None] | None
    annotations: dict[str, AnnotationAnswer]


class SystemAnswer(FreeAnswer):
    """What one system finds in one sentence; what it does not give is null.

    Example:
        >>> SystemAnswer.model_fields["next_heads"].description
        'For each word the best heads, the best first.'
    """

    system: str
    forms: list[str]
    tags: list[str] | None
    lemmas: list[str] | None
    upos: list[str] | None
    relations: list[str] | None
    next_heads: list[list[HeadAnswer]] | None = Field(description="For each word the best heads, the best first.")
    scores: list[ArcAnswer] | None = Field(description="The scores of the arcs of the graph.")
    ignored: list[str] = Field(description="Kinds of constraints that this system has no place for.")
    svg: str | None = Field(default=None, description="A drawing, if it was asked for.")
    passed: dict[str, str] | None = Field(default=None, description="A drawing of what passed each wire.")
    free: FreeAnswer | None = Field(default=None, description="What it finds without the constraints.")


class PairAnswer(_Answered):
    """Two systems in drawings that mark what differs.

    Example:
        >>> PairAnswer(first="<svg/>", second="<svg/>", both="<svg/>").both
        '<svg/>'
    """

    first: str
    second: str
    both: str


class SentenceAnswer(_Answered):
    """One sentence, and what each system finds in it.

    Example:
        >>> SentenceAnswer(forms=["Rain"], answers=[]).compare is None
        True
    """

    forms: list[str]
    answers: list[SystemAnswer]
    compare: PairAnswer | None = Field(default=None, description="Two systems compared, if drawings were asked for.")


class ForeignAnswer(_Answered):
    """How much of a request is new to a system.

    Example:
        >>> ForeignAnswer(system="rain", words=2, new=0, note="").new
        0
    """

    system: str
    words: int
    new: int
    note: str = Field(description="What to tell a reader about it; empty if there is nothing to tell.")


class ParseAnswer(_Answered):
    """The answer to a request to parse.

    Example:
        >>> ParseAnswer(sentences=[], foreign=[]).sentences
        []
    """

    sentences: list[SentenceAnswer]
    foreign: list[ForeignAnswer]


class WireAnswer(_Answered):
    """A wire of a system.

    Example:
        >>> WireAnswer(name="a -> b", annotation="heads", noun="tree", estimator="spigot", hard=True).noun
        'tree'
    """

    name: str
    annotation: str
    noun: str
    estimator: str
    hard: bool


class AboutAnswer(_Answered):
    """What a system is.

    Example:
        >>> AboutAnswer.model_fields["gives"].description
        'The annotations that it finds.'
    """

    name: str = Field(description="How requests call it.")
    title: str
    task: str
    system: str
    gives: list[str] = Field(description="The annotations that it finds.")
    called: dict[str, str]
    constrains: list[str] = Field(description="The annotations of which parts can be forced and forbidden.")
    holds: dict[str, str]
    roles: list[str]
    classes: list[int]
    class_names: list[str]
    wires: list[WireAnswer]
    tagger: bool
    examples: list[str] = Field(description="Texts to begin with, of words that it knows.")


class LimitsAnswer(_Answered):
    """How much one request may ask for.

    Example:
        >>> LimitsAnswer(body=65536, words=300, total=1500, systems=4, top=20).words
        300
    """

    body: int = Field(description="Bytes of a request.")
    words: int = Field(description="Words of a sentence.")
    total: int = Field(description="Words of a request, counted once for each system.")
    systems: int
    top: int


class SystemsAnswer(_Answered):
    """What there is to ask.

    Example:
        >>> sorted(SystemsAnswer.model_fields)
        ['limits', 'systems']
    """

    systems: list[AboutAnswer]
    limits: LimitsAnswer


class HealthAnswer(_Answered):
    """That somebody is there.

    Example:
        >>> HealthAnswer(status="ok", version="1", systems=1, waiting=0).status
        'ok'
    """

    status: str
    version: str
    systems: int
    waiting: int = Field(description="Requests that wait for the next batch.")


class ReadyAnswer(_Answered):
    """That a request now would be answered.

    Example:
        >>> ReadyAnswer(status="ready").status
        'ready'
    """

    status: Literal["ready"]


class ErrorAnswer(_Answered):
    """Why there is no answer.

    Example:
        >>> ErrorAnswer(error="the text is too long.").error
        'the text is too long.'
    """

    error: str = Field(description="One sentence: what was given, what was expected, what to do.")
