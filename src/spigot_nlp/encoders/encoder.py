"""What an encoder is: tokens in, states out. A stage has one of its own, or shares one with others."""

import abc
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from pydantic import BeforeValidator, SerializeAsAny
from torch import Tensor, nn

from spigot import Registry
from spigot_nlp.batches.batch import Batch
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.toml import USUAL_KIND
from spigot_nlp.values import Optimiser, Values

Precision = Literal["float32", "bfloat16", "int16"]
"""What encoders compute in: `int16` is for reading, and is single precision where anything is learned. Scorers read in
whole numbers, too; what comes after them is in single precision either way."""

READING: Precision = "int16"
"""What a parser answers in, wherever it does, unless one asks for another; see `Parser.load`."""

ENCODERS: "Registry[AbstractEncoder]" = Registry("encoder")
"""The encoders by the name that a configuration calls them."""


class EncoderSettings(Values):
    """Which encoder; its options are those of a subclass.

    Attributes:
        kind: A key of `ENCODERS`.

    Example:
        >>> from spigot_nlp.encoders import BiLSTMSettings
        >>> issubclass(BiLSTMSettings, EncoderSettings), BiLSTMSettings().kind
        (True, 'bilstm')
    """

    kind: str

    @property
    def reads(self) -> str:
        """The shared encoder that this one is built on; empty if there is none."""
        return ""

    @property
    def trains(self) -> str:
        """The shared encoder that learns with this one, as it is built on it; empty if there is none."""
        return ""

    @property
    def learns(self) -> bool:
        """Whether training changes such an encoder."""
        return True

    @property
    def learns_beside(self) -> bool:
        """Whether training changes anything of it beside what an optimiser of its own settings updates."""
        return self.learns

    @property
    def keeps_vectors(self) -> bool:
        """Whether pretrained vectors of words stay in it as they are."""
        return False

    @property
    def vectors_file(self) -> str:
        """The file of the pretrained vectors that it begins with; that of `data.vectors` if empty."""
        return ""


def encoder_settings(table: Any) -> EncoderSettings:
    """The settings of an encoder from a table; a BiLSTM unless it says otherwise.

    Example:
        >>> import spigot_nlp.encoders
        >>> encoder_settings({"hidden": 8}).kind
        'bilstm'
    """
    if isinstance(table, EncoderSettings):
        return table
    if not isinstance(table, Mapping):
        raise ValueError(f"an encoder is a table with its kind and options, not {table!r}")
    return ENCODERS.find(table.get("kind", USUAL_KIND)).Settings.model_validate(table)


WordTables: TypeAlias = Mapping[str, Float[Tensor, "words d"]]
"""Pretrained word vectors in the vocabulary's order by file as settings name it; that of `data.vectors` has no name."""

AnyEncoder = Annotated[SerializeAsAny[EncoderSettings], BeforeValidator(encoder_settings)]
"""The type of a setting that holds an encoder."""


