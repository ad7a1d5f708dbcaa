"""What a run was judged by, kept beside it: a report needs the run folder and nothing else."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from spigot_nlp.config import Config
from spigot_nlp.corpora.corpus import Corpus, Split
from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation.joined import twins

EXAMPLES = 50
"""Training sentences that are kept: enough to show what an estimator does."""

_OF = {"relations": "heads", "probabilities": "label"}
"""Annotations that are about another one, and mean nothing beside one of somebody else."""


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
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Graph
        >>> graph, tree = Sentence(("Rain", "fell"), graph=Graph()), Sentence(("Rain", "fell"), heads=(2, 0))
        >>> folder = Path(tempfile.mkdtemp())
        >>> keep_gold(folder, make_config({}), Corpus({"trees": Split(dev=[tree]), "graphs": Split(dev=[graph])}))
        >>> (folder / "gold.dev.jsonl").read_text()
        '{"forms": ["Rain", "fell"], "heads": [2, 0], "graph": {"arcs": []}}\\n'
    """
    data = config.data_of(config.end)
    end, others = corpus[data], [split for name, split in corpus.sets.items() if name != data]
    for part, sentences in {**_parts(end), "train": [s for s in end.train if len(s)][:EXAMPLES]}.items():
        if sentences:
            sides = [_twins(sentences, split, part) for split in others]
            write(map(_joined, sentences, *sides), folder / f"gold.{part}.jsonl")


def _parts(split: Split) -> dict[str, list[Sentence]]:
    return {"train": split.train, "dev": split.dev, **split.tests}


def _twins(sentences: Sequence[Sentence], split: Split, part: str) -> list[Sentence | None]:
    """Sentences with the same words, from the same part if it has them."""
    parts = _parts(split)
    near, far = twins(sentences, parts.pop(part, ())), twins(sentences, itertools.chain(*parts.values()))
    return [other if own is None else own for own, other in zip(near, far, strict=True)]


def _joined(sentence: Sentence, *twins: Sentence | None) -> Sentence:
    """A sentence with what is known about the same words elsewhere, where it does not say so itself."""
    known = dict(sentence.annotations)
    for twin in twins:
        there = {} if twin is None else twin.annotations
        known |= {name: v for name, v in there.items() if name not in known and _OF.get(name) not in known}
    return replace(sentence, annotations=known, source=None)
