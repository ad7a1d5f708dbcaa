"""A task of your own: find the word that a sentence is about, and let the trees inside be trained by it.

python examples/own_task_data.py data && spigot train examples/own_task.toml --plugin examples/own_task.py
"""

from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

import spigot
from spigot_nlp.annotations import ANNOTATIONS, AbstractAnnotation, Drawn, DrawnArc, Measure
from spigot_nlp.data.formats import FORMATS, Format
from spigot_nlp.data.formats.files import LINE, Malformed
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation import label_counts, score_labels
from spigot_nlp.nn.scorers import WordScorer
from spigot_nlp.stages import STAGES, AbstractStage, Evidence


@ANNOTATIONS.register("focus")
@dataclass(frozen=True)
class Focus(AbstractAnnotation):
    """The number of one word."""

    name: str = "focus"
    noun, nouns, key, suffix, dataset = "focus", "focuses", "focus", "focus", "focus"

    @classmethod
    def learn(cls, name, sentences, settings):
        return cls(name)

    def encode(self, value, sentence):
        return value

    def collate(self, encoded, size):
        return torch.tensor(encoded)

    def decode(self, z, lengths):
        return z.argmax(-1).tolist()

    def score(self, gold, predicted):
        return score_labels(gold, predicted, self.name)

    @property
    def measures(self):
        return (Measure("focus", "accuracy", lambda gold, found: label_counts(gold, found, field=self.name)),)

    def draw(self, value):
        return Drawn((DrawnArc(0, value, "focus"),), above=True)


@STAGES.register("focus")
class FocusStage(AbstractStage):
    """A score for each word; the best one is the focus."""

    def __init__(self, name, settings, annotation, around):
        super().__init__(name, settings, annotation, around)
        self.structure, self.scorer = spigot.OneOf(), WordScorer(self.width, settings.mlp)

    def evidence(self, batch, read=(), *, limits=None, noisy=False):
        place = torch.arange(batch.size, device=batch.device)
        scores = self.scorer(self.states(batch, read, noisy=noisy))
        return Evidence(scores, (place > 0) & (place <= batch.lengths.unsqueeze(-1)))

    def loss(self, batch, read=()):
        scores, mask = self.evidence(batch, read, noisy=True)
        return cross_entropy(scores.masked_fill(~mask, -torch.inf), self.gold(batch), reduction="none")


def parse(block):
    number, tab, text = block.lines[0].partition("\t")
    if not tab or not number.isdecimal() or not 0 < int(number) <= len(text.split()):
        raise Malformed(0, "each line is the number of a word, a tab, and words with spaces between them.")
    return Sentence(tuple(text.split())).put("focus", int(number))


FORMATS["focus"] = Format(parse, lambda s, opens: (f"{s.get('focus')}\t{' '.join(s.forms)}", LINE), (".focus",), True)
