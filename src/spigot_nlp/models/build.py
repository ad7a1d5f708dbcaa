"""From an experiment and its sentences to a system with fresh parameters."""

from collections.abc import Mapping, Sequence

import torch

from spigot_nlp.annotations import ANNOTATIONS, AbstractAnnotation
from spigot_nlp.config import Config
from spigot_nlp.corpora.corpus import require_files
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.lemmas import LemmaTable
from spigot_nlp.data.tagging.tagger import Tagger
from spigot_nlp.data.vocab import Vectors, Vocab, read_vectors
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import System


def learned_annotations(config: Config, sentences: Mapping[str, Sequence[Sentence]]) -> dict[str, AbstractAnnotation]:
    """What each stage predicts, with the names that its training data have.

    Args:
        config: The experiment.
        sentences: Training sentences by data set.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> config = make_config({"stages": {"mood": {"annotation": "label"}}})
        >>> learned_annotations(config, {"labels": [Sentence(("Rain",), label=3)]})
        {'mood': Classes(name='label', classes=(3,))}
    """
    found = {}
    for name, settings in config.stages.items():
        kind = ANNOTATIONS.find(settings.annotation)
        field = settings.field or kind.name
        found[name] = kind.learn(field, sentences.get(config.data_of(name), ()), settings)
    return found


def read_word_vectors(config: Config) -> dict[str, Vectors]:
    """The pretrained vectors that encoders begin with, by file as settings name it; of none, that of `data.vectors`.

    Raises:
        FileNotFoundError: If a file is missing.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> read_word_vectors(make_config({}))
        {}
    """
    files = {"": config.data.vectors, **{name: name for name in config.vector_files}}
    require_files(config.data, filter(None, files.values()))
    return {name: read_vectors(config.data.path(file)) for name, file in files.items() if file}


def fresh(
    config: Config,
    sentences: Mapping[str, Sequence[Sentence]],
    tagger: Tagger | None = None,
    lemmatised: Sequence[Sentence] = (),
) -> Parser:
    """A system with fresh parameters, drawn from the experiment's seed.

    Args:
        config: The experiment.
        sentences: Training sentences by data set.
        tagger: What tagged them.
        lemmatised: Sentences with the right tags and lemmas, to learn from which lemmas to write.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> config = make_config({"stages": {"syntax": {"annotation": "trees"}}})
        >>> parser = fresh(config, {"trees": [Sentence(("Rain",))]})
        >>> next(parser.pipe([Sentence(("Snow", "fell"))])).heads is None
        False
    """
    known = read_word_vectors(config)
    text = [sentence for name in config.text for sentence in sentences.get(name, ())]
    vocab = Vocab.of(text, also=dict.fromkeys(word for vectors in known.values() for word in vectors.words))
    annotations = learned_annotations(config, sentences)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        tables = {name: vectors.table(vocab.words) for name, vectors in known.items()}
        model = System(config, vocab, annotations, tables)
    lemmas = LemmaTable.learn(lemmatised, vocab.word_index) if lemmatised else None
    return Parser(config, vocab, model, tagger, lemmas)
