"""A trained system as a function of sentences."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.batches import Annotations, Batch, Encoded, collate, encode
from spigot_nlp.config import Config
from spigot_nlp.data.formats.conll import bare
from spigot_nlp.data.sentence import COLUMNS, Sentence
from spigot_nlp.data.tagging.agreement import agreed, with_tags
from spigot_nlp.data.tagging.lemma_table import LemmaTable
from spigot_nlp.data.tagging.lemmas import Lemmatiser
from spigot_nlp.data.tagging.tagger import Tagger
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.data.text.foreign import Foreign
from spigot_nlp.data.vocab import SPECIAL, Vocab
from spigot_nlp.encoders import AbstractEncoder
from spigot_nlp.forks import spare_copies
from spigot_nlp.models.system import System
from spigot_nlp.models.wire import Answer
from spigot_nlp.nn.whole import settled
from spigot_nlp.stages.evidence import AbstractDecision
from spigot_nlp.stages.pruning import SeenArcs
from spigot_nlp.stages.stage import AbstractStage
from spigot_nlp.threads import kernels_alone

CHUNK = 2048
"""Sentences held at a time: enough to sort by length, few enough that memory stays flat."""


_MOODS = {
    2: ("negative", "positive"),
    3: ("negative", "neutral", "positive"),
    5: ("very negative", "negative", "neutral", "positive", "very positive"),
}
"""What the classes of sentiment corpora are called, by how many there are."""


@dataclass(frozen=True, repr=False)
class Parser:
    """A system with all it needs to read text: its configuration, vocabulary and tagger.

    The lemmas that it reads are those of a dictionary, by which its vectors were learned; those that it writes are
    found by word and tag, if its training data had any to learn from.

    Example:
        >>> from spigot_nlp.data.sentence import Arc, Graph
        >>> from spigot_nlp.models.build import fresh
        >>> from spigot_nlp.config import make_config
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]))
        >>> parser = fresh(make_config({"data": {"tags": "columns"}}), {"graphs": [rain]})
        >>> [len(sentence.heads) for sentence in parser.parse([Sentence(("Rain", "fell")), Sentence(())])]
        [2, 0]
        >>> [len(sentence.heads) for sentence in parser.parse_text("Rain fell. It didn't stop.")]
        [3, 5]
        >>> parser.finds, parser.misses_tags
        (('heads', 'graph'), False)
        >>> parser
        Parser(syntax: trees -> semantics: graphs; 2 words)
    """

    config: Config
    vocab: Vocab
    model: System
    tagger: Tagger | None = None
    lemmas: LemmaTable | None = None

    def __repr__(self) -> str:
        stages = (f"{name}: {stage.annotation.nouns}" for name, stage in self.model.stages.items())
        name = f"{self.config.name}, " if self.config.name else ""
        return f"Parser({name}{' -> '.join(stages)}; {len(self.vocab.words) - len(SPECIAL):,} words)"

    @property
    def end(self) -> AbstractStage:
        """The last stage: what the system is for."""
        return self.model.stages[self.config.end]

    @cached_property
    def reads_gold(self) -> tuple[str, ...]:
        """The right annotations of sentences that it is built to read."""
        stages = self.model.stages.values()
        return tuple(stage.annotation.name for stage in stages if not stage.learns and stage.settings.rule == "gold")

    @property
    def misses_tags(self) -> bool:
        """Whether it was trained on tags, and has neither a tagger nor a stage to find those of plain text."""
        return self.tagger is None and "tags" in self.columns and "tags" not in self.finds

    @cached_property
    def columns(self) -> frozenset[str]:
        """What it looks at beside words, tags for instance, by the names that a sentence has for it."""
        known = {"lemmas": self.vocab.lemmas, "tags": self.vocab.tags}
        read = {"tags" for part in self.model.modules() if isinstance(part, SeenArcs)}
        read.update(*(part.columns for part in self.model.modules() if isinstance(part, AbstractEncoder)))
        return frozenset(name for name in read if name not in known or len(known[name]) > len(SPECIAL))

    @cached_property
    def finds(self) -> tuple[str, ...]:
        """The annotations that it finds by itself, and can be judged by, by name.

        A tree that nobody predicted, as that of a classifier which reads chains, is none of it.
        """
        stages = (stage for stage in self.model.stages.values() if stage.learns)
        return tuple(dict.fromkeys(one.name for stage in stages for one in stage.annotation.members))

    @cached_property
    def gives(self) -> tuple[str, ...]:
        """What its answers have: all that it finds, and what it makes by rule.

        Right annotations that a stage reads came with the sentences, and are no answer of its own.
        """
        names = dict.fromkeys(one.name for stage in self.model.stages.values() for one in stage.annotation.members)
        return tuple(name for name in names if name in self.finds or name not in self.reads_gold)

    def stage_of(self, name: str) -> AbstractStage | None:
        """The stage that finds an annotation; the last one if several do, and `None` if none does."""
        stages = [stage for stage in self.model.stages.values() if stage.learns]
        found = [stage for stage in stages if any(one.name == name for one in stage.annotation.members)]
        return found[-1] if found else None

    @property
    def annotations(self) -> dict[str, AbstractAnnotation]:
        """What its answers have, by name, in the order of its stages."""
        every = (one for annotation in self.model.annotations.values() for one in annotation.members)
        return {one.name: one for one in every if one.name in self.gives}

    @cached_property
    def class_names(self) -> dict[int, str]:
        """What the classes of sentences are called, by their numbers: moods where sentiment was learned."""
        usual = (stage for stage in self.model.stages.values() if stage.annotation.is_usual)
        chooser = next((stage for stage in usual if stage.annotation.shares), None)
        if chooser is None:
            return {}
        classes, data = chooser.annotation.options, self.config.data
        files = data.sets.get(self.config.data_of(chooser.name))
        moods = data.source == "synthetic" or (files is not None and files.format.startswith("sst"))
        if given := getattr(chooser.settings, "names", ()):
            return dict(zip(classes, given, strict=True))
        names = _MOODS[len(classes)] if moods and len(classes) in _MOODS else tuple(map(str, classes))
        return dict(zip(classes, names, strict=True))

    def foreign(self, sentences: Iterable[Sentence]) -> Foreign:
        """How many words of some sentences are new to the system, in whichever spelling it reads them.

        None is to a system that knows words by their subwords alone.

        Args:
            sentences: The sentences, in the spelling of the text.

        Example:
            >>> from spigot_nlp.config import make_config
            >>> from spigot_nlp.models.build import fresh
            >>> config = make_config({"stages": {"syntax": {"annotation": "trees"}}})
            >>> parser = fresh(config, {"trees": [Sentence(("Rain", "fell"), heads=(2, 0))]})
            >>> parser.foreign([Sentence(("rain", "drips", "!"))])
            Foreign(words=2, new=1)
        """
        encoders = (module for module in self.model.modules() if isinstance(module, AbstractEncoder))
        everything = not any(encoder.looks_up_words for encoder in encoders)
        known = self.vocab.word_index
        words = [
            everything or form.lower() in known
            for sentence in map(self.conventions.respell, sentences)
            for form in sentence.forms
            if any(map(str.isalpha, form))
        ]
        return Foreign(len(words), words.count(False))

    @cached_property
    def _lemmatiser(self) -> Lemmatiser:
        """Kept, with the lemmas of the words that it has met."""
        table = self.lemmas
        return Lemmatiser() if table is None else Lemmatiser(asked=table.known, answers=table.dictionary)

    @cached_property
    def conventions(self) -> Conventions:
        """How the data it was trained on are tokenised and spelt."""
        return Conventions.of(self.vocab)

    def parse_text(
        self, text: str | Iterable[str], *, lines: bool = False, tokenised: bool = False
    ) -> Iterator[Sentence]:
        """The sentences of plain text, with the system's trees, graphs and classes.

        The text is cut into sentences and words as the training data are, and read in their spelling; the answers have
        the words as the text spells them. `spigot parse`, `spigot serve` and `spigot_nlp.load` give the same answers in
        the same precision, which is that of whole numbers unless one says otherwise; `training.load` has single
        precision.

        Args:
            text: The text, or its pieces one after another: the lines of a file, say. Of any size: only some two
                thousand sentences are held at a time.
            lines: Whether each line is a sentence.
            tokenised: Whether there is a space between all tokens already.

        Raises:
            ValueError: If the system reads right annotations, which plain text has none of.
        """
        return self.parse_sentences(self.conventions.sentences(text, lines=lines, tokenised=tokenised))

    def parse_sentences(
        self, sentences: Iterable[Sentence], *, only: Collection[str] | None = None
    ) -> Iterator[Sentence]:
        """The same of text that is cut into sentences already, in the system's own manner: see `conventions`.

        Args:
            sentences: The sentences, in the spelling of the text.
            only: The annotations that are wanted, as in `parse`.

        Raises:
            ValueError: If the system reads right annotations, which plain text has none of.
        """
        if self.reads_gold:
            names = " and ".join(self.reads_gold)
            raise ValueError(f"This system reads the right {names} of sentences, and plain text has none; use parse.")
        return self.parse(sentences, plain=True, only=only)

    def parse(
        self,
        sentences: Iterable[Sentence],
        *,
        tokens: int = 2048,
        tagged: bool = False,
        plain: bool = False,
        only: Collection[str] | None = None,
    ) -> Iterator[Sentence]:
        """The same sentences in the same order, with the system's trees, graphs and classes: what it `gives`.

        Words, the id and what the format keeps of spaces and comments are those of the sentences. Tags and lemmas are
        the system's own, or those of the sentences if it has no tagger and looks at theirs. Whatever else is there,
        a tree, a graph, a class, features of words, is not in the answer, whether the system finds one of its own or
        not. Nor is the tree that a stage reads by the rule `gold`: it needs it, but has not found it.

        Args:
            sentences: What to parse. Annotation they have is not looked at, but for tags if there is no tagger, and for
                trees if gold ones are read.
            tokens: Positions in a batch, padding included.
            tagged: Whether the sentences have the tags and lemmas of this system already.
            plain: Whether the words are as people write them, to be read in the spelling of the training data.
            only: The annotations that are wanted, by name; columns of words, such as tags, come with them. Stages that
                find others are not asked, unless what they find is read on the way. All by default.
        """
        if isinstance(sentences, str | bytes):
            raise TypeError("parse takes sentences, and this is text; use parse_text.")
        sentences = iter(sentences)
        while chunk := list(itertools.islice(sentences, CHUNK)):
            for other in chunk:
                if not isinstance(other, Sentence):
                    kind = type(other).__name__
                    raise TypeError(f"parse takes sentences, and one of these is {kind!r}; use parse_text for text.")
            with self.reading():
                parsed = self._parse_chunk(chunk, self.read(chunk, tagged=tagged, plain=plain), tokens, only)
            yield from parsed

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block in which the system answers and learns nothing: it is as quick there as it can be."""
        spare_copies()
        with settled(), kernels_alone() if self.model.reads_by_kernels else nullcontext():
            yield

    def _parse_chunk(
        self, sentences: list[Sentence], ready: list[Sentence], tokens: int, only: Collection[str] | None
    ) -> list[Sentence]:
        parsed: dict[int, Sentence] = {}
        asked = self._stages_for(only)
        for group, batch in self.batches(ready, tokens):
            found = self.model.decide(batch, asked)
            answers = self.found({name: found[name] for name in asked}, batch.lengths.tolist())
            for k, found in zip(group, answers, strict=True):
                parsed[k] = self.answered(self.written(sentences[k], ready[k]), found)
        return [parsed[k] for k in range(len(sentences))]

    def _stages_for(self, only: Collection[str] | None) -> list[str]:
        """The stages that find some annotations."""
        if only is None:
            return list(self.model.stages)
        wanted = {*only, *COLUMNS}
        named = {name: {one.name for one in stage.annotation.members} for name, stage in self.model.stages.items()}
        return [name for name, members in named.items() if members & wanted]

    def batches(self, ready: Sequence[Sentence], tokens: int = 2048) -> Iterator[tuple[list[int], Batch]]:
        """Sentences, as the system reads them, in batches of like length: which ones, and the batch.

        Args:
            ready: What `read` gave.
            tokens: Positions in a batch, padding included.
        """
        given = {name: self.model.annotations[name] for name, s in self.model.stages.items() if not s.learns}
        encoded = [encode(self.visible(sentence), self.vocab, given) for sentence in ready]
        order = sorted(range(len(ready)), key=lambda k: len(ready[k]))
        for group in self.groups(order, [len(sentence) for sentence in ready], tokens):
            yield group, collate([encoded[k] for k in group], given).to(self.model.device)

    def encoded(self, sentence: Sentence, annotations: Annotations) -> Encoded:
        """A sentence to learn from: its words as the system reads them, and what is right.

        Tags that the system finds itself are what is right, and no input: no stage gets to see them.

        Args:
            sentence: The sentence, with the tags and lemmas that the system reads.
            annotations: What to look up beside its words, by stage.
        """
        whole = encode(sentence, self.vocab, annotations)
        hidden = [name for name in self.finds if name in COLUMNS]
        if not hidden:
            return whole
        return whole._replace(tokens=encode(self.visible(sentence), self.vocab).tokens)

    def visible(self, sentence: Sentence) -> Sentence:
        """What the system may look at: no annotation, but for gold ones if it is built to read them."""
        hidden = {name: None for name in self.finds if name in COLUMNS}  # tags, if it finds them itself
        if not sentence.annotations and all(sentence.get(name) is None for name in hidden):
            return sentence
        return sentence.with_only({**hidden, **{name: sentence.get(name) for name in self.reads_gold}})

    def found(self, answers: Mapping[str, Answer | AbstractDecision], lengths: list[int]) -> list[dict[str, Any]]:
        """What the answers of all stages say about each sentence of a batch: its annotations by name."""
        found: list[dict[str, Any]] = [{} for _ in lengths]
        for name, answer in answers.items():
            stage = self.model.stages[name]
            names = [one.name for one in stage.annotation.members]
            if names[0] not in self.gives or (not stage.learns and names[0] in self.finds):
                continue  # what a rule gives is no answer where a stage has found one
            said = stage.found(*answer, lengths) if isinstance(answer, Answer) else answer.found(lengths)
            for annotations, more in zip(found, said, strict=True):
                annotations.update(more)
        return found

    def answered(self, sentence: Sentence, found: Mapping[str, Any]) -> Sentence:
        """A sentence with what was found in it, and no other annotation; its tags fit the universal ones found."""
        whole = sentence.with_only(found)
        return whole if self.lemmas is None or self.tagger is None else agreed(whole, self.lemmas, self._lemmatiser)

    def read(self, sentences: Iterable[Sentence], *, tagged: bool = False, plain: bool = False) -> list[Sentence]:
        """The sentences as the system reads them: with its own tags and lemmas, and if they are plain in its spelling.

        Args:
            sentences: What to read.
            tagged: Whether the sentences have the tags and lemmas of this system already.
            plain: Whether the words are as people write them.
        """
        if plain:
            sentences = map(self.conventions.respell, sentences)
        if self.tagger is None or tagged:
            return list(sentences)
        return list(self._lemmatiser.lemmatise(self.tagger.tag(sentences)))

    def written(self, given: Sentence, read: Sentence) -> Sentence:
        """A sentence as answers have it: its own words, and the tags and lemmas that the system reads.

        Args:
            given: The sentence.
            read: What `read` made of it.
        """
        if self.tagger is None:
            return bare(given).put_all({name: None for name in COLUMNS if name not in self.columns})
        return with_tags(bare(given, tagged=read.tags is given.tags), read, self.lemmas)

    def groups(self, order: Sequence[int], lengths: Sequence[int], tokens: int = 2048) -> Iterator[list[int]]:
        """Batches of sorted sentences that keep to a number of positions, and of parts."""
        group: list[int] = []
        parts = 1 + max((stage.arc_labels or 0 for stage in self.model.stages.values()), default=0)
        for k in order:
            width = lengths[k] + 2
            full = (len(group) + 1) * width > tokens or (len(group) + 1) * width * width * parts > 16_000_000
            if group and full:
                yield group
                group = []
            group.append(k)
        if group:
            yield group
