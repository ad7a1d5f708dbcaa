"""For spaCy: documents as it has them, and a component of its pipelines that reads the words it cut.

`nlp.add_pipe("spigot", config={"model": "runs/first"})` adds the component. spaCy finds it by the entry point
`spacy_factories`; nothing here loads spaCy before it is asked for.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from spigot_nlp.bundled import DEFAULT
from spigot_nlp.data.sentence import Graph, Sentence
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.data.text.spacing import Spacing
from spigot_nlp.data.text.tokens import SPACE
from spigot_nlp.document import needed
from spigot_nlp.models.parser import Parser

if TYPE_CHECKING:
    from spigot_nlp.document import Doc

_KEY = "spigot"
"""Where a document of spaCy keeps what it has no place of its own for, in `user_data`: plain values, so that it can be
saved."""
_WIDE = 200  # letters of a word that the search for the ends of sentences looks at
_SPACE = re.compile(f"[{SPACE}]")
_COLUMNS = (("TAG", "tags"), ("POS", "upos"), ("LEMMA", "lemmas"))


@dataclass(frozen=True)
class SpacyComponent:
    """A component of spaCy's pipelines: a system's trees, graphs and classes of the words that spaCy cut.

    It fills in what a document does not have yet: heads and relations, tags, coarse tags, lemmas, the beginnings of
    sentences. Graphs are in `doc._.spigot_graph` (`doc._.spigot_graphs` by name, if there are several), the arguments
    of a word in `token._.spigot_arguments`, the class of a sentence in `sent._.spigot_label`. Where an earlier
    component has found sentences, it keeps to them.

    It saves its configuration, and no parameters: a pipeline that is loaded again loads the model from where it is.

    Attributes:
        model: The run folder of the system, or the name of one that comes with spigot. `en` is always that one,
            whatever the folder has where the pipeline runs; `./en` is a folder.

    Example:
        >>> import spacy                                                            # doctest: +SKIP
        >>> nlp = spacy.blank("en")                                                 # doctest: +SKIP
        >>> component = nlp.add_pipe("spigot", config={"model": "runs/first"})      # doctest: +SKIP
        >>> nlp("The poet didn't sleep.")[4].dep_                                   # doctest: +SKIP
        'ROOT'
    """

    model: str

    @cached_property
    def parser(self) -> Parser:
        """The system, loaded when it is first needed: also in another process."""
        return Parser.load() if self.model == DEFAULT else Parser.load(self.model)

    def __call__(self, doc: Any) -> Any:
        """A document of spaCy, the same one, with what the system finds."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Any], *, batch_size: int = 64) -> Iterator[Any]:
        """Many documents, as spaCy hands them on.

        Args:
            stream: The documents.
            batch_size: How many are parsed together.
        """
        stream = iter(stream)
        while docs := list(islice(stream, batch_size)):
            parser = self.parser
            places = [_sentences(doc, parser.conventions) for doc in docs]
            pairs = zip(docs, places, strict=True)
            found = parser.pipe([_read(doc, place) for doc, some in pairs for place in some], plain=True)
            for doc, some in zip(docs, places, strict=True):
                _write(doc, some, list(islice(found, len(some))), parser.class_names)
            yield from docs

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model}


def to_spacy(doc: "Doc", vocab: Any) -> Any:
    """A document of spaCy; see `Doc.to_spacy`."""
    tokens, vocabularies = needed("spacy.tokens", "to_spacy"), needed("spacy.vocab", "to_spacy")
    if not isinstance(vocab, vocabularies.Vocab):  # of which spaCy itself would die
        raise TypeError(f"vocab is {type(vocab).__name__!r}; it must be the vocabulary of a pipeline, nlp.vocab.")
    _extend()
    words, spaces, places, end = list[str](), list[bool](), list[list[int]](), 0

    def fill(gap: str) -> None:
        """As spaCy has white space: one blank belongs to the word before, and whatever else there is makes a token."""
        if words and gap.startswith(" "):
            spaces[-1], gap = True, gap[1:]
        if gap:
            words.append(gap)
            spaces.append(False)

    for sentence in doc:
        places.append([])
        for token in sentence:
            fill(doc.text[end : token.start])
            places[-1].append(len(words))
            words.append(token.text)
            spaces.append(False)
            end = token.end
    fill(doc.text[end:])
    first = {0, *(some[0] for some in places[1:] if some)}  # white space before the first word begins its sentence
    starts = [k in first for k in range(len(words))]
    made = tokens.Doc(vocab, words=words, spaces=spaces, sent_starts=starts)
    names = doc[0].class_names if doc else {}
    _write(made, places, [sentence.found for sentence in doc], names)
    return made


def _sentences(doc: Any, conventions: Conventions) -> list[list[int]]:
    """Which words make up each sentence: those of the document, or those that its words suggest."""
    words = [token.i for token in doc if _is_word(token.text)]
    if doc.has_annotation("SENT_START"):
        some = ([token.i for token in sentence if _is_word(token.text)] for sentence in doc.sents)
        return [places for places in some if places]
    # What looks for the ends of sentences takes text: every word as one stretch of it, blank lines as they are.
    text = "".join(f"{_SPACE.sub('_', t.text)[:_WIDE]} " if _is_word(t.text) else t.text for t in doc)
    cut = conventions.sentences(text, tokenised=True)
    rest = iter(words)
    return [list(islice(rest, len(sentence))) for sentence in cut]


def _is_word(text: str) -> bool:
    """Whether a token of spaCy is one here: not if it is white space, or prints nothing."""
    return _SPACE.sub("", text) != ""


