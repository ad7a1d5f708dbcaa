"""The sentences of an experiment, tagged as the experiment wants them."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from spigot import config
from spigot.data.formats import read
from spigot.data.lemmas import Lemmatiser
from spigot.data.sentence import Sentence
from spigot.data.tagger import Tagger, jackknife


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
        trees: Sentences with syntactic trees.
        graphs: Sentences with semantic graphs.
        labels: Sentences with classes.
        tagger: What tagged them; `None` if the files' own columns are used.

    Example:
        >>> corpus = Corpus(labels=Split(train=[Sentence(("Rain",), label=0)]))
        >>> [sentence.label for sentence in corpus.labels.train], corpus.trees.train
        ([0], [])
    """

    trees: Split = Split()
    graphs: Split = Split()
    labels: Split = Split()
    tagger: Tagger | None = None

    def apply(self, change: Callable[[Split], Split]) -> "Corpus":
        """The same with every split changed."""
        return replace(self, trees=change(self.trees), graphs=change(self.graphs), labels=change(self.labels))


def load_corpus(settings: config.Data) -> Corpus:
    """Read, or generate, what an experiment trains on and is judged by, each file once.

    Tags are predicted from words alone: text the tagger itself was trained on is tagged by jackknifing, all other
    text by the tagger, so that a model sees the same kind of tags in training and afterwards.

    Args:
        settings: Where the sentences come from.

    Example:
        >>> sizes = config.Synthetic(train=4, dev=2, test=2)
        >>> corpus = load_corpus(config.Data(source="synthetic", synthetic=sizes, tags="columns"))
        >>> len(corpus.graphs.train), corpus.trees.train[0].graph is None
        (4, True)
    """
    corpus = _loaded(settings)
    corpus = replace(corpus, trees=_limited(corpus.trees, settings.trees.limit))
    if settings.tags == "predicted":
        corpus = _tagged(corpus, settings.folds)
    return replace(
        corpus,
        graphs=_limited(corpus.graphs, settings.graphs.limit),
        labels=_limited(corpus.labels, settings.labels.limit),
    )


def load_tests(settings: config.Data, tagger: Tagger | None) -> Corpus:
    """Read, or generate, only what an experiment is judged by: development and test sets, without training text.

    Args:
        settings: Where the sentences come from.
        tagger: The one that came out of the training; `None` where the files' own columns are used.

    Example:
        >>> sizes = config.Synthetic(train=4, dev=2, test=3)
        >>> corpus = load_tests(config.Data(source="synthetic", synthetic=sizes, tags="columns"), None)
        >>> len(corpus.graphs.train), len(corpus.graphs.dev), len(corpus.graphs.tests["ood"])
        (0, 2, 3)
    """
    unread = {task: getattr(settings, task).model_copy(update={"train": ()}) for task in ("trees", "graphs", "labels")}
    corpus = _loaded(settings.model_copy(update=unread))
    corpus = corpus.apply(lambda part: replace(part, train=[]))
    if tagger is None:
        return corpus
    return replace(corpus.apply(lambda part: part.apply(lambda some: _annotated(some, tagger))), tagger=tagger)


def _loaded(settings: config.Data) -> Corpus:
    corpus = _sentences(settings)
    # A model of trees does not look at graphs that stand beside them, and so on.
    return replace(
        corpus,
        trees=corpus.trees.apply(lambda some: [replace(sentence, graph=None, label=None) for sentence in some]),
        graphs=corpus.graphs.apply(lambda some: [replace(sentence, label=None) for sentence in some]),
        labels=replace(corpus.labels, train=[replace(sentence, graph=None) for sentence in corpus.labels.train]),
    )


def _sentences(settings: config.Data) -> Corpus:
    match settings.source:
        case "synthetic":
            return _generate(settings.synthetic)
        case "listops":
            from spigot.data import listops

            made = listops.splits(ood=settings.listops.test, **settings.listops.model_dump())
            return Corpus(labels=Split(made.train, made.dev, {"id": made.test, "ood": made.ood}))
        case "files":
            _require(settings)
            seen: dict[tuple[Path, str], list[Sentence]] = {}
            trees, graphs, labels = (_read(settings, files, seen) for files in settings.tasks)
            return Corpus(trees, graphs, labels)


