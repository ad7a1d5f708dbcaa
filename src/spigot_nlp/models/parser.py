"""A trained system as a function of text, and of sentences."""

import itertools
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import torch

from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.batches import Annotations, Batch, Encoded, collate, encode
from spigot_nlp.bundled import default_model, run_folder
from spigot_nlp.config.experiment import Config
from spigot_nlp.data.formats.conll import bare
from spigot_nlp.data.sentence import COLUMNS, Sentence
from spigot_nlp.data.tagging.lemmas import LemmaTable, Lemmatiser, agreed, with_tags
from spigot_nlp.data.tagging.tagger import Tagger
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.data.vocab import SPECIAL, OutOfVocabulary, Vocab
from spigot_nlp.document import Doc
from spigot_nlp.encoders import READING, AbstractEncoder, Precision
from spigot_nlp.garbage import gc_paused
from spigot_nlp.models import checkpoint
from spigot_nlp.models.system import Answer, System
from spigot_nlp.nn.quantised import settled
from spigot_nlp.parallel import ordered_map
from spigot_nlp.stages.pruning import SeenArcs
from spigot_nlp.stages.stage import AbstractDecision, AbstractStage
from spigot_nlp.threads import find_device, is_forked, kernels_alone, own_threads

if TYPE_CHECKING:
    from spigot_nlp.models.inspection import Inspection
    from spigot_nlp.stages.constraints import Constraints

CHUNK = 2048
"""Sentences held at a time: enough to sort by length, few enough that memory stays flat."""
SHARE = 512
"""Sentences that one of several processes is given at a time, so that all end at the same time."""
_POSITIONS = 2048  # in a batch, padding included
_TEXTS = 256
_FEW = 200  # words that one thread parses as quickly as several
_MANY = 200_000  # characters that are enough for a batch, however few texts they are

_MOODS = {
    2: ("negative", "positive"),
    3: ("negative", "neutral", "positive"),
    5: ("very negative", "negative", "neutral", "positive", "very positive"),
}
"""What the classes of sentiment corpora are called, by how many there are."""


class _Bad(NamedTuple):
    """A text or sentence that could not be parsed, and why."""

    item: Any
    reason: str


