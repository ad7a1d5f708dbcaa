"""A pretrained transformer from Hugging Face, over the subwords of given words."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, final

import torch
from jaxtyping import Float
from pydantic import AfterValidator
from torch import Tensor, nn
from torch.nn.functional import pad

from spigot_nlp.batches.batch import Batch
from spigot_nlp.batches.pieces import divided
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders.encoder import ENCODERS, AbstractEncoder, EncoderSettings
from spigot_nlp.encoders.pretrained import Pretrained, ask, place
from spigot_nlp.nn.encoder import BiLSTM
from spigot_nlp.values import Count, Layers, Optimiser, Rate, Size

Forms = tuple[str, ...]
_TOGETHER = 32


class Kept:
    """States of sentences, read when one is first asked for, and kept.

    A model rounds a little otherwise in other company. So sentences are always read in the same groups, neighbours by
    length, whichever of them is asked for first: a training that was interrupted goes on with the same numbers.

    Args:
        sets: Sentences that will be asked for, as sets which are read at different times, if at all.

    Example:
        >>> import torch
        >>> kept = Kept([[("Rain", "fell"), ("Rain",)]])
        >>> kept.of(("Rain",), lambda group: torch.ones(1, len(group), 3, 4)).shape
        torch.Size([1, 2, 4])
        >>> ("Rain", "fell") in kept, ("Snow",) in kept, kept.positions
        (True, False, 5)
    """

    def __init__(self, sets: Iterable[Iterable[Forms]]) -> None:
        self._group: dict[Forms, list[Forms]] = {}
        self._states: dict[Forms, Float[Tensor, "layers n d"]] = {}
        for sentences in sets:
            new = sorted(dict.fromkeys(forms for forms in sentences if forms not in self._group), key=len)
            for start in range(0, len(new), _TOGETHER):
                group = new[start : start + _TOGETHER]
                self._group |= dict.fromkeys(group, group)

    def __contains__(self, forms: Forms) -> bool:
        return forms in self._group

    @property
    def positions(self) -> int:
        """Of all sentences together, each with its root."""
        return sum(len(forms) + 1 for forms in self._group)

    def of(self, forms: Forms, read: Callable[[Sequence[Forms]], Tensor]) -> Float[Tensor, "layers n d"]:
        """The states of a sentence, its root among them, in the memory of the CPU.

        Args:
            forms: Its words.
            read: How states `(layers, some, n, d)` of some sentences are made, padded to the longest.
        """
        if forms not in self._states:
            group = self._group[forms]
            for sentence, states in zip(group, read(group).unbind(1), strict=True):
                self._states[sentence] = states[:, : len(sentence) + 1].cpu().clone()  # without the padding
        return self._states[forms]


def _named(model: str) -> str:
    if not model.strip():
        raise ValueError("it is empty; give a folder, or a name on the hub of Hugging Face")
    return model


class TransformerSettings(EncoderSettings):
    """A pretrained transformer, and how words get their states from it.

    Attributes:
        model: A folder, or a name on the hub of Hugging Face.
        pooling: Whether a word is its first subword, or the mean of all.
        layers: Whether a state is that of the last layer, or a mixture of all of them, which is learned.
        frozen: Whether the transformer stays as it is.
        keep: Megabytes that the states of training and development sentences may take, so that a frozen transformer
            reads each of them once and not in every pass; where they would take more, none are kept.
        optimiser: How it is updated if not; all that stands behind it is updated with the stage.
        positions: Subwords that are read at once, signs around them included; as many as the model can if 0. Longer
            sentences are read in windows that overlap.
        dropout: Share of units left out of the states, one mask a sentence. (Dropout inside the transformer is off.)
        lstm: Layers of a BiLSTM over the states; none if 0.
        hidden: Its units in each direction.

    Example:
        >>> TransformerSettings(model="models/tiny", frozen=True, lstm=1).learns
        True
    """

    kind: str = "transformer"
    model: Annotated[str, AfterValidator(_named)]
    pooling: Literal["first", "mean"] = "first"
    layers: Literal["last", "mixed"] = "last"
    frozen: bool = False
    keep: Count = 2048
    optimiser: Optimiser = Optimiser(learning_rate=5e-5, warm_up=200)
    positions: Count = 0
    dropout: Rate = 0.1
    lstm: Layers = 0
    hidden: Size = 200

    @property
    def learns(self) -> bool:
        """Whether training changes it."""
        return not self.frozen or self.learns_beside

    @property
    def learns_beside(self) -> bool:
        """Whether anything learns behind the transformer."""
        return self.layers == "mixed" or self.lstm > 0

    def idle(self) -> dict[str, str]:
        """The settings that do nothing beside others, and beside which."""
        found = {"optimiser": "frozen = true"} if self.frozen else {"keep": "frozen = false"}
        return found if self.lstm else {**found, "hidden": "lstm = 0"}


@final
@ENCODERS.register("transformer")
class TransformerEncoder(AbstractEncoder):
    r"""States of words from the subwords of a transformer; the root has that of the sign before a sentence.

    A word's state is that of its first subword, or the mean of those of all; with mixed layers it is
    $\gamma \sum_l \operatorname{softmax}(w)_l \, h_l$ over the states before and after each layer. A word that the
    tokeniser makes nothing of, and the root where nothing stands before a sentence, have zeros.

    **Departure:** dropout inside the transformer stays off, since it would draw from a stream that batches share; so a
    training that is interrupted goes on with the same numbers.

    Args:
        settings: Which, and how it is used.
        vocab: Not looked at: the tokeniser of the model has its own.
        vectors: Not looked at.
        pretrained: The model, if it has been loaded.

    Example:
        >>> encoder = {"kind": "transformer", "model": "models/tiny", "layers": "mixed"}     # in a table of settings
        >>> ENCODERS.find(encoder["kind"]) is TransformerEncoder, TransformerSettings(**encoder).pooling
        (True, 'first')

    References:
        Peters et al. (2018), Deep contextualized word representations, Eq. 1, for the mixture.
    """

    Settings = TransformerSettings
    looks_up_words = False
    columns = ()

    def __init__(
        self,
        settings: TransformerSettings,
        vocab: Vocab,
        vectors: Float[Tensor, "words d"] | None = None,
        *,
        pretrained: Pretrained | None = None,
    ) -> None:
        super().__init__(settings, vocab, vectors)
        self._settings, self._kept = settings, Kept([])
        self._pretrained = pretrained or Pretrained.load(settings.model)
        self._frame, self._divide = self._pretrained.frame(settings.positions), self._pretrained.divider()
        self.transformer = self._pretrained.model.eval().requires_grad_(not settings.frozen)
        mixed = settings.layers == "mixed"
        self.mixture = nn.Parameter(torch.zeros(self._pretrained.layers)) if mixed else None
        self.scale = nn.Parameter(torch.ones(())) if mixed else None
        self.lstm = self._reader()
        self.outputs, self.is_noisy = self.lstm.outputs, settings.dropout > 0

    @classmethod
    def restored(cls, settings: TransformerSettings, vocab: Vocab, run: Path) -> "TransformerEncoder":
        """From the files of a run, and not from where the model first came from."""
        return cls(settings, vocab, pretrained=Pretrained.read(place(run, settings.model)))

    def save(self, run: Path) -> None:
        """Write the settings of the transformer and its tokeniser."""
        self._pretrained.write(place(run, self._settings.model))

    def tuned(self) -> dict[str, tuple[nn.Module, Optimiser]]:
        """The transformer, unless it is frozen."""
        return {} if self._settings.frozen else {"transformer": (self.transformer, self._settings.optimiser)}

    def expect(self, sets: Sequence[Sequence[Forms]]) -> None:
        """Keep the states of these sentences, if the transformer is frozen and there is room for them."""
        expected = Kept(sets if self._settings.frozen else [])
        layers = 1 if self.mixture is None else len(self.mixture)
        taken = 4 * expected.positions * layers * self._pretrained.outputs
        self._kept = expected if taken <= self._settings.keep << 20 else Kept([])

    def train(self, mode: bool = True) -> "TransformerEncoder":
        """The transformer itself never draws random numbers."""
        super().train(mode)
        self.transformer.eval()
        return self

    def forward(self, batch: Batch, *, noisy: bool = True) -> Float[Tensor, "batch n d"]:
        """States of the root and of the words.

        Args:
            batch: The sentences.
            noisy: Whether dropout applies, if the batch has seeds at all.
        """
        return self._read(self.lstm, self._words(batch), batch, noisy)

    def branch(self) -> nn.Module:
        """A second BiLSTM, if there is a first."""
        return self._reader() if self._settings.lstm else super().branch()

    def states_of(
        self, branches: Sequence[nn.Module], batch: Batch, *, noisy: bool = True
    ) -> list[Float[Tensor, "batch n d"]]:
        """States by its own BiLSTM, and by each of the others; the transformer is asked once."""
        if not branches:
            return [self.states(batch, noisy=noisy)]
        words = self._words(batch)
        return [self._read(lstm, words, batch, noisy) for lstm in (self.lstm, *branches)]

    def _reader(self) -> BiLSTM:
        settings = self._settings
        return BiLSTM(
            self._pretrained.outputs, settings.hidden, settings.lstm, interleaved=True, dropout=settings.dropout
        )

    def _read(self, lstm: nn.Module, words: Tensor, batch: Batch, noisy: bool) -> Float[Tensor, "batch n d"]:
        return lstm(words, batch.lengths + 1, batch.seeds if noisy else None)

    def _words(self, batch: Batch) -> Float[Tensor, "batch n e"]:
        """States by the transformer alone, in which there is no noise."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self._settings.frozen):
            layers = self.once(batch, "words", lambda: self._known(batch))
        if self.mixture is None or self.scale is None:
            return layers[-1]
        return self.scale * torch.einsum("l,lbnd->bnd", self.mixture.softmax(0).to(layers.dtype), layers)

    def _known(self, batch: Batch) -> Float[Tensor, "layers batch n e"]:
        """States of each layer that counts, looked up if all of them are kept."""
        if not batch.forms or not all(forms in self._kept for forms in batch.forms):
            return self._layers(batch.forms, batch.size, batch.device)

        def read(group: Sequence[Forms]) -> Tensor:
            return self._layers(group, max(map(len, group)) + 1, batch.device)

        found = [self._kept.of(forms, read) for forms in batch.forms]
        padded = [pad(states, (0, 0, 0, batch.size - states.shape[1])) for states in found]
        return torch.stack(padded, 1).to(batch.device)

    def _layers(
        self, sentences: Sequence[Forms], size: int, device: torch.device
    ) -> Float[Tensor, "layers some {size} e"]:
        first = self._settings.pooling == "first"
        found = divided(sentences, size, self._divide, self._frame, first=first).to(device)
        # Few large questions suit an accelerator better than many small ones.
        chosen = found.read(self._asked) if device.type == "cpu" else self._asked(found.ids, found.there)
        return torch.stack([found.pooled(states, len(sentences), size) for states in chosen])

    def _asked(self, ids: Tensor, there: Tensor | None) -> Sequence[Tensor]:
        """States of subwords, after the last layer or all of them."""
        return ask(self.transformer, ids, there, mixed=self.mixture is not None)
