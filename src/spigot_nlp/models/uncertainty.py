"""How sure a parser is of its trees."""

import math
from collections.abc import Sequence

import torch

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.parser import Parser
from spigot_nlp.stages.trees import TreeStage


@torch.no_grad()
def head_entropy(parser: Parser, sentences: Sequence[Sentence], *, tagged: bool = False) -> float:
    r"""Mean entropy in bits of the head of a word, under the distribution over trees that the scores stand for.

    With $p(z) \propto e^{s^\top z}$ and the marginals $\mu_{ij} = \Pr(\text{$i$ heads $j$})$, this is
    $$\frac1N \sum_j -\sum_i \mu_{ij} \log_2 \mu_{ij}$$
    over all $N$ words. It is 0 if there is one tree that counts, and at most the mean of $\log_2 n$ over the words,
    where $n$ is the number of words in the sentence, if every head is as likely as any other. A parser that was
    trained through hard trees need not mean its scores as a distribution; what the number tells is how far the best
    tree stands out.

    Args:
        parser: A system with a syntactic parser.
        sentences: What it parses.
        tagged: Whether they have the tags and lemmas of this system already.

    Returns:
        Bits a word; 0 if there are no words.

    Raises:
        ValueError: If the system has no syntactic parser.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.models.build import fresh
        >>> sentences = [Sentence(("Rain",), label=0), Sentence(("It", "rained"), label=1)]
        >>> latent = {"structure": "trees", "latent": True}
        >>> config = make_config({"task": "classification", "classifier": latent, "data": {"tags": "columns"}})
        >>> parser = fresh(config, {"labels": sentences})
        >>> head_entropy(parser, sentences[:1])                 # a single word can only hang on the root
        0.0
        >>> 0 < head_entropy(parser, sentences[1:]) <= 1
        True
    """
    syntax = parser.stage_of("heads")
    if not isinstance(syntax, TreeStage):
        raise ValueError("This system has no syntactic parser, so there are no heads to be sure of; give one that has.")
    bits, words = 0.0, 0
    for _, batch in parser.batches([s for s in parser.read(sentences, tagged=tagged) if len(s)]):
        answer = parser.model.parse(batch)[syntax.name]
        assert answer.evidence is not None
        arcs = syntax.arc_evidence(answer.evidence)
        marginals = syntax.trees.marginals(arcs.scores, arcs.mask).double()
        # A probability may come out a rounding error above 1.
        bits += float(torch.special.entr(marginals.clamp(0, 1)).sum()) / math.log(2)
        words += int(batch.lengths.sum())
    return bits / max(words, 1)
