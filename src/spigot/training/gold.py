"""What a run was judged by, kept beside it: a report needs the run folder and nothing else."""

from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from spigot.config import Config
from spigot.data.corpus import Corpus, Split
from spigot.data.formats import write
from spigot.data.sentence import Sentence

_Known: TypeAlias = dict[tuple[str, ...], Sentence]

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
            trees, graphs = _known(corpus.trees, part), _known(corpus.graphs, part)
            joined = (_joined(sentence, trees, graphs) for sentence in sentences)
            write(joined, folder / f"gold.{part}.jsonl")


def _parts(split: Split) -> dict[str, list[Sentence]]:
    return {"train": split.train, "dev": split.dev, **split.tests}


def _known(split: Split, part: str) -> _Known:
    """Sentences by their words; where several have the same words, one of the same part is preferred."""
    parts = _parts(split)
    return {s.forms: s for name in sorted(parts, key=lambda name: name == part) for s in parts[name]}


def _joined(sentence: Sentence, trees: _Known, graphs: _Known) -> Sentence:
    tree, graph = trees.get(sentence.forms), graphs.get(sentence.forms)
    if sentence.heads is None and tree is not None:
        sentence = replace(sentence, heads=tree.heads, relations=tree.relations)
    if sentence.graph is None and graph is not None:
        sentence = replace(sentence, graph=graph.graph)
    return replace(sentence, source=None)
