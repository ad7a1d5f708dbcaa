"""What an experiment needs of its data, said before the first hour of training and not after the last."""

from collections.abc import Iterable

from spigot.config import Config
from spigot.data.corpus import Corpus
from spigot.data.sentence import Sentence
from spigot.data.vocab import Vocab


def nothing_for(task: str, config: Config, corpus: Corpus) -> str:
    """What to tell a user whose experiment has no sentences for one of its tasks."""
    if task == "syntax":
        return (
            f"None of the {len(corpus.trees.train)} training trees is one the syntactic parser can produce "
            f"(trees = {config.syntax.trees!r}, single_root = {config.syntax.single_root}). Set "
            "data.trees.train, or a system that has no syntax."
        )
    kind, place = ("labelled sentences", "labels") if task == "classifier" else ("graphs", "graphs")
    return f"The experiment has no {kind} to train on; set data.{place}.train, or data.source = 'synthetic'."


def require_sentences(config: Config, corpus: Corpus) -> None:
    """Complain about a task without any sentences.

    Raises:
        ValueError: If there are none; it says which setting to change.
    """
    supervised = {config.intermediate, config.end} - ({config.intermediate} if config.is_latent else set())
    if "semantics" in supervised and not corpus.graphs.train:
        raise ValueError(nothing_for("semantics", config, corpus))
    if "classifier" in supervised and not corpus.labels.train:
        raise ValueError(nothing_for("classifier", config, corpus))


def check_labels(config: Config, corpus: Corpus, vocab: Vocab) -> None:
    """Complain about development and test sentences without a class, or of one that training has none of.

    Raises:
        ValueError: If there are such sentences; it names their file.
    """
    if config.task != "classification" or config.data.source != "files":
        return
    files, labels = config.data.labels, corpus.labels
    parts = [(files.dev, labels.dev), *((file, labels.tests[name]) for name, file in files.tests.items())]
    for file, sentences in parts:
        strange = _strange(sentences, vocab)
        if strange is not None:
            path = config.data.path(file)
            reason = "has no class" if strange.label is None else f"is of class {strange.label}"
            known = ", ".join(map(str, vocab.classes))
            raise ValueError(
                f"{path}: the sentence {' '.join(strange.forms[:6])!r} {reason}; those of the training sentences are "
                f"{known}. Correct the file or data.labels.format, or leave the file out."
            )


def _strange(sentences: Iterable[Sentence], vocab: Vocab) -> Sentence | None:
    return next((sentence for sentence in sentences if sentence.label not in vocab.class_index), None)
