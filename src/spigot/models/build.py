"""From an experiment and its sentences to a system with fresh parameters."""

from collections.abc import Mapping, Sequence

import torch

from spigot.annotations import ANNOTATIONS, AbstractAnnotation
from spigot.config import Config
from spigot.data.sentence import Sentence
from spigot.data.tagging.lemma_table import LemmaTable
from spigot.data.tagging.tagger import Tagger
from spigot.data.vocab import Vocab, read_vectors
from spigot.models.parser import Parser
from spigot.models.system import System


def learned_annotations(config: Config, sentences: Mapping[str, Sequence[Sentence]]) -> dict[str, AbstractAnnotation]:
    """What each stage predicts, with the names that its training data have.

    Args:
        config: The experiment.
        sentences: Training sentences by data set.

    Example:
        >>> from spigot.config import make_config
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
        >>> from spigot.config import make_config
        >>> config = make_config({"stages": {"syntax": {"annotation": "trees"}}})
        >>> parser = fresh(config, {"trees": [Sentence(("Rain",))]})
        >>> next(parser.parse([Sentence(("Snow", "fell"))])).heads is None
        False
    """
    vectors = read_vectors(config.data.path(config.data.vectors)) if config.data.vectors else None
    text = [sentence for name in config.text for sentence in sentences.get(name, ())]
    vocab = Vocab.of(text, also=() if vectors is None else vectors.words)
    annotations = learned_annotations(config, sentences)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = System(config, vocab, annotations, None if vectors is None else vectors.table(vocab.words))
    lemmas = LemmaTable.learn(lemmatised, vocab.word_index) if lemmatised else None
    return Parser(config, vocab, model, tagger, lemmas)
