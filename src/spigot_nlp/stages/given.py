"""Trees that nobody learns: controls for what a learned one is worth."""

from collections.abc import Sequence
from typing import Literal, final

import torch

import spigot
from spigot.types import Parts, Values
from spigot_nlp.annotations.trees import Trees, tree_parts
from spigot_nlp.batches.batch import Batch
from spigot_nlp.nn.noise import uniform
from spigot_nlp.stages.stage import STAGES, AbstractStage, Evidence, StageSettings, Surroundings


class GivenSettings(StageSettings):
    """Trees by rule.

    Attributes:
        rule: `gold`, the right ones; `left`-branching, where each word hangs on the next and the last on the root;
            `right`-branching, its mirror image; `random`, a projective tree drawn by the words themselves, so that a
            sentence keeps its own.
    """

    rule: Literal["gold", "left", "right", "random"] = "gold"
    latent: bool = True


@final
@STAGES.register("given")
class GivenStage(AbstractStage[GivenSettings, Trees, spigot.ProjectiveTrees]):
    """A stage without parameters, whose trees follow a rule.

    Example:
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.data.vocab import Vocab
        >>> it = Sentence(("It", "rained", "again"))
        >>> vocab = Vocab.of([it])
        >>> batch = collate([encode(it, vocab)])
        >>> for rule in ("left", "right"):
        ...     settings = GivenSettings(annotation="trees", model="given", rule=rule)
        ...     Trees().decode(GivenStage("chain", settings, Trees(), Surroundings(vocab)).given(batch), [3])
        [(2, 3, 0)]
        [(0, 1, 2)]
    """

    Settings = GivenSettings
    learns = False

    def __init__(self, name: str, settings: GivenSettings, annotation: Trees, around: Surroundings) -> None:
        torch.nn.Module.__init__(self)
        self.name, self.settings, self.annotation = name, settings, annotation
        self._own, self.readers = None, torch.nn.ModuleList()
        self.structure = spigot.ProjectiveTrees()

    @property
    def shared_encoder(self) -> str:
        """None: it looks at no words."""
        return ""

    def evidence(self, batch: Batch, read: Sequence[Parts] = (), *, limits: None = None) -> Evidence:
        """There is none: nothing is scored."""
        raise TypeError(f"the trees of {self.name} follow a rule; there are no scores behind them.")

    def loss(self, batch: Batch, read: Sequence[Parts] = ()) -> Values:
        """There is none: nothing is learned."""
        raise TypeError(f"the trees of {self.name} follow a rule; there is nothing to learn.")

    @property
    def arc_labels(self) -> int:
        """None: its arcs have no labels."""
        return 0

    def arcs(self, z: Parts) -> tuple[Parts, None]:
        """The trees are their arcs."""
        return z, None

    def given(self, batch: Batch) -> Parts:
        """The trees of a batch's sentences, as arcs i -> j."""
        place = torch.arange(batch.size, device=batch.device)
        match self.settings.rule:
            case "gold":
                if self.name not in batch.gold:
                    raise ValueError(f"{self.name} needs trees, and this batch has none for some of its sentences.")
                heads = self.gold(batch)
            case "left":
                heads = (place + 1) * (place < batch.lengths.unsqueeze(-1))
            case "right":
                heads = (place - 1).clamp(min=0).expand(len(batch), -1)
            case "random":
                return _random(batch)
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