def _read(doc: Any, places: Sequence[int]) -> Sentence:
    """The words at some places of a document, and the white space between them."""
    ends = [*places[1:], places[-1] + 1]
    after = (doc[i].whitespace_ + doc[i + 1 : end].text_with_ws for i, end in zip(places, ends, strict=True))
    return Sentence(tuple(doc[i].text for i in places), source=Spacing("", tuple(after)))


def _write(doc: Any, places: Sequence[Sequence[int]], found: Sequence[Sentence], names: Mapping[int, str]) -> None:
    """Put what was found in sentences where spaCy has it, unless it is there already."""
    if not len(doc):
        return
    strings, known = doc.vocab.strings, needed("spacy.parts_of_speech", "to_spacy").IDS
    columns: dict[str, list[int]] = {}
    placed = {i for some in places for i in some}  # and all others are white space, or signs that print nothing
    for attribute, name in _COLUMNS:
        if found and all(sentence.get(name) is not None for sentence in found) and not doc.has_annotation(attribute):
            blank = {"TAG": "_SP", "POS": "SPACE"}
            values = [blank.get(attribute, token.text) if token.i not in placed else "" for token in doc]
            for some, sentence in zip(places, found, strict=True):
                for i, value in zip(some, sentence.get(name), strict=True):
                    values[i] = value if attribute != "POS" or value in known else ""  # a tag set of its own
            columns[attribute] = [known[value] if attribute == "POS" else strings.add(value) for value in values]
    if found and all(sentence.heads is not None for sentence in found) and not doc.has_annotation("DEP"):
        columns["HEAD"], relations = _heads(doc, places, found)
        columns["DEP"] = [strings.add(relation) for relation in relations]
    elif not doc.has_annotation("SENT_START"):
        starts = {some[0] for some in places[1:]}
        columns["SENT_START"] = [1 if token.i in starts or not token.i else -1 for token in doc]
    if columns:
        rows = zip(*columns.values(), strict=True)
        doc.from_array(list(columns), np.array([[value % 2**64 for value in row] for row in rows], dtype=np.uint64))
    doc.user_data[_KEY] = {
        "graphs": _graphs(places, found),
        "labels": [
            [some[0], names.get(sentence.label, str(sentence.label))]
            for some, sentence in zip(places, found, strict=True)
            if some and sentence.label is not None
        ],
    }


def _heads(doc: Any, places: Sequence[Sequence[int]], found: Sequence[Sentence]) -> tuple[list[int], list[str]]:
    """How far away the head of each word is, and its relation. White space hangs on what stands before it."""
    heads, relations = list(range(len(doc))), [""] * len(doc)
    for some, sentence in zip(places, found, strict=True):
        labels = sentence.relations or ("dep",) * len(sentence)
        for i, head, label in zip(some, sentence.heads or (), labels, strict=True):
            heads[i], relations[i] = (some[head - 1], label) if head else (i, "ROOT")
    placed = {i for some in places for i in some}
    holder = next((some[0] for some in places), 0)
    for i in range(len(doc)):
        if i in placed:
            holder = i
        elif places:
            heads[i], relations[i] = holder, "dep"
    return [head - i for i, head in enumerate(heads)], relations


def _graphs(places: Sequence[Sequence[int]], found: Sequence[Sentence]) -> dict[str, dict[str, Any]]:
    """The graphs of all sentences, by name, over the tokens of the document."""
    made: dict[str, dict[str, Any]] = {}
    for some, sentence in zip(places, found, strict=True):
        for name, graph in sentence.annotations.items():
            if isinstance(graph, Graph):
                whole = made.setdefault(name, {"arcs": [], "tops": [], "predicates": []})
                whole["arcs"] += [[some[arc.predicate - 1], some[arc.argument - 1], arc.role] for arc in graph.arcs]
                whole["tops"] += [some[top - 1] for top in graph.tops]
                whole["predicates"] += [some[predicate - 1] for predicate in graph.predicates]
    return made


def _all_graphs(doc: Any) -> dict[str, dict[str, Any]]:
    return doc.user_data.get(_KEY, {}).get("graphs", {})


def _one_graph(doc: Any) -> dict[str, Any] | None:
    graphs = _all_graphs(doc)
    return graphs.get("graph", next(iter(graphs.values()), None))


def _arguments(token: Any) -> list[tuple[str, Any]]:
    graph = _one_graph(token.doc) or {"arcs": []}
    return [(role, token.doc[argument]) for predicate, argument, role in graph["arcs"] if predicate == token.i]


def _label(span: Any) -> str | None:
    labels = span.doc.user_data.get(_KEY, {}).get("labels", ())
    return next((label for start, label in labels if span.start <= start < span.end), None)


def _extend() -> None:
    """Have spaCy's objects show what stands in `user_data`."""
    tokens = needed("spacy.tokens", "to_spacy")
    tokens.Doc.set_extension("spigot_graph", getter=_one_graph, force=True)
    tokens.Doc.set_extension("spigot_graphs", getter=_all_graphs, force=True)
    tokens.Token.set_extension("spigot_arguments", getter=_arguments, force=True)
    tokens.Span.set_extension("spigot_label", getter=_label, force=True)


def _component(nlp: Any, name: str, model: str) -> SpacyComponent:
    """What spaCy calls when a pipeline asks for the component."""
    _extend()
    return SpacyComponent(model)


def __getattr__(name: str) -> Any:
    """`factory`, made when spaCy asks for it by the entry point: only then is it known that there is spaCy."""
    if name != "factory":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    language = needed("spacy.language", "the component").Language
    made = ["token.tag", "token.pos", "token.lemma", "token.head", "token.dep", "token.is_sent_start"]
    made += ["doc._.spigot_graph", "doc._.spigot_graphs", "token._.spigot_arguments", "span._.spigot_label"]
    factory = language.factory("spigot", default_config={"model": DEFAULT}, assigns=made, func=_component)
    globals()["factory"] = factory
    return factory
