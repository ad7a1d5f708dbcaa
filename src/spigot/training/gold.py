"""What a run was judged by, kept beside it: a report needs the run folder and nothing else."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from spigot.config import Config
from spigot.data.corpus import Corpus, Split
from spigot.data.formats import write
from spigot.data.sentence import Sentence
from spigot.evaluation.joined import twins

EXAMPLES = 50
"""Training sentences that are kept: enough to show what an estimator does."""


def keep_gold(folder: Path, config: Config, corpus: Corpus) -> None:
    """Write `gold.<part>.jsonl` for each part of the end task that a corpus has: `train`, `dev`, and the test sets.

    The sentences have the tags and lemmas that the system sees, the annotation of the end task, and that of the other
    tasks where the corpus has the same sentence there. Of the training sentences only the first few are kept.

    Args:
        folder: The run folder.
        config: The experiment.
        corpus: Its sentences, or some parts of them.

    Example:
        >>> import tempfile
        >>> from spigot.config import make_config
        >>> from spigot.data.sentence import Graph
        >>> graph, tree = Sentence(("Rain", "fell"), graph=Graph()), Sentence(("Rain", "fell"), heads=(2, 0))
        >>> folder = Path(tempfile.mkdtemp())
        >>> keep_gold(folder, make_config({}), Corpus(trees=Split(dev=[tree]), graphs=Split(dev=[graph])))
        >>> (folder / "gold.dev.jsonl").read_text()
        '{"forms": ["Rain", "fell"], "heads": [2, 0], "graph": {"arcs": []}}\\n'
    """
    end = corpus.graphs if config.task == "parsing" else corpus.labels
    for part, sentences in {**_parts(end), "train": end.train[:EXAMPLES]}.items():
        if sentences:
            trees, graphs = (_twins(sentences, split, part) for split in (corpus.trees, corpus.graphs))
            write(map(_joined, sentences, trees, graphs), folder / f"gold.{part}.jsonl")


def _parts(split: Split) -> dict[str, list[Sentence]]:
    return {"train": split.train, "dev": split.dev, **split.tests}


def _twins(sentences: Sequence[Sentence], split: Split, part: str) -> list[Sentence | None]:
    """Sentences with the same words, from the same part if it has them."""
    parts = _parts(split)
    near, far = twins(sentences, parts.pop(part, ())), twins(sentences, itertools.chain(*parts.values()))
    return [other if own is None else own for own, other in zip(near, far, strict=True)]


def _joined(sentence: Sentence, tree: Sentence | None, graph: Sentence | None) -> Sentence:
    if sentence.heads is None and tree is not None:
        sentence = replace(sentence, heads=tree.heads, relations=tree.relations)
    if sentence.graph is None and graph is not None:
        sentence = replace(sentence, graph=graph.graph)
    return replace(sentence, source=None)
