"""Embeddings of words, lemmas, tags and spellings, and a BiLSTM over them."""

import threading
from collections.abc import Callable, Sequence
from typing import Annotated, final

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import embedding, pad

from spigot_nlp.batches.batch import LETTERS, Batch, letters_of
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders.encoder import ENCODERS, AbstractEncoder, EncoderSettings
from spigot_nlp.nn.encoder import BiLSTM, TokenEmbedding
from spigot_nlp.nn.quantised import Remembered
from spigot_nlp.values import Layers, OptionalSize, Rate, Size

_MOST_WORDS = 1 << 14
"""Words whose vectors are kept at a time, and some more of the last batch."""
_MEETING = threading.Lock()
"""Held while words are looked for and added; not by a model itself, which must be copied now and then."""


class CharacterCNN(nn.Module):
    r"""For each word the largest answers of some filters that slide over its letters.

    $$c_k = \max_t \operatorname{ReLU}\big(b_k + \textstyle\sum_{r=1}^{w} W_{kr}\, e(x_{t+r})\big)$$

    The largest of a word does not depend on how far it is padded.

    Args:
        letters: How many letters there are; the first is none.
        dim: Length of a letter's vector.
        filters: How many filters of each width, so that a word has `filters * len(widths)` numbers.
        widths: How many letters a filter sees.

    Attributes:
        outputs: Length of a word's vector.

    Example:
        >>> cnn = CharacterCNN(10, dim=4, filters=6, widths=(2, 3))
        >>> short, long = torch.tensor([[1, 2, 3]]), torch.tensor([[1, 2, 3, 0, 0]])
        >>> cnn(short).shape, bool(torch.allclose(cnn(short), cnn(long)))
        (torch.Size([1, 12]), True)

    References:
        Ma and Hovy (2016), End-to-end sequence labeling via bi-directional LSTM-CNNs-CRF, section 2.1.
    """

    def __init__(self, letters: int, dim: int, filters: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(letters, dim))
        bound = (3 / dim) ** 0.5
        nn.init.uniform_(self.table, -bound, bound)
        self.filters = nn.ModuleList(nn.Linear(width * dim, filters) for width in widths)
        for layer in self.filters:
            assert isinstance(layer, nn.Linear)
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.widths, self.outputs = widths, filters * len(widths)
        self._answers = Remembered[list[list[Tensor]]]()
        self._known = Remembered[_Known]()

    def forward(self, words: Int[Tensor, "words k"]) -> Float[Tensor, "words d"]:
        """The vectors of words, whose letters are numbers, 0 behind the end."""
        widest = max(self.widths)
        exists = pad(words > 0, (0, widest))
        table = torch.cat((torch.zeros_like(self.table[:1]), self.table[1:]))  # nothing is spelt with zeros
        letters = embedding(pad(words, (0, widest)), table)  # unlike an index, adds gradients in the same order always
        found = []
        for width, layer in zip(self.widths, self.filters, strict=True):
            windows = letters.unfold(1, width, 1).transpose(-1, -2).flatten(-2)  # (words, places, width * dim)
            answers = layer(windows).relu()
            begins = exists[:, : answers.shape[1]].unsqueeze(-1)
            found.append(answers.masked_fill(~begins, 0).amax(1))
        return torch.cat(found, -1)

    @torch.no_grad()
    def looked_up(self, words: Int[Tensor, "words k"]) -> Float[Tensor, "words d"]:
        """The same vectors where nothing is learned: what a filter says of each letter at each place is in a table.

        Numbers are added one by one, so that the vector of a word does not depend on the words beside it.

        Example:
            >>> cnn, words = CharacterCNN(10, dim=4, filters=6, widths=(2, 3)), torch.tensor([[1, 2, 3], [4, 0, 0]])
            >>> bool(torch.allclose(cnn.looked_up(words), cnn(words), atol=1e-6))
            True
        """
        places = words.shape[1]
        letters = pad(words, (0, max(self.widths)))
        behind = (words == 0).unsqueeze(-1)
        found = []
        for answers in self._answers.of(list(self.parameters()), self._tabulated):
            said = answers[0][letters[:, :places]]
            for r, more in enumerate(answers[1:], 1):
                said += more[letters[:, r : r + places]]
            found.append(said.masked_fill_(behind, 0).amax(1).clamp_(min=0))
        return torch.cat(found, -1)

    def _tabulated(self) -> list[list[Float[Tensor, "letters filters"]]]:
        """For each width, and each letter that a filter sees, its answer to that letter; the first has the bias."""
        tables = []
        for width, layer in zip(self.widths, self.filters, strict=True):
            assert isinstance(layer, nn.Linear)
            answers = [self.table @ part.t() for part in layer.weight.chunk(width, 1)]
            for answer in answers:
                answer[0] = 0  # nothing is spelt with zeros
            answers[0] += layer.bias
            tables.append(answers)
        return tables

    def of_forms(
        self, forms: Sequence[str], letters_of: Callable[[Sequence[str]], Int[Tensor, "words k"]]
    ) -> tuple[Float[Tensor, "known d"], list[int]]:
        """The vectors of all words met so far, and where among them those of some words stand.

        A vector depends on the word alone: it is made when the word is first met, and kept as long as the parameters
        stay as they are.

        Args:
            forms: The words.
            letters_of: Gives the letters of words.

        Example:
            >>> cnn = CharacterCNN(5, dim=4, filters=6, widths=(2,))
            >>> vectors, places = cnn.of_forms("abba", lambda new: torch.tensor([[1 + ord(x) - ord("a")] for x in new]))
            >>> vectors.shape, places                                         # the first is the vector of no word
            (torch.Size([3, 6]), [1, 2, 2, 1])
        """
        with _MEETING:
            known = self._known.of(list(self.parameters()), lambda: _Known(self.table.new_zeros(1, self.outputs)))
            if len(known.place) > _MOST_WORDS:
                known.place.clear()
                known.vectors = known.vectors[:1]
            new = [form for form in dict.fromkeys(forms) if form not in known.place]
            if new:
                known.place.update(zip(new, range(len(known.vectors), len(known.vectors) + len(new)), strict=True))
                known.vectors = torch.cat((known.vectors, self.looked_up(letters_of(new))))
            return known.vectors, list(map(known.place.__getitem__, forms))