class AbstractEncoder(nn.Module, abc.ABC):
    """Tokens to states.

    A new encoder is one subclass, registered under its name, with a class of settings.

    Args:
        settings: Its options.
        vocab: The indices.
        vectors: Pretrained word vectors in the vocabulary's order.

    Attributes:
        outputs: Length of a state.

    Example:
        >>> class Bag(AbstractEncoder):                                  # `@ENCODERS.register("bag")` above it
        ...     def __init__(self, settings, vocab, vectors=None):
        ...         super().__init__(settings, vocab, vectors)
        ...         self.outputs, self.words = 8, nn.Embedding(len(vocab.words), 8)
        ...     def forward(self, batch, *, noisy=True):
        ...         return self.words(batch.words)[:, :-1]               # without the end symbol
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.data.sentence import Sentence
        >>> rain = Sentence(("Rain", "fell"))
        >>> vocab = Vocab.of([rain])
        >>> Bag(EncoderSettings(kind="bag"), vocab)(collate([encode(rain, vocab)])).shape
        torch.Size([1, 3, 8])
    """

    Settings: ClassVar[type[EncoderSettings]] = EncoderSettings

    precision: Precision = "float32"
    """What it computes in when a stage asks for its states; its parameters stay as they are."""

    is_noisy: bool = True
    """Whether it drops anything when it may; its states are the same with and without noise if not."""

    by_kernels: bool = False
    """Whether kernels do what is worth dividing of its reading in whole numbers, so that torch needs but one thread."""

    looks_up_words: bool = True
    """Whether it tells words by their places in the vocabulary, so that those which are not there are new to it."""

    columns: Collection[str] = ("lemmas", "tags")
    """What it looks at beside words, by the names that a sentence has for it."""

    outputs: int

    inputs: int = 0
    """Length of the vector of a word before any other is looked at; 0 if there is no such thing."""

    @classmethod
    def built(
        cls,
        settings: Any,
        vocab: Vocab,
        vectors: Float[Tensor, "words d"] | None,
        others: Mapping[str, "AbstractEncoder"],
        run: Path | None = None,
    ) -> "AbstractEncoder":
        """The encoder that settings describe.

        Args:
            settings: Its options.
            vocab: The indices.
            vectors: Pretrained word vectors in the vocabulary's order.
            others: The shared encoders of the system, for one that builds on them.
            run: The folder of a training that it is part of, if its parameters are about to be read.
        """
        return cls(settings, vocab, vectors) if run is None else cls.restored(settings, vocab, run)

    def states(self, batch: Batch, *, noisy: bool = True) -> Float[Tensor, "batch n d"]:
        """What `forward` gives, in its precision, and then in that of its parameters again.

        A batch that keeps what is made of it is read once, however many stages ask (see `Batch.keeping`).

        Args:
            batch: The sentences.
            noisy: Whether dropout applies, if the batch has seeds at all.
        """
        noisy = noisy and self.is_noisy and batch.seeds is not None
        return self.once(batch, noisy, lambda: self._computed(batch, noisy))

    def once(self, batch: Batch, what: Hashable, compute: Callable[[], Tensor]) -> Tensor:
        """Something that is made of a batch, computed once if the batch keeps it.

        Args:
            batch: The sentences.
            what: A name for it.
            compute: How it is made.
        """
        if batch.kept is None:
            return compute()
        learning = torch.is_grad_enabled()
        if not learning and (self, what, True) in batch.kept:
            return batch.kept[self, what, True].detach()
        if (self, what, learning) not in batch.kept:
            batch.kept[self, what, learning] = compute()
        return batch.kept[self, what, learning]

    def _computed(self, batch: Batch, noisy: bool) -> Float[Tensor, "batch n d"]:
        if self.precision != "bfloat16":
            return self(batch, noisy=noisy)
        with torch.autocast(batch.device.type, torch.bfloat16):
            return self(batch, noisy=noisy).float()

    @abc.abstractmethod
    def __init__(self, settings: Any, vocab: Vocab, vectors: Float[Tensor, "words d"] | None = None) -> None:
        super().__init__()

    @abc.abstractmethod
    def forward(self, batch: Batch, *, noisy: bool = True) -> Float[Tensor, "batch n d"]:
        """States of the root and of the words.

        Args:
            batch: The sentences.
            noisy: Whether dropout applies, if the batch has seeds at all.
        """

    def tuned(self) -> "dict[str, tuple[nn.Module, Optimiser]]":
        """Models inside it that are updated otherwise than the rest, and how, by name; none unless it says so."""
        return {}

    def expect(self, sets: Sequence[Sequence[tuple[str, ...]]]) -> None:
        """Take note of sentences that will be read again and again, for encoders that may keep what they make of them.

        Args:
            sets: The words of each, in sets that are read at different times; none when the training is over.
        """

    def save(self, run: Path) -> None:
        """Write what it needs into a run folder, apart from parameters; nothing unless it says so."""

    @classmethod
    def restored(cls, settings: Any, vocab: Vocab, run: Path) -> "AbstractEncoder":
        """One like that which `save` wrote the files of, before its parameters are read.

        Args:
            settings: Its options.
            vocab: The indices.
            run: The run folder.
        """
        return cls(settings, vocab)

    def branch(self) -> nn.Module:
        """A second reader of the same embeddings, of the same kind and size, with parameters of its own.

        Raises:
            TypeError: If the encoder cannot be divided into embeddings and what reads them.
        """
        raise TypeError(
            f"{type(self).__name__} has no embeddings that encoders of single tasks could share; share all of it "
            "(own = false), or use a bilstm."
        )

    def inputs_of(self, batch: Batch, *, noisy: bool = False) -> Float[Tensor, "batch n+1 e"]:
        """The vectors of single words, the root and the end symbol among them, where an encoder has such.

        Args:
            batch: The sentences.
            noisy: Whether words are dropped, if the batch has seeds at all.
        """
        self.branch()  # which says why there are none
        raise NotImplementedError

    def distinct_inputs(self, batch: Batch) -> tuple[Float[Tensor, "rows e"], Int[Tensor, "batch n+1"]]:
        """The same vectors for reading in whole numbers: a list of them, and which stands where.

        Args:
            batch: The sentences.
        """
        inputs = self.inputs_of(batch)
        return inputs.flatten(0, 1), torch.arange(inputs.shape[0] * inputs.shape[1]).view(inputs.shape[:2])

    def states_of(
        self, branches: Sequence[nn.Module], batch: Batch, *, noisy: bool = True
    ) -> list[Float[Tensor, "batch n d"]]:
        """States by the encoder itself, and by each of its branches.

        Args:
            branches: What `branch` made.
            batch: The sentences.
            noisy: Whether dropout applies, if the batch has seeds at all.
        """
        if branches:
            self.branch()  # which says why there are none
        return [self.states(batch, noisy=noisy)]


def make_encoder(
    settings: EncoderSettings,
    vocab: Vocab,
    vectors: WordTables | None = None,
    run: Path | None = None,
    others: Mapping[str, AbstractEncoder] | None = None,
) -> AbstractEncoder:
    """The encoder that a table describes, with fresh parameters.

    Args:
        settings: Which, and its options.
        vocab: The indices.
        vectors: Pretrained word vectors in the vocabulary's order, by file.
        run: The folder of a training that it is part of, if there is one: its parameters are about to be read.
        others: The shared encoders of the system, if it may be built on one of them.

    Raises:
        ValueError: If it is built on a shared encoder, and may not be or there is none of that name.

    Example:
        >>> import spigot_nlp.encoders
        >>> from spigot_nlp.data.sentence import Sentence
        >>> make_encoder(encoder_settings({"hidden": 8}), Vocab.of([Sentence(("Rain",))])).outputs
        16
    """
    if others is None and settings.reads:
        raise ValueError(
            f"an encoder of the kind {settings.kind!r} reads encoders.{settings.reads}, which only one of a stage may, "
            "and not a shared one or a pruner's; write it as `encoder` of a stage, or choose another kind."
        )
    table = (vectors or {}).get(settings.vectors_file)
    return ENCODERS.find(settings.kind).built(settings, vocab, table, others or {}, run)