@dataclass(frozen=True, repr=False, eq=False)
class Parser:
    """A system with all it needs to read text: `parser("Rain fell.")` is a [`Doc`][spigot_nlp.document.Doc].

    The text is cut into sentences and words in the manner of the training data. The lemmas that it reads are those of
    a dictionary, by which its vectors were learned; those that it writes are found by word and tag, if its training
    data had any to learn from.

    Attributes:
        config: The experiment.
        vocab: The words.
        model: The stages.
        tagger: What finds tags, if none of the stages does.
        lemmas: What finds the lemmas that are written.
        folder: Where it was loaded from.

    Example:
        >>> parser = Parser.load("en")
        >>> parser
        Parser(english-joint, upos: tags -> syntax: trees -> semantics: graphs; 40,205 words)
        >>> doc = parser("Rain fell. It didn't stop.")
        >>> doc, [len(sentence) for sentence in doc], doc[1][2].text, doc[1][2].start
        (Doc("Rain fell. It didn't stop.", 2 sentences), [3, 5], "n't", 17)
        >>> [doc.text for doc in parser.pipe(["Rain.", "", "Hail."])]
        ['Rain.', '', 'Hail.']
        >>> next(parser.pipe([Sentence(("She", "slept", "."))])).relations
        ('nsubj', 'root', 'punct')
    """

    config: Config
    vocab: Vocab
    model: System
    tagger: Tagger | None = None
    lemmas: LemmaTable | None = None
    folder: Path | None = None

    @classmethod
    def load(
        cls,
        run: str | os.PathLike[str] | None = None,
        *,
        device: torch.device | str = "cpu",
        precision: Precision = READING,
    ) -> "Parser":
        """A trained system.

        Args:
            run: The folder that `spigot train` made, or the name of a model that comes with spigot; English if omitted.
            device: Where it is to compute; it need not be where it was trained.
            precision: Of states and scores: `int16`, quantised, wherever a parser answers, be it here, for `spigot
                parse` or on the page; without kernels and on an accelerator that is `float32`. Training computes in
                `float32`, its development scores included, and so does whoever asks for it. Structures are found in
                single precision either way.

        Raises:
            FileNotFoundError: If there is no such run.
            ValueError: If it is damaged, or there is no such device or precision.
        """
        if not isinstance(run, str | os.PathLike | None):
            raise TypeError(f"run is {run!r}; it must be the folder of a run, or the name of a model.")
        folder = default_model() if run is None else run_folder(run).absolute()  # wherever the process goes afterwards
        # One thread, since there is little to divide, and several wait for each other on a busy machine.
        with gc_paused(), own_threads(1):
            parser = cls(*checkpoint.read_trained(folder, find_device(device)), folder)
        parser.model.compute_in(precision)
        return parser

    def __call__(self, text: str, *, lines: bool = False, tokenised: bool = False) -> Doc:
        """What the system finds in a text.

        Args:
            text: The text.
            lines: Whether each line is a sentence.
            tokenised: Whether there is a space between all tokens already.

        Raises:
            ValueError: If the system reads right annotations, which plain text has none of.
        """
        (doc,) = self._docs([_checked(text, "this")], lines, tokenised)
        return doc

    @overload
    def pipe(
        self,
        texts: Iterable[str],
        *,
        processes: int = 1,
        batch: int | None = None,
        skip_bad: Callable[[str, str], object] | None = None,
        lines: bool = False,
        tokenised: bool = False,
    ) -> Iterator[Doc]: ...

    @overload
    def pipe(
        self,
        texts: Iterable[Sentence],
        *,
        processes: int = 1,
        batch: int | None = None,
        skip_bad: Callable[[Sentence, str], object] | None = None,
        tagged: bool = False,
        plain: bool = False,
        only: Collection[str] | None = None,
    ) -> Iterator[Sentence]: ...

    def pipe(
        self,
        texts: Iterable[str] | Iterable[Sentence],
        *,
        processes: int = 1,
        batch: int | None = None,
        skip_bad: Callable[[Any, str], object] | None = None,
        lines: bool = False,
        tokenised: bool = False,
        tagged: bool = False,
        plain: bool = False,
        only: Collection[str] | None = None,
    ) -> Iterator[Doc] | Iterator[Sentence]:
        """Many texts, or sentences that are cut already, parsed in their order as soon as they are there.

        A text becomes a document. A sentence becomes the same one with all that the system `gives`: its words, its id,
        and what its format keeps of spaces and comments stay; tags and lemmas are the system's own, or those of the
        sentence if it has no tagger and looks at theirs; whatever else it is annotated with is neither looked at (but
        for trees, if right ones are read) nor handed back.

        If one is neither text nor sentence, or the texts themselves end in an error, the answers to all before come
        first. What a process had that is lost is done by this one. Processes end with the answers, or when nobody
        listens any longer: at `close()` of what this gives.

        Args:
            texts: Texts or sentences; of any number, since only a few batches are held at a time.
            processes: How many processes parse: copies of this one, where the system can fork (Linux), and else none.
            batch: How many are parsed together; by default 256 texts, or fewer if they are long, and 2048 sentences.
            skip_bad: Told of what cannot be parsed, and why, and it is left out; by default it is an error.
            lines: Of texts: whether each line is a sentence.
            tokenised: Of texts: whether there is a space between all tokens already.
            tagged: Of sentences: whether they have the tags and lemmas that the system is to read.
            plain: Of sentences: whether the words are as people write them, to be read in the spelling of the training
                data.
            only: Of sentences: the annotations that are wanted, by name; columns of words, such as tags, come with
                them. Stages that find others are not asked, unless what they find is read on the way.

        Raises:
            TypeError: If one is neither text nor sentence.
            ValueError: If the system reads right annotations, which plain text has none of.
            RuntimeError: If there are to be several processes where there can be none.
        """
        if isinstance(texts, str | bytes | Sentence):
            raise TypeError("pipe takes many texts or sentences, and this is one; put it in a list.")
        try:
            processes, size = index(processes), None if batch is None else index(batch)
        except TypeError:
            raise TypeError(f"processes is {processes!r} and batch is {batch!r}; both must be whole numbers.") from None
        if processes < 1 or (size is not None and size < 1):
            raise ValueError(f"processes is {processes} and batch is {size}; both must be at least 1.")
        if processes > 1 and multiprocessing.current_process().daemon:
            raise RuntimeError("this process, a worker of a DataLoader say, may have none of its own; use processes=1.")
        if plain:
            self._check_plain()
        documents = partial(self._docs, lines=lines, tokenised=tokenised)
        sentences = partial(self._sentences, tagged=tagged, plain=plain, only=only)
        return self._piped(iter(texts), documents, sentences, processes, size, skip_bad)

    def _piped(
        self,
        items: Iterator[Any],
        documents: Callable[[list[str]], list[Doc]],
        sentences: Callable[[list[Sentence]], list[Sentence]],
        processes: int,
        size: int | None,
        skip_bad: Callable[[Any, str], object] | None,
    ) -> Iterator[Any]:
        some = list(itertools.islice(items, 1))
        of_sentences = isinstance(some[0], Sentence) if some else True
        work: Callable[[list[Any]], list[Any]] = sentences if of_sentences else documents
        usual = (CHUNK if processes == 1 else SHARE) if of_sentences else _TEXTS
        batches = _batches(itertools.chain(some, items), size or usual, Sentence if of_sentences else str)
        tried = work if skip_bad is None else partial(_tried, work)
        with closing(ordered_map(tried, batches, processes)) as found:  # pyright: ignore[reportArgumentType]
            for answers in found:
                for answer in answers:
                    if isinstance(answer, _Bad):
                        assert skip_bad is not None
                        skip_bad(*answer)
                    else:
                        yield answer

    def _docs(self, texts: list[str], lines: bool, tokenised: bool) -> list[Doc]:
        """Several texts at once: what they have in sentences goes through the system together."""
        self._check_plain()
        cut = self.conventions.sentences
        places = [list(cut(text, lines=lines, tokenised=tokenised)) for text in texts]
        whole = [sentence for some in places for sentence in some]
        # A few words are not worth dividing, and threads that spin for each other on a busy machine take far longer.
        few = not self.model.reads_by_kernels and sum(map(len, whole)) < _FEW
        with own_threads(1) if few else nullcontext():
            found = iter(self._sentences(whole, tagged=False, plain=True, only=None))
        annotations, names = self._drawn, self.class_names
        docs = [Doc.of(list(itertools.islice(found, len(some))), annotations, names) for some in places]
        return [doc if doc.sentences else Doc(text, ()) for text, doc in zip(texts, docs, strict=True)]

    def _sentences(
        self, sentences: Sequence[Sentence], tagged: bool, plain: bool, only: Collection[str] | None
    ) -> list[Sentence]:
        asked = list(self.model.stages) if only is None else self._stages_for(only)
        answered: list[Sentence] = []
        for start in range(0, len(sentences), CHUNK):
            some = sentences[start : start + CHUNK]
            parsed: dict[int, Sentence] = {}
            with self.reading():
                ready = self.read(some, tagged=tagged, plain=plain)
                for group, batch in self.batches(ready):
                    found = self.model.decide(batch, asked)
                    answers = self.found({name: found[name] for name in asked}, batch.lengths.tolist())
                    for k, said in zip(group, answers, strict=True):
                        parsed[k] = self.answered(self.written(some[k], ready[k]), said)
            answered += [parsed[k] for k in range(len(some))]
        return answered

    def _check_plain(self) -> None:
        if self.reads_gold:
            names = " and ".join(self.reads_gold)
            raise ValueError(f"This system reads the right {names} of sentences, and plain text has none.")

    def inspect(
        self,
        sentences: Sequence[Sentence],
        constraints: "Sequence[Constraints | None] | None" = None,
        *,
        top: int = 5,
        tagged: bool = False,
        plain: bool = False,
    ) -> "list[Inspection]":
        """Sentences parsed with forced and forbidden arcs, and what else might have been; see `inspect` there."""
        from spigot_nlp.models.inspection import inspect

        return inspect(self, sentences, constraints, top=top, tagged=tagged, plain=plain)

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

    def out_of_vocabulary(self, sentences: Iterable[Sentence] | Doc) -> OutOfVocabulary:
        """How many words of some sentences are new to the system, in whichever spelling it reads them.

        None is to a system that knows words by their subwords alone.

        Args:
            sentences: The sentences, in the spelling of the text, or a document.
        """
        if isinstance(sentences, Doc):
            sentences = [sentence.found for sentence in sentences]
        encoders = (module for module in self.model.modules() if isinstance(module, AbstractEncoder))
        everything = not any(encoder.looks_up_words for encoder in encoders)
        known = self.vocab.word_index
        words = [
            everything or form.lower() in known
            for sentence in map(self.conventions.respell, sentences)
            for form in sentence.forms
            if any(map(str.isalpha, form))
        ]
        return OutOfVocabulary(len(words), words.count(False))

    @cached_property
    def _drawn(self) -> list[AbstractAnnotation]:
        given = (a for a in self.model.annotations.values() if a.name in self.gives)
        return list({a.name: a for a in given}.values())

    @cached_property
    def _lemmatiser(self) -> Lemmatiser:
        """Kept, with the lemmas of the words that it has met."""
        table = self.lemmas
        return Lemmatiser() if table is None else Lemmatiser(asked=table.known, answers=table.dictionary)

    @cached_property
    def conventions(self) -> Conventions:
        """How the data it was trained on are tokenised and spelt."""
        return Conventions.of(self.vocab)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block in which the system answers and learns nothing: it is as quick there as it can be."""
        # Threads of torch are not forked with a process, and who waits for them waits for ever.
        alone = self.model.reads_by_kernels or is_forked()
        with settled(), kernels_alone() if alone else nullcontext():
            yield

    def _stages_for(self, only: Collection[str]) -> list[str]:
        """The stages that find some annotations."""
        wanted = {*only, *COLUMNS}
        named = {name: {one.name for one in stage.annotation.members} for name, stage in self.model.stages.items()}
        return [name for name, members in named.items() if members & wanted]

    def batches(self, ready: Sequence[Sentence], tokens: int = _POSITIONS) -> Iterator[tuple[list[int], Batch]]:
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

    def groups(self, order: Sequence[int], lengths: Sequence[int], tokens: int = _POSITIONS) -> Iterator[list[int]]:
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


def _tried(work: Callable[[list[Any]], list[Any]], items: list[Any]) -> list[Any]:
    """What comes out of a batch; if that is an error, what comes out of each by itself."""
    try:
        return work(items)
    except Exception as error:
        if len(items) == 1:
            return [_Bad(items[0], f"{type(error).__name__}: {error}")]
        return [answer for item in items for answer in _tried(work, [item])]


def _batches(items: Iterable[Any], size: int, kind: type) -> Iterator[list[Any]]:
    """So many at a time. What comes before one that cannot be had, or is of another kind, comes before the error."""
    some: list[Any] = []
    characters = 0
    try:
        for number, item in enumerate(items, 1):
            if kind is str:
                _checked(item, f"number {number}")
                characters += len(item)
            elif not isinstance(item, kind):
                raise TypeError(f"pipe takes texts or sentences, all of a kind, and number {number} is {_type(item)}.")
            some.append(item)
            if len(some) == size or characters >= _MANY:
                yield some
                some, characters = [], 0
    except Exception:
        if some:
            yield some
        raise
    if some:
        yield some


def _type(item: object) -> str:
    return repr(type(item).__name__)


def _checked(text: object, place: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a text is a string, and {place} is {_type(text)}; pipe takes sentences, too.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{place} has half a character at {error.start}, {text[error.start]!r}; decode it with errors='replace'."
        ) from None
    return text
