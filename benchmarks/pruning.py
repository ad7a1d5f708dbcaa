"""What the pruner of heads costs and saves in a step of one sentence, at the published sizes."""

from collections.abc import Callable, Iterator

from benchmarks.timing import Row, best, faster
from spigot_nlp.batches import collate
from spigot_nlp.config import make_config
from spigot_nlp.corpora.corpus import load_corpus
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.build import fresh
from spigot_nlp.models.parser import Parser

LENGTHS = (20, 40, 80)
HEADS = 4  # a word, about as many as a pruner that has learned from open DM leaves


def pruning() -> Iterator[Row]:
    """Forward and backward of a step on a tree and of one on a graph, with the pruner and with all heads."""
    both = [_parser(learned) for learned in (True, False)]
    for length in LENGTHS:
        for task in ("syntax", "semantics"):
            pruned, whole = (best(_step(parser, task, length), 2.0) for parser in both)
            yield faster(f"a step of {task}, {length} words, {HEADS} heads a word", pruned, "all heads", whole)


def _parser(learned: bool) -> Parser:
    sizes = {"train": 300, "dev": 1, "test": 1}
    given = {"preset": "release", "data": {"source": "synthetic", "tags": "columns", "synthetic": sizes}}
    pruned = {"learned": learned, "dictionary": False, "top_heads": HEADS, "threshold": 0.0}
    config = make_config({**given, "syntax": {"pruning": pruned}})
    return fresh(config, load_corpus(config.data, tests=False).train)


def _step(parser: Parser, task: str, length: int) -> Callable[[], object]:
    train, model = load_corpus(parser.config.data, tests=False).train, parser.model
    words = [word for sentence in train["trees"][:length] for word in sentence.forms][:length]
    # A chain, and the graph of another sentence: what is right changes nothing about the time.
    sentence = Sentence(tuple(words), tags=("NN",) * length, heads=tuple(range(length)))
    annotations = {task: model.annotations[task]}
    encoded = parser.encoded(sentence.put("graph", train["graphs"][0].graph), annotations)
    batch = collate([encoded], annotations, [1])

    def step() -> None:
        model.zero_grad(set_to_none=True)
        model.loss(batch, task).sum().backward()

    return step
