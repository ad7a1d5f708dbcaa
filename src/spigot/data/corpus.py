"""The sentences of an experiment, tagged as the experiment wants them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spigot import config
from spigot.data.formats import read
from spigot.data.lemmas import Lemmatiser
from spigot.data.sentence import Sentence
from spigot.data.tagger import Tagger, jackknife


@dataclass(frozen=True)
class Corpus:
    """Training and development data of both tasks.

    Attributes:
        trees: Sentences with trees to train on.
        trees_dev: Sentences with trees to look at.
        graphs: Sentences with graphs to train on.
        graphs_dev: Sentences with graphs to look at.
        tests: Test sets with graphs, by name.
        trees_tests: Test sets with trees, by name.
        tagger: What tagged them; `None` if the files' own columns are used.
    """

    trees: list[Sentence]
    trees_dev: list[Sentence]
    graphs: list[Sentence]
    graphs_dev: list[Sentence]
    tests: dict[str, list[Sentence]]
    trees_tests: dict[str, list[Sentence]]
    tagger: Tagger | None = None


def load_corpus(settings: config.Data, *, tests: bool = False) -> Corpus:
    """Read, or generate, what an experiment trains on.

    With predicted tags, a tagger is trained on the text of the trees (of the graphs where there are none). Training
    text that the tagger knows is tagged by jackknifing: each part by a tagger trained on the others.

    Args:
        settings: Where the data are.
        tests: Whether to load the test sets too.

    Example:
        >>> sizes = config.Synthetic(train=20, dev=5, test=5)
        >>> corpus = load_corpus(config.Data(source="synthetic", synthetic=sizes, tags="columns"))
        >>> len(corpus.graphs), corpus.graphs[0].heads is None, corpus.trees[0].graph is None
        (20, True, True)
    """
    if settings.source == "synthetic":
        corpus = _generate(settings.synthetic)
    else:
        _require(settings)
        corpus = Corpus(
            _read(settings, settings.trees.train),
            _read(settings, (settings.trees.dev,)),
            _read(settings, settings.graphs.train),
            _read(settings, (settings.graphs.dev,)),
            {name: _read(settings, (file,)) for name, file in settings.graphs.tests.items()} if tests else {},
            {name: _read(settings, (file,)) for name, file in settings.trees.tests.items()} if tests else {},
        )
    if not corpus.graphs:
        raise ValueError(
            "The experiment has no graphs to train on; set data.graphs.train, or data.source = 'synthetic'."
        )
    corpus = replace(
        corpus,
        trees=_limited([replace(sentence, graph=None) for sentence in corpus.trees], settings.trees.limit),
        trees_dev=[replace(sentence, graph=None) for sentence in corpus.trees_dev],
    )
    if settings.tags == "predicted":
        corpus = _tagged(corpus, settings.folds)
    return replace(corpus, graphs=_limited(corpus.graphs, settings.graphs.limit))


def _tagged(corpus: Corpus, folds: int) -> Corpus:
    known = corpus.trees or corpus.graphs
    tagger, lemmatiser = Tagger.train(known), Lemmatiser()
    noisy = {sentence.forms: sentence for sentence in lemmatiser.lemmatise(jackknife(known, folds=folds))}

    def unseen(sentences: Iterable[Sentence]) -> list[Sentence]:
        return list(lemmatiser.lemmatise(tagger.tag(sentences)))

    def train(sentences: Sequence[Sentence]) -> list[Sentence]:
        fresh = iter(unseen(sentence for sentence in sentences if sentence.forms not in noisy))
        seen = (noisy.get(sentence.forms) for sentence in sentences)
        return [
            next(fresh) if twin is None else replace(sentence, tags=twin.tags, lemmas=twin.lemmas)
            for sentence, twin in zip(sentences, seen, strict=True)
        ]

    return Corpus(
        train(corpus.trees),
        unseen(corpus.trees_dev),
        train(corpus.graphs),
        unseen(corpus.graphs_dev),
        {name: unseen(sentences) for name, sentences in corpus.tests.items()},
        {name: unseen(sentences) for name, sentences in corpus.trees_tests.items()},
        tagger,
    )


def _generate(sizes: config.Synthetic) -> Corpus:
    """The built-in corpus: trees and graphs of different sentences, as the paper assumes no overlap."""
    from spigot.data.synthetic import splits

    half = splits(seed=sizes.seed, train=2 * sizes.train, dev=sizes.dev, test=sizes.test, ood=sizes.test)
    trees = [replace(sentence, graph=None) for sentence in half.train[: sizes.train]]
    graphs = [replace(sentence, heads=None, relations=None) for sentence in half.train[sizes.train :]]
    tests = {"id": half.test, "ood": half.ood}
    return Corpus(trees, half.dev, graphs, half.dev, tests, tests)


def _require(settings: config.Data) -> None:
    """Say that a file is missing before the first hour of training, not after the last."""
    for task in (settings.trees, settings.graphs):
        for name in filter(None, (*task.train, task.dev, *task.tests.values(), settings.vectors)):
            path = settings.path(name)
            if not path.exists():
                start = settings.root or f"the folder in {config.DATA_VARIABLE}"
                hint = settings.obtain or f"Set data.root or {config.DATA_VARIABLE} to the folder that holds it."
                raise FileNotFoundError(f"{path} is missing (looked for {name} in {start}). {hint}")


def _read(settings: config.Data, names: Sequence[str]) -> list[Sentence]:
    return [sentence for name in names if name for sentence in read(settings.path(name))]


def _limited(sentences: list[Sentence], limit: int) -> list[Sentence]:
    """The first few of an order that is the same for every experiment, so that larger sets contain smaller ones."""
    if not limit or limit >= len(sentences):
        return sentences
    chosen = np.random.default_rng(0).permutation(len(sentences))[:limit]
    return [sentences[k] for k in sorted(chosen.tolist())]
