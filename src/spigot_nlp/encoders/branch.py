"""A BiLSTM of one's own over what another encoder makes of words."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, final

from jaxtyping import Float
from torch import Tensor

from spigot_nlp.batches.batch import Batch
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders.encoder import ENCODERS, AbstractEncoder, EncoderSettings
from spigot_nlp.nn.encoder import BiLSTM
from spigot_nlp.values import Layers, Rate, Size


class BranchSettings(EncoderSettings):
    """A BiLSTM over what a shared encoder makes of words.

    Attributes:
        of: The name of the shared encoder, in `encoders`.
        over: Its `vectors` of single words, which are read and not changed; or its `states`, on which this one is a
            layer more, and trains them.
        interleaved: Whether a layer reads both directions of the one below.
        dropout: Share of units left out of the inputs and of the states, one mask a sentence.
        input_dropout: Share of units left out of each token's vector.

    Example:
        >>> BranchSettings(of="words", hidden=64).layers
        1
    """

    kind: str = "branch"
    of: str
    over: Literal["vectors", "states"] = "vectors"
    hidden: Size = 150
    layers: Layers = 1
    interleaved: bool = True
    dropout: Rate = 0.0
    input_dropout: Rate = 0.0

    @property
    def reads(self) -> str:
        """The shared encoder."""
        return self.of

    @property
    def trains(self) -> str:
        """The shared encoder, if its states are read."""
        return self.of if self.over == "states" else ""


@final
@ENCODERS.register("branch")
class BranchEncoder(AbstractEncoder):
    """States of a BiLSTM over the vectors of another encoder (of words, lemmas, tags, spelling), or over its states.

    Tables of words are most of a model, and alike in all of its encoders: with this one a stage has a reading of its
    own without a table of its own. Nothing goes back to vectors, so that what else reads them stays as it is; over
    states, the stage has a layer of its own above one that it shares.

    Args:
        settings: Sizes and dropout.
        vocab: The indices.
        vectors: Not used: the trunk has its own.
        trunk: The encoder that it reads.

    Example:
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.encoders import BiLSTMEncoder, BiLSTMSettings
        >>> rain = Sentence(("Rain", "fell"))
        >>> vocab = Vocab.of([rain])
        >>> trunk = BiLSTMEncoder(BiLSTMSettings(hidden=8), vocab)
        >>> branch = BranchEncoder(BranchSettings(of="words", hidden=6), vocab, trunk=trunk)
        >>> branch(collate([encode(rain, vocab)])).shape, len(list(branch.parameters()))
        (torch.Size([1, 3, 12]), 8)
    """

    Settings = BranchSettings
    by_kernels = True
    looks_up_words = False  # its trunk does
    columns = ()

    def __init__(
        self,
        settings: BranchSettings,
        vocab: Vocab,
        vectors: Float[Tensor, "words d"] | None = None,
        *,
        trunk: AbstractEncoder,
    ) -> None:
        super().__init__(settings, vocab, vectors)
        self.over = settings.over
        if self.over == "vectors" and not trunk.inputs:
            raise ValueError(
                f"over is 'vectors', and encoders.{settings.of} has no vectors of single words for a branch to read; "
                "set over = 'states'."
            )
        self._trunk = (trunk,)  # not among the parameters of this one
        self.lstm = BiLSTM(
            trunk.inputs if self.over == "vectors" else trunk.outputs,
            settings.hidden,
            settings.layers,
            interleaved=settings.interleaved,
            dropout=settings.dropout,
            input_dropout=settings.input_dropout,
        )
        self.outputs = self.lstm.outputs
        below = self.over == "states" and trunk.is_noisy
        self.is_noisy = bool(settings.dropout or settings.input_dropout) or below

    @classmethod
    def built(
        cls,
        settings: BranchSettings,
        vocab: Vocab,
        vectors: Float[Tensor, "words d"] | None,
        others: Mapping[str, AbstractEncoder],
        run: Path | None = None,
    ) -> "BranchEncoder":
        """The encoder on its trunk."""
        if settings.of not in others:
            known = f"; there are {', '.join(others)}" if others else ""
            raise ValueError(f"there is no encoders.{settings.of} that an encoder could be a branch of{known}.")
        return cls(settings, vocab, vectors, trunk=others[settings.of])

    def forward(self, batch: Batch, *, noisy: bool = True) -> Float[Tensor, "batch n d"]:
        """States of positions 0 to n."""
        trunk, seeds = self._trunk[0], batch.seeds if noisy else None
        if self.over == "states":
            return self.lstm(trunk.states(batch, noisy=noisy), batch.lengths + 1, seeds)
        if seeds is None and self.lstm.reads_whole(next(self.lstm.parameters(), batch.words)):
            return self.lstm.read(*trunk.distinct_inputs(batch), batch.lengths + 2)[:, :-1].contiguous()
        return self.lstm(trunk.inputs_of(batch).detach(), batch.lengths + 2, seeds)[:, :-1]