class _Known:
    """The vectors of words, the first of no word, and the place of each word among them."""

    def __init__(self, vectors: Float[Tensor, "known d"]) -> None:
        self.vectors, self.place = vectors, dict[str, int]()


_LETTER_DIM, _WIDTHS = 24, (2, 3, 4)
"""How letters are read, which hardly matters: their vectors, and how many of them a filter sees."""


class BiLSTMSettings(EncoderSettings):
    """Embeddings and BiLSTM (paper-wide defaults: 100-dimensional words, two layers of 200).

    Attributes:
        interleaved: Whether the second layer reads both directions of the first; the release runs two independent
            stacks.
        word_dropout: $\\alpha$: a word becomes unknown with probability $\\alpha/(\\alpha+\\text{count})$.
        drop_all: Whether the lemma and the tag of a dropped word go with it.
        lemma_from_form: Whether the lemma table is indexed by the word form.
        dropout: Share of units left out of the inputs and of the states, one mask a sentence.
        input_dropout: Share of units left out of each token's vector.
        layers: Layers of the BiLSTM; with 0 there is none, and words meet only through a structure.
        vectors: Pretrained word vectors as GloVe text, plain or gzip; those of `data.vectors` if empty.
        fixed_vectors: Whether pretrained word vectors stay as they are; other words are learned.
        character_dim: How long a vector each word gets for its spelling, upper and lower case told apart, so that words
            which training never saw are not all alike; 0 for none.

    Example:
        >>> BiLSTMSettings(hidden=64, layers=1).word_dim
        100
    """

    kind: str = "bilstm"
    word_dim: Size = 100
    lemma_dim: OptionalSize = 50
    tag_dim: OptionalSize = 50
    hidden: Size = 200
    layers: Layers = 2
    interleaved: bool = False
    word_dropout: Annotated[float, Field(ge=0)] = 0.25
    drop_all: bool = False
    lemma_from_form: bool = False
    dropout: Rate = 0.0
    input_dropout: Rate = 0.0
    vectors: str = ""
    fixed_vectors: bool = False
    character_dim: Annotated[OptionalSize, Field(multiple_of=3)] = 0

    @property
    def keeps_vectors(self) -> bool:
        """Whether they are fixed."""
        return self.fixed_vectors

    @property
    def vectors_file(self) -> str:
        """Its own, or those of all."""
        return self.vectors


