"""An encoder of your own: words and the words beside them, through one convolution, in place of a BiLSTM.

    python examples/own_encoder.py                                             # trains a small parser with it
    spigot train mine.toml --plugin examples/own_encoder.py                    # where encoder = { kind = "window" }

The class registers itself; the options in a configuration are those of its settings.
"""

import tempfile
from pathlib import Path

import torch
from torch import nn

from spigot_nlp.encoders import ENCODERS, AbstractEncoder, EncoderSettings
from spigot_nlp.values import Positive


class WindowSettings(EncoderSettings):
    """How long a word's vector and a state are, and how many words a window holds."""

    kind: str = "window"
    word_dim: Positive = 32
    hidden: Positive = 64
    words: Positive = 5


@ENCODERS.register("window")
class Window(AbstractEncoder):
    """The state of a word is what a convolution sees around it."""

    Settings = WindowSettings

    def __init__(self, settings, vocab, vectors=None):
        super().__init__(settings, vocab, vectors)
        self.embedding = nn.Embedding(len(vocab.words), settings.word_dim, sparse=True)
        self.convolution = nn.Conv1d(settings.word_dim, settings.hidden, settings.words, padding="same")
        self.outputs = settings.hidden

    def forward(self, batch, *, noisy=True):
        inside = torch.arange(batch.words.shape[1], device=batch.device) <= batch.lengths.unsqueeze(-1) + 1
        vectors = self.embedding(batch.words) * inside.unsqueeze(-1)  # padding is not seen
        return self.convolution(vectors.transpose(1, 2)).relu().transpose(1, 2)[:, :-1]  # without the end symbol


if __name__ == "__main__":
    from spigot_nlp.config import make_config
    from spigot_nlp.training import train

    stage = {"annotation": "trees", "loss": "crf", "mlp": 32, "encoder": {"kind": "window", "words": 3}}
    data = {"source": "synthetic", "synthetic": {"train": 100, "dev": 20, "test": 5}, "tags": "columns"}
    tables = {"data": data, "stages": {"syntax": stage}, "training": {"batch": 10, "epochs": 2}}
    run = train(make_config(tables), Path(tempfile.mkdtemp()) / "run")
    for epoch in run.history:
        print(f"epoch {epoch['epoch']}: UAS {epoch['UAS']:.1f}")
    (found,) = run.parser("The poet sleeps.")
    print([(token.text, token.head) for token in found])
