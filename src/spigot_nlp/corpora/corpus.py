"""The sentences of an experiment, tagged as the experiment wants them."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from spigot_nlp.corpora.prepared import prepared
from spigot_nlp.corpora.settings import DATA_VARIABLE, Data, Files, Synthetic
from spigot_nlp.corpora.synthetic import splits
from spigot_nlp.data.combine import join
from spigot_nlp.data.enhanced import enhanced_graph
from spigot_nlp.data.formats import read
from spigot_nlp.data.formats.conll import ConllSource
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.lemmas import Lemmatiser
from spigot_nlp.data.tagging.tagger import Tagger


@dataclass(frozen=True)
class Split:
    """Sentences that carry one kind of annotation, divided by their use.

    Attributes:
        train: To learn from.
        dev: To choose by.
        tests: To report, by name.
    """

    train: list[Sentence] = field(default_factory=list)
    dev: list[Sentence] = field(default_factory=list)
    tests: dict[str, list[Sentence]] = field(default_factory=dict)

    def apply(self, change: Callable[[list[Sentence]], list[Sentence]]) -> "Split":
        """The same division of changed sentences."""
        tests = {name: change(sentences) for name, sentences in self.tests.items()}
        return Split(change(self.train), change(self.dev), tests)


@dataclass(frozen=True)
class Corpus:
    """What an experiment trains on and is judged by.

    Attributes:
        sets: The data sets by name.
        tagger: What tagged them; `None` if the files' own columns are used.
        lemmatised: What the tagger learned from, with the lemmas of the files; empty if they have none.

    Example:
        >>> corpus = Corpus({"labels": Split(train=[Sentence(("Rain",), label=0)])})
        >>> [sentence.label for sentence in corpus["labels"].train], corpus["trees"].train
        ([0], [])
    """

    sets: Mapping[str, Split] = field(default_factory=dict)
    tagger: Tagger | None = None
    lemmatised: Sequence[Sentence] = ()

    def __getitem__(self, name: str) -> Split:
        return self.sets.get(name, Split())

    @property
    def train(self) -> dict[str, list[Sentence]]:
        """The training sentences of each data set."""
        return {name: split.train for name, split in self.sets.items()}

    def apply(self, change: Callable[[str, Split], Split]) -> "Corpus":
        """The same with every data set changed."""
        return replace(self, sets={name: change(name, split) for name, split in self.sets.items()})


def load_corpus(settings: Data, *, tests: bool = True) -> Corpus:
    """Read what an experiment trains on and is judged by, each file once.

    Tags are predicted from words alone: text the tagger itself was trained on is tagged by jackknifing, all other
    text by the tagger, so that a model sees the same kind of tags in training and afterwards.

    Args:
        settings: Where the sentences come from.
        tests: Whether to look at the test sets; their files must be there all the same.

    Example:
        >>> sizes = Synthetic(train=4, dev=2, test=2)
        >>> corpus = load_corpus(Data(source="synthetic", synthetic=sizes, tags="columns"))
        >>> {name: len(split.train) for name, split in corpus.sets.items()}
        {'trees': 4, 'graphs': 4, 'labels': 4}
    """
    corpus, limits = Corpus(_sets(settings, tests=tests)), {name: files.limit for name, files in settings.sets.items()}
    corpus = corpus.apply(lambda name, split: _parted(split, settings.files(name).part))
    tagged = _tagged_set(corpus)

    def limit(name: str, split: Split, early: bool) -> Split:
        # What the tagger learns from is cut down before, so that it learns from no more than the stages do.
        return _limited(split, limits.get(name, 0)) if early == (name == tagged) else split

    corpus = corpus.apply(lambda name, split: limit(name, split, early=True))
    if settings.tags == "predicted":
        corpus = _tagged(corpus, tagged, settings.folds)
    return corpus.apply(lambda name, split: limit(name, split, early=False))


def load_tests(settings: Data, tagger: Tagger | None) -> Corpus:
    """Read only what an experiment is judged by: development and test sets, without training text.

    Args:
        settings: Where the sentences come from.
        tagger: The one that came out of the training; `None` where the files' own columns are used.

    Example:
        >>> sizes = Synthetic(train=4, dev=2, test=3)
        >>> corpus = load_tests(Data(source="synthetic", synthetic=sizes, tags="columns"), None)
        >>> len(corpus["graphs"].train), len(corpus["graphs"].dev), len(corpus["graphs"].tests["ood"])
        (0, 2, 3)
    """
    unread = {name: files.unread(train=()) for name, files in settings.sets.items()}
    corpus = Corpus(_sets(settings.model_copy(update=unread))).apply(lambda _, split: replace(split, train=[]))
    if tagger is None:
        return corpus
    tagged = corpus.apply(lambda _, split: split.apply(lambda some: _annotated(some, tagger)))
    return replace(tagged, tagger=tagger)


def _sets(settings: Data, *, tests: bool = True) -> dict[str, Split]:
    if settings.source == "synthetic":
        found = _built_in(settings.synthetic)
        return found if tests else {name: replace(split, tests={}) for name, split in found.items()}
    _require(settings)
    seen: dict[tuple[Path, str], list[Sentence]] = {}
    sets = {name: files if tests else files.unread(tests={}) for name, files in settings.sets.items()}
    return {name: _read(settings, files, seen) for name, files in sets.items()}


def _tagged_set(corpus: Corpus) -> str:
    """The data set that the tagger learns from: the first one with tags."""
    return next((name for name, split in corpus.sets.items() if any(s.tags is not None for s in split.train)), "")


def _tagged(corpus: Corpus, source: str, folds: int) -> Corpus:
    known = corpus[source].train
    if not known:
        raise ValueError(
            "data.tags = 'predicted' needs tagged sentences to train the tagger on; give a data set that has tags, "
            "such as data.trees or data.graphs, or set data.tags = 'columns'."
        )
    tagger, unseen = prepared(known, folds)
    noisy = {sentence.forms: sentence for sentence in unseen}

    def train(sentences: Sequence[Sentence]) -> Iterator[Sentence]:
        fresh = iter(_annotated((sentence for sentence in sentences if sentence.forms not in noisy), tagger))
        for sentence in sentences:
            twin = noisy.get(sentence.forms)
            yield next(fresh) if twin is None else replace(sentence, tags=twin.tags, lemmas=twin.lemmas)

    def tag(_: str, part: Split) -> Split:
        judged = replace(part, train=[]).apply(lambda some: _annotated(some, tagger))
        return replace(judged, train=list(train(part.train)))

    return replace(corpus.apply(tag), tagger=tagger, lemmatised=_lemmatised(known))


def _lemmatised(sentences: Sequence[Sentence]) -> list[Sentence]:
    return [sentence for sentence in sentences if sentence.tags is not None and sentence.lemmas is not None]


def _annotated(sentences: Iterable[Sentence], tagger: Tagger) -> list[Sentence]:
    return list(Lemmatiser().lemmatise(tagger.tag(sentences)))


def _built_in(sizes: Synthetic) -> dict[str, Split]:
    """The built-in corpus: graphs of other sentences than trees and labels, as the paper assumes no overlap."""
    made = splits(train=2 * sizes.train, dev=sizes.dev, test=sizes.test, ood=sizes.test)
    first, second = made.train[: sizes.train], made.train[sizes.train :]
    tests = {"id": made.test, "ood": made.ood}
    bare = [replace(sentence, heads=None, relations=None) for sentence in second]
    return {
        "trees": Split(first, made.dev, tests),
        "graphs": Split(bare, made.dev, tests),
        "labels": Split(first, made.dev, tests),
    }


def _require(settings: Data) -> None:
    """Say that a file is missing before the first hour of training, not after the last."""
    require_files(settings, (name for files in settings.sets.values() for name in files.paths if name))
    require_files(settings, filter(None, (settings.vectors,)))


def require_files(settings: Data, names: Iterable[str]) -> None:
    """Complain about a file that is not there.

    Raises:
        FileNotFoundError: It says where the file was looked for, and how to get it.
    """
    for name in names:
        path = settings.path(name)
        if not path.exists():
            origin = f" {settings.obtain}" if settings.obtain else ""
            raise FileNotFoundError(f"{path} is missing; {_where_to_look(settings, name)}{origin}")


def _where_to_look(settings: Data, name: str) -> str:
    """What decides where a file is looked for, and how to change it."""
    if Path(name).is_absolute():
        return "correct its path in the configuration."
    if settings.root:
        return f"data.root is {settings.root}, and must be the folder that holds the corpora."
    if folder := os.environ.get(DATA_VARIABLE):
        return f"the environment variable {DATA_VARIABLE} is {folder}, and must name the folder that holds the corpora."
    return (
        f"the environment variable {DATA_VARIABLE} is not set, so it was looked for right here: export "
        f"{DATA_VARIABLE}=FOLDER, or give --data.root FOLDER, with the folder that holds the corpora."
    )


def _read(settings: Data, files: Files, seen: dict[tuple[Path, str], list[Sentence]]) -> Split:
    """The sentences of one data set; those of files that another one has too are found among the seen."""
    if files.join:
        return _joined(settings, files, seen)

    def one(name: str, format: str) -> list[Sentence]:
        path = settings.path(name)
        if (path, format) not in seen:
            seen[path, format] = list(read(path, format or None))
            if not seen[path, format]:
                raise ValueError(f"{path} has no sentences; give another file, or leave it out.")
        return seen[path, format]

    def some(names: Sequence[str], format: str) -> list[Sentence]:
        return [sentence for name in names if name for sentence in one(name, format)]

    split = Split(
        some(files.train, files.train_format or files.format),
        some((files.dev,), files.format),
        {name: some((file,), files.format) for name, file in files.tests.items()},
    )
    return split.apply(lambda sentences: [_renamed(s, files.names) for s in sentences]) if files.names else split


def _joined(settings: Data, files: Files, seen: dict[tuple[Path, str], list[Sentence]]) -> Split:
    """The sentences that several files annotate, with all of their graphs."""
    sides = {name: _read(settings, one, seen).apply(partial(_plain_graphs, one)) for name, one in files.join.items()}

    def several(take: Callable[[Split], list[Sentence]], named: Callable[[Files], Iterable[str]]) -> list[Sentence]:
        places = {name: ", ".join(str(settings.path(n)) for n in named(one) if n) for name, one in files.join.items()}
        return join({name: some for name, split in sides.items() if (some := take(split))}, places)

    tests = dict.fromkeys(test for split in sides.values() for test in split.tests)
    return Split(
        several(lambda split: split.train, lambda one: one.train),
        several(lambda split: split.dev, lambda one: (one.dev,)),
        {test: several(partial(_test, test), lambda one, name=test: (one.tests.get(name, ""),)) for test in tests},
    )


def _test(name: str, split: Split) -> list[Sentence]:
    return split.tests.get(name, [])


def _plain_graphs(files: Files, sentences: Sequence[Sentence]) -> list[Sentence]:
    """Enhanced dependencies as graphs with one role for a pair of words; other sentences as they are."""
    return [
        sentence.put("graph", enhanced_graph(sentence, files.relations)[0])
        if isinstance(sentence.source, ConllSource) and sentence.graph is not None
        else sentence
        for sentence in sentences
    ]


def _renamed(sentence: Sentence, names: Mapping[str, str]) -> Sentence:
    """A sentence whose annotations are called otherwise."""
    return replace(sentence, annotations={names.get(name, name): v for name, v in sentence.annotations.items()})


def _parted(split: Split, part: str) -> Split:
    """The sentences of a part; it follows from the words of a sentence alone which one that is."""
    if not part:
        return split
    number, of = map(int, part.split("/"))

    def place(sentence: Sentence) -> int:
        return int.from_bytes(hashlib.sha256("\n".join(sentence.forms).encode()).digest()[:8]) % of + 1

    return replace(split, train=[sentence for sentence in split.train if place(sentence) == number])


def _limited(part: Split, limit: int) -> Split:
    """The first few of an order that is the same for every experiment, so that larger sets contain smaller ones."""
    if not limit or limit >= len(part.train):
        return part
    chosen = np.random.default_rng(0).permutation(len(part.train))[:limit]
    return replace(part, train=[part.train[k] for k in sorted(chosen.tolist())])
