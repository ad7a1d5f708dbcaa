"""How often the answers of a system are known to be the best ones."""

from collections import Counter
from collections.abc import Sequence

import torch

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.parser import Parser


@torch.no_grad()
def certainty(parser: Parser, sentences: Sequence[Sentence], *, tagged: bool = False) -> dict[str, dict[str, float]]:
    """For which share of sentences the answers of each stage are proven to be the best, and the relaxation was whole.

    Stages that decode exactly have nothing to say: of a system that has no others this is empty.

    Args:
        parser: The system.
        sentences: What to parse.
        tagged: Whether the sentences have the tags and lemmas of this system already.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.models.build import fresh
        >>> config = make_config({"stages": {"syntax": {"annotation": "trees"}}})
        >>> parser = fresh(config, {"trees": [Sentence(("Rain",))]})
        >>> certainty(parser, [Sentence(("Rain",))])                     # the best tree always is
        {}
    """
    found: dict[str, Counter[str]] = {}
    total = 0
    for group, batch in parser.batches(parser.read(sentences, tagged=tagged)):
        total += len(group)
        for name, (_, evidence) in parser.model.parse(batch).items():
            known = {} if evidence is None else parser.model.stages[name].certainty(evidence)
            for what, which in known.items():
                found.setdefault(name, Counter())[what] += int(which.sum())
        if not found:
            return {}
    return {name: {what: count / total for what, count in counts.items()} for name, counts in found.items()}
