"""Trees that nobody learns: controls for what a learned one is worth."""

import torch

import spigot
from spigot.data.batch import Batch
from spigot.models.syntax import tree_parts
from spigot.nn.noise import uniform
from spigot.types import Parts


def given_trees(batch: Batch, kind: str) -> Parts:
    """Trees of a batch's sentences.

    Args:
        batch: The sentences.
        kind: `gold`; `left`-branching, where each word hangs on the next and the last on the root; `right`-branching,
            its mirror image; `random`, a projective tree drawn by the words themselves, so that a sentence keeps its
            own.

    Returns:
        Arcs i -> j.

    Example:
        >>> from spigot.data.batch import collate, encode
        >>> from spigot.data.sentence import Sentence
        >>> from spigot.data.vocab import Vocab
        >>> it = Sentence(("It", "rained", "again"))
        >>> batch = collate([encode(it, Vocab.of([it]))])
        >>> [given_trees(batch, kind)[0].argmax(0).tolist()[1:] for kind in ("left", "right")]
        [[2, 3, 0], [0, 1, 2]]
    """
    place = torch.arange(batch.size, device=batch.words.device)
    match kind:
        case "gold":
            if batch.heads is None:
                raise ValueError("classifier.structure = 'gold' needs trees, and these sentences have none.")
            heads = batch.heads
        case "left":
            heads = (place + 1) * (place < batch.lengths.unsqueeze(-1))
        case "right":
            heads = (place - 1).clamp(min=0).expand(len(batch), -1)
        case "random":
            return _random(batch)
        case _:
            raise ValueError(f"kind is {kind!r}; it must be gold, left, right or random.")
    return tree_parts(heads, batch.lengths, torch.get_default_dtype())


def _random(batch: Batch) -> Parts:
    place = torch.arange(batch.size, device=batch.words.device)
    inside = place <= batch.lengths.unsqueeze(-1)
    seeds = (batch.words[:, :-1] * inside * (7919 * place + 1)).sum(-1)
    # The number of a pair of positions is the same however far the batch is padded.
    i, j = place.unsqueeze(-1), place
    pair = torch.where(i < j, j * j + i, i * i + i + j)
    scores = uniform(seeds, batch.size**2, stream=0)[:, pair]
    trees = spigot.ProjectiveTrees()
    return trees.argmax(scores, trees.mask(batch.lengths, batch.size))