def _tagged(corpus: Corpus, folds: int) -> Corpus:
    known = corpus.trees.train or corpus.graphs.train
    if not known:
        raise ValueError(
            "data.tags = 'predicted' needs tagged sentences to train the tagger on; give data.trees or data.graphs, or "
            "set data.tags = 'columns'."
        )
    tagger = Tagger.train(known)
    noisy = {sentence.forms: sentence for sentence in Lemmatiser().lemmatise(jackknife(known, folds=folds))}

    def train(sentences: Sequence[Sentence]) -> Iterator[Sentence]:
        fresh = iter(_annotated((sentence for sentence in sentences if sentence.forms not in noisy), tagger))
        for sentence in sentences:
            twin = noisy.get(sentence.forms)
            yield next(fresh) if twin is None else replace(sentence, tags=twin.tags, lemmas=twin.lemmas)

    def tag(part: Split) -> Split:
        judged = replace(part, train=[]).apply(lambda some: _annotated(some, tagger))
        return replace(judged, train=list(train(part.train)))

    return replace(corpus.apply(tag), tagger=tagger)


def _annotated(sentences: Iterable[Sentence], tagger: Tagger) -> list[Sentence]:
    return list(Lemmatiser().lemmatise(tagger.tag(sentences)))


def _generate(sizes: config.Synthetic) -> Corpus:
    """The built-in corpus: graphs of other sentences than trees and labels, as the paper assumes no overlap."""
    from spigot.data.synthetic import splits

    made = splits(seed=sizes.seed, train=2 * sizes.train, dev=sizes.dev, test=sizes.test, ood=sizes.test)
    first, second = made.train[: sizes.train], made.train[sizes.train :]
    tests = {"id": made.test, "ood": made.ood}
    return Corpus(
        trees=Split(first, made.dev, tests),
        graphs=Split([replace(sentence, heads=None, relations=None) for sentence in second], made.dev, tests),
        labels=Split(first, made.dev, tests),
    )


def _require(settings: config.Data) -> None:
    """Say that a file is missing before the first hour of training, not after the last."""
    for task in settings.tasks:
        for name in filter(None, (*task.train, task.dev, *task.tests.values(), settings.vectors)):
            path = settings.path(name)
            if not path.exists():
                origin = f" {settings.obtain}" if settings.obtain else ""
                raise FileNotFoundError(f"{path} is missing; {_where_to_look(settings, name)}{origin}")


def _where_to_look(settings: config.Data, name: str) -> str:
    """What decides where a file is looked for, and how to change it."""
    variable = config.DATA_VARIABLE
    if Path(name).is_absolute():
        return "correct its path in the configuration."
    if settings.root:
        return f"data.root is {settings.root}, and must be the folder that holds the corpora."
    if folder := os.environ.get(variable):
        return f"the environment variable {variable} is {folder}, and must name the folder that holds the corpora."
    return (
        f"the environment variable {variable} is not set, so it was looked for right here: export {variable}=FOLDER, "
        "or give --data.root FOLDER, with the folder that holds the corpora."
    )


def _read(settings: config.Data, files: config.Files, seen: dict[tuple[Path, str], list[Sentence]]) -> Split:
    """The sentences of one task; those of files that another task has too are found among the seen."""

    def one(name: str, format: str) -> list[Sentence]:
        path = settings.path(name)
        if (path, format) not in seen:
            seen[path, format] = list(read(path, format or None))
        return seen[path, format]

    def some(names: Sequence[str], format: str) -> list[Sentence]:
        return [sentence for name in names if name for sentence in one(name, format)]

    return Split(
        some(files.train, files.train_format or files.format),
        some((files.dev,), files.format),
        {name: some((file,), files.format) for name, file in files.tests.items()},
    )


def _limited(part: Split, limit: int) -> Split:
    """The first few of an order that is the same for every experiment, so that larger sets contain smaller ones."""
    if not limit or limit >= len(part.train):
        return part
    chosen = np.random.default_rng(0).permutation(len(part.train))[:limit]
    return replace(part, train=[part.train[k] for k in sorted(chosen.tolist())])