@final
@ENCODERS.register("bilstm")
class BiLSTMEncoder(AbstractEncoder):
    """Embeddings and BiLSTM over a batch; the states of the root and the words.

    Args:
        settings: Sizes and dropout.
        vocab: The indices.
        vectors: Pretrained word vectors in the vocabulary's order.

    Example:
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.data.sentence import Sentence
        >>> rain = Sentence(("Rain", "fell"))
        >>> vocab = Vocab.of([rain])
        >>> BiLSTMEncoder(BiLSTMSettings(hidden=8), vocab)(collate([encode(rain, vocab)])).shape    # with the root
        torch.Size([1, 3, 16])
    """

    Settings = BiLSTMSettings
    by_kernels = True

    def __init__(self, settings: BiLSTMSettings, vocab: Vocab, vectors: Float[Tensor, "words d"] | None = None) -> None:
        super().__init__(settings, vocab, vectors)
        lemmas = len(vocab.words) if settings.lemma_from_form else len(vocab.lemmas)
        self.lemma_from_form = settings.lemma_from_form
        dims = (settings.word_dim, settings.lemma_dim, settings.tag_dim)
        if vectors is not None and vectors.shape[1] != settings.word_dim:
            raise ValueError(
                f"the word vectors have {vectors.shape[1]} dimensions and encoder.word_dim is {settings.word_dim}; "
                f"make them equal, or leave {'encoder' if settings.vectors else 'data'}.vectors empty."
            )
        self.embedding = TokenEmbedding(
            (len(vocab.words), lemmas, len(vocab.tags)),
            dims,
            torch.tensor(vocab.counts),
            settings.word_dropout,
            settings.drop_all,
            vectors,
            settings.fixed_vectors,
        )
        self._settings = settings
        read = {"lemmas": settings.lemma_dim and not settings.lemma_from_form, "tags": settings.tag_dim}
        self.columns = [name for name, is_read in read.items() if is_read]
        self.is_noisy = any((settings.word_dropout, settings.dropout, settings.input_dropout))
        characters = settings.character_dim
        self.spelling = CharacterCNN(LETTERS, _LETTER_DIM, characters // len(_WIDTHS), _WIDTHS) if characters else None
        self.inputs = sum(dims) + characters
        self.lstm = self.branch()
        self.outputs = self.lstm.outputs

    def forward(self, batch: Batch, *, noisy: bool = True) -> Float[Tensor, "batch n d"]:
        """States of positions 0 to n.

        Args:
            batch: The sentences.
            noisy: Whether dropout applies, if the batch has seeds at all.
        """
        if self.lstm.reads_whole(self.embedding.chance) and (batch.seeds is None or not noisy):
            return self.lstm.read(*self.distinct_inputs(batch), batch.lengths + 2)[:, :-1].contiguous()
        return self._read(self.lstm, self.inputs_of(batch, noisy=noisy), batch, noisy)

    def branch(self) -> BiLSTM:
        """A second BiLSTM."""
        settings = self._settings
        return BiLSTM(
            self.inputs,
            settings.hidden,
            settings.layers,
            interleaved=settings.interleaved,
            dropout=settings.dropout,
            input_dropout=settings.input_dropout,
        )

    def states_of(
        self, branches: Sequence[nn.Module], batch: Batch, *, noisy: bool = True
    ) -> list[Float[Tensor, "batch n d"]]:
        """States by its own BiLSTM, and by each of the others; words are looked up once."""
        if not branches:
            return [self.states(batch, noisy=noisy)]
        inputs = self.inputs_of(batch, noisy=noisy)
        return [self._read(lstm, inputs, batch, noisy) for lstm in (self.lstm, *branches)]

    def distinct_inputs(self, batch: Batch) -> tuple[Float[Tensor, "rows e"], Int[Tensor, "batch n+1"]]:
        """The inputs that differ, each once, and which of them stands where; found once if the batch keeps it."""
        if batch.kept is None:
            return self._distinct(batch)
        if (self, "distinct inputs") not in batch.kept:
            batch.kept[self, "distinct inputs"] = self._distinct(batch)
        return batch.kept[self, "distinct inputs"]

    @torch.no_grad()
    def _distinct(self, batch: Batch) -> tuple[Float[Tensor, "rows e"], Int[Tensor, "batch n+1"]]:
        lemmas = batch.words if self.lemma_from_form else batch.lemmas
        parts = [batch.words, lemmas, batch.tags]
        spellings = None
        if self.spelling is not None:
            spellings, places = self.spelling.of_forms([form for forms in batch.forms for form in forms], letters_of)
            spelt = torch.zeros_like(batch.words)
            place = torch.arange(batch.words.shape[1])
            spelt[(place > 0) & (place <= batch.lengths.unsqueeze(-1))] = torch.tensor(places, dtype=torch.int64)
            parts.append(spelt)
        key = torch.zeros_like(batch.words)
        for part in parts:
            key = key * (part.max() + 1) + part
        distinct, place = key.unique(return_inverse=True)
        some = torch.empty_like(distinct).scatter_(0, place.flatten(), torch.arange(place.numel()))
        words, lemmas, tags, *spelt = (part.flatten()[some].unsqueeze(0) for part in parts)
        inputs = self.embedding(words, lemmas, tags)[0]
        if spellings is not None:
            inputs = torch.cat((inputs, spellings.index_select(0, spelt[0][0])), -1)
        return inputs, place

    def inputs_of(self, batch: Batch, *, noisy: bool = False) -> Float[Tensor, "batch n+1 e"]:
        """Word, lemma, tag and spelling vectors, one after another."""
        lemmas = batch.words if self.lemma_from_form else batch.lemmas
        inputs = self.embedding(batch.words, lemmas, batch.tags, batch.seeds if noisy else None)
        if self.spelling is not None:
            letters, place = batch.spelling
            vectors = self.spelling(letters).index_select(0, place.flatten())
            inputs = torch.cat((inputs, vectors.view(*place.shape, -1)), -1)
        return inputs

    def _read(self, lstm: nn.Module, inputs: Tensor, batch: Batch, noisy: bool) -> Float[Tensor, "batch n d"]:
        return lstm(inputs, batch.lengths + 2, batch.seeds if noisy else None)[:, :-1]
