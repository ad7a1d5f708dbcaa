"""A parsed text: sentences, and the tokens in them with their places."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.data.formats import FORMATS
from spigot_nlp.data.formats.json_lines import with_class
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.data.text.spacing import Spacing, spaced, spaces_after, with_ids, with_text

if TYPE_CHECKING:
    # Only who asks for these has them.
    import networkx
    import pandas
    import spacy.tokens  # pyright: ignore[reportMissingImports]
    import spacy.vocab  # pyright: ignore[reportMissingImports]


_SHOWN = 60
"""Characters of a text that its printed form has."""


@dataclass(frozen=True, eq=False)
class Token:
    """A word of a parsed text.

    Attributes:
        sentence: The sentence it stands in.
        index: Which word of that it is, from 1.
        start: Where it begins in the text.
        end: Where it ends.

    Example:
        >>> fell = Doc.of([Sentence(("Rain", "fell"), heads=(2, 0), relations=("nsubj", "root"))])[0][1]
        >>> fell.text, fell.start, fell.end, fell.relation, fell.head is None, [word.text for word in fell.children]
        ('fell', 5, 9, 'root', True, ['Rain'])
    """

    sentence: "DocSentence" = field(repr=False)
    index: int
    start: int
    end: int

    def __repr__(self) -> str:
        return f"Token({self.text!r}, {self.start}, {self.end})"

    @property
    def text(self) -> str:
        """The word as the text spells it."""
        return self.sentence.found.forms[self.index - 1]

    @property
    def lemma(self) -> str | None:
        """Its lemma."""
        return self._of(self.sentence.found.lemmas)

    @property
    def tag(self) -> str | None:
        """Its part of speech, by the tags of the training data."""
        return self._of(self.sentence.found.tags)

    @property
    def upos(self) -> str | None:
        """Its universal part of speech."""
        return self._of(self.sentence.found.upos)

    @property
    def head(self) -> "Token | None":
        """Its syntactic head; `None` for the root, and where there is no tree."""
        head = self._of(self.sentence.found.heads)
        return self.sentence[head - 1] if head else None

    @property
    def relation(self) -> str | None:
        """Its relation to its head."""
        return self._of(self.sentence.found.relations)

    @property
    def children(self) -> "list[Token]":
        """The words it is the head of."""
        heads = self.sentence.found.heads or ()
        return [self.sentence[k] for k, head in enumerate(heads) if head == self.index]

    @property
    def arguments(self) -> "list[tuple[str, Token]]":
        """Its arguments in the graph, each with its role."""
        graph = self.sentence.graph
        arcs = () if graph is None else graph.arcs
        return [(arc.role, self.sentence[arc.argument - 1]) for arc in arcs if arc.predicate == self.index]

    def _of(self, values: Sequence[Any] | None) -> Any:
        return None if values is None else values[self.index - 1]


@dataclass(frozen=True, eq=False)
class DocSentence(Sequence[Token]):
    """A sentence of a parsed text.

    Attributes:
        found: Its words with all that was found in them.
        start: Where its first word begins in the text.
        annotations: What the system gives, which knows how it is drawn.
        class_names: What the classes are called, by their numbers.

    Example:
        >>> (sentence,) = Doc.of([Sentence(("Rain", "fell"), heads=(2, 0))])
        >>> sentence.text, sentence.tree, len(sentence), sentence.graph is None
        ('Rain fell', (2, 0), 2, True)
        >>> sentence
        DocSentence('Rain fell', 2 tokens)
    """

    found: Sentence
    start: int = 0
    annotations: tuple[AbstractAnnotation, ...] | None = field(default=None, repr=False)
    class_names: Mapping[int, str] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"DocSentence({_short(self.text)!r}, {len(self)} token{'' if len(self) == 1 else 's'})"

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """Its words."""
        made, place = [], self.start
        for index, (form, space) in enumerate(zip(self.found.forms, spaces_after(self.found), strict=True), 1):
            made.append(Token(self, index, place, place + len(form)))
            place += len(form) + len(space)
        return tuple(made)

    def __getitem__(self, place: Any) -> Any:
        return self.tokens[place]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Token]:
        return iter(self.tokens)

    @property
    def text(self) -> str:
        """What stands in the text, from its first word to its last."""
        pieces = [part for pair in zip(self.found.forms, spaces_after(self.found), strict=True) for part in pair]
        return "".join(pieces[:-1])

    @property
    def end(self) -> int:
        """Where its last word ends in the text."""
        return self.tokens[-1].end if self.tokens else self.start

    @property
    def tree(self) -> tuple[int, ...] | None:
        """The head of each word, counted from 1, 0 for the root."""
        return self.found.heads

    @property
    def relations(self) -> tuple[str, ...] | None:
        """The relation of each word to its head."""
        return self.found.relations

    @property
    def graph(self) -> Graph | None:
        """The semantic graph."""
        return self.found.graph

    @property
    def graphs(self) -> dict[str, Graph]:
        """All graphs by name, where a system finds several."""
        return {name: value for name, value in self.found.annotations.items() if isinstance(value, Graph)}

    @property
    def label(self) -> str | None:
        """The class of the sentence, by its name."""
        label = self.found.label
        return None if label is None else self.class_names.get(label, str(label))

    def get(self, name: str) -> Any:
        """Any annotation by its name."""
        return self.found.get(name)

    def _repr_html_(self) -> str:
        from spigot_nlp.report.notebook import sentences

        return sentences([(self.found, self.label)], self.annotations)


@dataclass(frozen=True, eq=False)
class Doc(Sequence[DocSentence]):
    """A text, and what was found in it. It is the sequence of its sentences; in a notebook it is drawn.

    Attributes:
        text: The text.
        sentences: Its sentences.

    Example:
        >>> doc = Doc.of([Sentence(("Rain", "fell"), heads=(2, 0), relations=("nsubj", "root"))])
        >>> doc.text, [token.relation for sentence in doc for token in sentence]
        ('Rain fell', ['nsubj', 'root'])
        >>> print(doc.to_conllu().replace("\\t", " "))
        # sent_id = 1
        # text = Rain fell
        1 Rain _ _ _ _ 2 nsubj _ _
        2 fell _ _ _ _ 0 root _ SpaceAfter=No
        <BLANKLINE>
        <BLANKLINE>
    """

    text: str
    sentences: tuple[DocSentence, ...]

    @classmethod
    def of(
        cls,
        found: Sequence[Sentence],
        annotations: Sequence[AbstractAnnotation] | None = None,
        class_names: Mapping[int, str] | None = None,
    ) -> "Doc":
        """A document of sentences with what was found in them, in their order.

        Args:
            found: The sentences. Those that do not know their white space are written with single spaces.
            annotations: What of it is to be drawn; the usual tree and graph if omitted.
            class_names: What the classes are called, by their numbers.
        """
        some = None if annotations is None else tuple(annotations)
        text, sentences = "", []
        for place, sentence in enumerate(found):
            if not isinstance(sentence.source, Spacing) and place and not text[-1:].isspace():
                text += " "
            text += sentence.source.before if isinstance(sentence.source, Spacing) else ""
            sentences.append(DocSentence(sentence, len(text), some, class_names or {}))
            text += "".join(part for pair in zip(sentence.forms, spaces_after(sentence), strict=True) for part in pair)
        return cls(text, tuple(sentences))

    def __eq__(self, other: object) -> bool:
        """Whether the other is the same text, with the same found in it."""
        if not isinstance(other, Doc):
            return NotImplemented
        return self.text == other.text and [s.found for s in self] == [s.found for s in other]

    def __hash__(self) -> int:
        return hash(self.text)

    def __getitem__(self, place: Any) -> Any:
        return self.sentences[place]

    def __len__(self) -> int:
        return len(self.sentences)

    def __iter__(self) -> Iterator[DocSentence]:
        return iter(self.sentences)

    def __repr__(self) -> str:
        return f"Doc({_short(self.text)!r}, {len(self)} sentence{'' if len(self) == 1 else 's'})"

    @property
    def tokens(self) -> list[Token]:
        """The words of all sentences."""
        return [token for sentence in self for token in sentence]

    def to_conllu(self, *, graph: bool | str = False) -> str:
        """As CoNLL-U: tags, lemmas, heads, relations, and the text and its white space; a class is a comment.

        Args:
            graph: Whether to write the graph to the enhanced column; or the name of one, where a system finds several.

        Raises:
            ValueError: If there is none.
        """
        name = "graph" if graph is True else graph
        if name:
            self._require_graphs(name, "in the enhanced column", "leave it out")
        some = [sentence.found.put("graph", sentence.get(name) if name else None) for sentence in self]
        ids = with_ids(some, taken=(found.id for found in some))
        named = [with_class(found, sentence.class_names) for found, sentence in zip(ids, self, strict=True)]
        last = len(named) - 1
        return self._written("conllu", [with_text(spaced(each, ends=k == last)) for k, each in enumerate(named)])

    def to_sdp(self, graph: str = "graph") -> str:
        """As SDP: the graphs.

        Args:
            graph: Which, where a system finds several.

        Raises:
            ValueError: If there are none.
        """
        self._require_graphs(graph, "as SDP", "use to_conllu or to_json")
        some = [sentence.found.put("graph", sentence.get(graph)) for sentence in self]
        return self._written("sdp", list(with_ids(some, taken=(found.id for found in some))))

    def _require_graphs(self, name: str, where: str, advice: str) -> None:
        if any(name not in sentence.graphs for sentence in self):
            others = sorted({name for sentence in self for name in sentence.graphs})
            instead = f"there are {' and '.join(others)}" if others else advice
            raise ValueError(f"there are no graphs called {name!r} to write {where}; {instead}.")

    def to_json(self, *, indent: int | None = None) -> str:
        """As one JSON object: the text, and each sentence with its tokens, their places, and all that was found.

        Args:
            indent: How far to indent what is inside; all on one line if omitted.

        Example:
            >>> json.loads(Doc.of([Sentence(("Go",), heads=(0,))]).to_json())["sentences"][0]["tokens"][0]["end"]
            2
        """
        return json.dumps(
            {"text": self.text, "sentences": [_plain(s) for s in self]}, ensure_ascii=False, indent=indent
        )

    def to_networkx(self) -> "networkx.MultiDiGraph":
        """As a graph of networkx: a node for each word, `(sentence, word)` from 1, and an edge for each arc.

        Edges have the key `tree`, or the name of a graph and the role, as in `graph ARG0`, and a `label`. What is not
        known about a word is no attribute of its node, so that the graph can be written to files.
        """
        graph = needed("networkx", "to_networkx").MultiDiGraph(text=self.text)
        names = ("text", "start", "end", "lemma", "tag", "upos")
        for number, sentence in enumerate(self, 1):
            for token in sentence:
                known = {name: value for name in names if (value := getattr(token, name)) is not None}
                graph.add_node((number, token.index), **known)  # files know no None
            for token in sentence:
                if token.head is not None:
                    edge = (number, token.head.index), (number, token.index)
                    graph.add_edge(*edge, key="tree", label=token.relation or "")
            for name, found in sentence.graphs.items():
                for arc in found.arcs:
                    edge = (number, arc.predicate), (number, arc.argument)
                    graph.add_edge(*edge, key=f"{name} {arc.role}", label=arc.role)
        return graph

    def to_pandas(self) -> "pandas.DataFrame":
        """As a table of pandas: a row for each word. `arguments` are pairs of a role and a word of the sentence."""
        pandas = needed("pandas", "to_pandas")
        whole = dict.fromkeys(("sentence", "word", "start", "end"), "int64")
        columns = ["lemma", "upos", "tag", "head", "relation", "label", "arguments"]
        rows = [
            {
                "sentence": number,
                "word": token.index,
                "text": token.text,
                "start": token.start,
                "end": token.end,
                **{name: getattr(token, name) for name in ("lemma", "upos", "tag", "relation")},
                "head": None if sentence.tree is None else sentence.tree[token.index - 1],
                "label": sentence.label,
                "arguments": [(role, argument.index) for role, argument in token.arguments],
            }
            for number, sentence in enumerate(self, 1)
            for token in sentence
        ]
        table = pandas.DataFrame(rows, columns=["sentence", "word", "text", "start", "end", *columns])
        return table.astype({**whole, "head": "Int64"})  # which may be missing

    def to_spacy(self, vocab: "spacy.vocab.Vocab") -> "spacy.tokens.Doc":
        """As a document of spaCy: words, tags, lemmas, heads, relations; graphs in `_.spigot_graph`.

        The text is the same, to the last blank: white space other than one blank behind a word is a token of its own,
        as spaCy has it, which hangs on the word before. To spaCy a sentence is what
        hangs on one root, so that a sentence whose tree has several roots becomes as many. The graphs and classes are
        where the component of `spigot_nlp.spacy` puts them.

        Args:
            vocab: The vocabulary of the pipeline that it is for, e.g. `spacy.blank("en").vocab`.
        """
        from spigot_nlp.spacy import to_spacy

        return to_spacy(self, vocab)

    def _written(self, format: str, sentences: Sequence[Sentence]) -> str:
        written, opens = "", True
        for sentence in sentences:
            text, layout = FORMATS[format].render(sentence, opens)
            written, opens = written + text + layout.tail, False
        return written if sentences else FORMATS[format].header

    def _repr_html_(self) -> str:
        from spigot_nlp.report.notebook import sentences

        annotations = self[0].annotations if self else None
        return sentences([(sentence.found, sentence.label) for sentence in self], annotations)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _plain(sentence: DocSentence) -> dict[str, Any]:
    found = sentence.found
    names = ("lemma", "tag", "upos", "relation")
    tokens = [
        {
            "text": token.text,
            "start": token.start,
            "end": token.end,
            **{name: value for name in names if (value := getattr(token, name)) is not None},
            **({} if found.heads is None else {"head": found.heads[token.index - 1]}),
        }
        for token in sentence
    ]
    plain: dict[str, Any] = {"text": sentence.text, "start": sentence.start, "end": sentence.end, "tokens": tokens}
    if found.label is not None:
        plain["label"] = sentence.label
    if found.probabilities is not None:
        plain["probabilities"] = list(found.probabilities)
    graphs = sentence.graphs
    others = {name: value for name, value in found.annotations.items() if name not in (*_SAID, *graphs)}
    plain.update({name: _graph(graph) for name, graph in graphs.items()})
    return plain | others


_SAID = ("heads", "relations", "label", "probabilities")


def _graph(graph: Graph) -> dict[str, Any]:
    def arc(one: Arc) -> dict[str, Any]:
        return {"predicate": one.predicate, "argument": one.argument, "role": one.role}

    return {"arcs": list(map(arc, graph.arcs)), "tops": list(graph.tops), "predicates": list(graph.predicates)}


def needed(name: str, what: str) -> ModuleType:
    """A library that spigot does without, unless it is asked for; an `ImportError` says how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name != package:
            raise
        raise ImportError(f"{what} needs {package}, which is not installed; pip install {package}.") from None
