"""The BiLSTM against torch's own, and the embeddings against their definition."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from spigot_nlp.config import Optimiser
from spigot_nlp.nn.encoder import END, ROOT, UNKNOWN, BiLSTM, TokenEmbedding
from spigot_nlp.training.optimiser import ModelOptimiser

LENGTHS = torch.tensor([7, 1, 4, 6])


def inputs(dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(4, 7, 5, dtype=dtype)


def torch_twin(ours: BiLSTM, layers: int) -> nn.LSTM:
    """torch's bidirectional LSTM with the same weights; its layers are interleaved."""
    hidden = ours.forward_layers[0].hidden_size
    twin = nn.LSTM(5, hidden, layers, bidirectional=True, batch_first=True).double()
    assert isinstance(hidden, int)
    with torch.no_grad():
        for k in range(layers):
            for suffix, direction in (("", ours.forward_layers[k]), ("_reverse", ours.backward_layers[k])):
                for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    getattr(twin, f"{kind}_l{k}{suffix}").copy_(getattr(direction, f"{kind}_l0"))
    return twin


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_interleaved_layers_are_torch_on_packed_sequences(layers: int) -> None:
    ours = BiLSTM(5, 6, layers, interleaved=True).double()
    states = inputs()
    packed = pack_padded_sequence(states, LENGTHS, batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(torch_twin(ours, layers)(packed)[0], batch_first=True)
    found = ours(states, LENGTHS)
    for k, length in enumerate(LENGTHS.tolist()):
        torch.testing.assert_close(found[k, :length], expected[k, :length])


def test_independent_stacks_are_two_lstms_on_single_sentences() -> None:
    ours = BiLSTM(5, 6, 2).double()
    states = inputs()
    found = ours(states, LENGTHS)
    right, left = ours.forward_layers[0], ours.backward_layers[0]
    for k, length in enumerate(LENGTHS.tolist()):
        alone = states[k, :length].unsqueeze(1)
        expected = torch.cat((right(alone)[0], left(alone.flip(0))[0].flip(0)), -1).squeeze(1)
        torch.testing.assert_close(found[k, :length], expected)


def test_one_layer_is_the_same_either_way() -> None:
    ours = BiLSTM(5, 6, 1).double()
    twin = torch_twin(ours, 1)
    states = inputs()
    for k, length in enumerate(LENGTHS.tolist()):
        torch.testing.assert_close(ours(states, LENGTHS)[k, :length], twin(states[k : k + 1, :length])[0][0])


@pytest.mark.parametrize("interleaved", [False, True])
def test_padding_reaches_neither_states_nor_gradients(interleaved: bool) -> None:
    ours = BiLSTM(5, 6, 2, interleaved=interleaved, dropout=0.3).double()
    inside = (torch.arange(7) < LENGTHS.unsqueeze(-1)).unsqueeze(-1)
    seeds = torch.arange(4)
    states = inputs().requires_grad_()
    found = ours(states, LENGTHS, seeds) * inside
    found.sum().backward()
    assert states.grad is not None
    assert not states.grad[~inside.expand_as(states)].any()
    other = torch.where(inside, states.detach(), 100.0)
    torch.testing.assert_close(ours(other, LENGTHS, seeds) * inside, found)


def test_dropout_of_a_sentence_does_not_depend_on_its_batch() -> None:
    ours = BiLSTM(5, 6, 2, dropout=0.5).double()
    states, seeds = inputs(), torch.tensor([5, 6, 7, 8])
    together = ours(states, LENGTHS, seeds)
    alone = ours(states[2:3, :4], LENGTHS[2:3], seeds[2:3])
    torch.testing.assert_close(together[2, :4], alone[0])
    assert not torch.allclose(together, ours(states, LENGTHS))


def test_without_layers_the_inputs_are_the_states() -> None:
    ours = BiLSTM(5, 6, layers=0)
    states = inputs(torch.float32)
    assert torch.equal(ours(states, LENGTHS), states)
    assert ours.outputs == 5
    assert not list(ours.parameters())
    assert (BiLSTM(5, 6, 1).outputs, BiLSTM(5, 6, 2, interleaved=True).outputs) == (12, 12)


def test_input_dropout_leaves_out_units_of_each_position_on_its_own() -> None:
    ours = BiLSTM(5, 6, layers=0, input_dropout=0.5)
    states, seeds = torch.ones(4, 7, 5), torch.tensor([5, 6, 7, 8])
    found = ours(states, LENGTHS, seeds)
    assert set(found.unique().tolist()) == {0.0, 2.0}
    assert (found[:, :1] != found).any()  # one mask for the whole sentence would be locked dropout
    assert torch.equal(ours(states[2:3, :4], LENGTHS[2:3], seeds[2:3])[0], found[2, :4])
    assert torch.equal(ours(states, LENGTHS), states)
    assert not torch.equal(ours(states, LENGTHS, seeds + 1), found)


def test_input_dropout_comes_before_the_layers_and_reaches_no_padding() -> None:
    ours = BiLSTM(5, 6, 1, input_dropout=0.5).double()
    plain = BiLSTM(5, 6, 1).double()
    plain.load_state_dict(ours.state_dict())
    states, seeds = inputs(), torch.arange(4)
    dropped = BiLSTM(5, 6, layers=0, input_dropout=0.5)(states, LENGTHS, seeds)
    torch.testing.assert_close(ours(states, LENGTHS, seeds), plain(dropped, LENGTHS))
    alone = ours(states[3:, :6], LENGTHS[3:], seeds[3:])
    torch.testing.assert_close(ours(states, LENGTHS, seeds)[3, :6], alone[0])


def test_forget_gates_start_open_and_other_biases_closed() -> None:
    for layers in (BiLSTM(5, 6, 2).forward_layers, BiLSTM(5, 6, 2, interleaved=True).backward_layers):
        for lstm in layers:
            assert isinstance(lstm, nn.LSTM)
            for k in range(lstm.num_layers):
                bias = getattr(lstm, f"bias_ih_l{k}") + getattr(lstm, f"bias_hh_l{k}")
                assert bias.tolist() == [0] * 6 + [1] * 6 + [0] * 12


def embedding(
    alpha: float = 0.25, *, drop_all: bool = False, counts: tuple[int, ...] = (0, 0, 0, 1, 3)
) -> TokenEmbedding:
    return TokenEmbedding((5, 5, 5), (3, 2, 2), torch.tensor(counts), alpha, drop_all)


def test_rows_are_looked_up_and_concatenated() -> None:
    embed = embedding()
    words, lemmas, tags = torch.tensor([[1, 3, 2]]), torch.tensor([[1, 4, 2]]), torch.tensor([[1, 0, 2]])
    tables = [table.weight for table in embed.tables]
    expected = torch.cat([tables[0][words], tables[1][lemmas], tables[2][tags]], -1)  # pyright: ignore
    assert torch.equal(embed(words, lemmas, tags), expected)


def test_words_are_dropped_at_the_rate_of_their_count() -> None:
    embed = embedding()
    words = torch.tensor([[ROOT, 3, 4, END]]).expand(8000, 4)
    unknown = embed.tables[0].weight[UNKNOWN]  # pyright: ignore[reportIndexIssue]
    found = embed(words, words, words, torch.arange(8000))
    dropped = (found[..., :3] == unknown).all(-1).float().mean(0)
    for rate, chance in zip(dropped.tolist(), (0, 0.25 / 1.25, 0.25 / 3.25, 0), strict=True):
        assert abs(rate - chance) <= 3.5 * math.sqrt(chance * (1 - chance) / 8000)
    lemmas = embed.tables[1].weight[words]  # pyright: ignore[reportIndexIssue]
    assert torch.equal(found[..., 3:5], lemmas)


def test_a_dropped_word_may_take_lemma_and_tag_along() -> None:
    words = torch.full((50, 2), 3)
    embed = embedding(10.0, drop_all=True)
    found = embed(words, words, words, torch.arange(50))
    rows = {tuple(row) for row in found.flatten(0, 1).tolist()}
    both = [torch.cat([table.weight[k] for table in embed.tables]).tolist() for k in (UNKNOWN, 3)]  # pyright: ignore
    assert rows == {tuple(row) for row in both}


def test_nothing_is_dropped_without_seeds_or_alpha() -> None:
    words = torch.full((50, 2), 3)
    embed = embedding()
    assert len(embed(words, words, words).flatten(0, 1).unique(dim=0)) == 1
    embed = embedding(0.0)
    assert len(embed(words, words, words, torch.arange(50)).flatten(0, 1).unique(dim=0)) == 1
    assert not embed.chance.any()


def test_vectors_start_the_rows_that_have_one() -> None:
    vectors = torch.zeros(5, 3)
    vectors[3] = torch.tensor([1.0, 2.0, 3.0])
    embed = TokenEmbedding((5, 5, 5), (3, 0, 2), torch.zeros(5), 0.25, vectors=vectors)
    table = embed.tables[0].weight
    assert isinstance(table, Tensor)
    assert table[3].tolist() == [1, 2, 3]
    assert table[[0, 1, 2, 4]].abs().min() > 0
    assert table[[0, 1, 2, 4]].abs().max() <= 1  # uniform between -sqrt(3/3) and sqrt(3/3)
    assert embed(*[torch.zeros(1, 2, dtype=torch.int64)] * 3).shape == (1, 2, 5)


def test_only_rows_that_were_read_get_a_gradient() -> None:
    embed = embedding()
    ids = torch.tensor([[1, 4, 2]])
    embed(ids, ids, ids).sum().backward()
    gradient = embed.tables[0].weight.grad
    assert isinstance(gradient, Tensor)
    assert gradient.is_sparse
    assert sorted(gradient.coalesce().indices()[0].tolist()) == [1, 2, 4]


def with_vectors(fixed: bool) -> TokenEmbedding:
    """Words 3 and 5 have vectors, word 4 and the symbols have none."""
    vectors = torch.zeros(6, 3)
    vectors[3], vectors[5] = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0])
    return TokenEmbedding((6, 6, 6), (3, 2, 0), torch.ones(6), 0.0, vectors=vectors, fixed=fixed)


@pytest.mark.parametrize("fixed", [True, False])
def test_fixed_vectors_stay_and_all_other_words_move(fixed: bool) -> None:
    embed, layer = with_vectors(fixed), nn.Linear(5, 1)
    model = nn.ModuleList([embed, layer])
    optimiser = ModelOptimiser(model, Optimiser(learning_rate=0.1))
    optimiser.set_epoch(0)
    tables = [table.weight for table in embed.tables]
    before = [torch.clone(table) for table in tables]  # pyright: ignore
    for _ in range(3):
        optimiser.zero_grad()
        ids = torch.tensor([[ROOT, 3, 4, 3, END], [ROOT, 5, 0, 4, END]])
        layer(embed(ids, ids, ids)).square().sum().backward()
        assert optimiser.step() > 0
    moved = [torch.ne(table, old).any(-1).tolist() for table, old in zip(tables, before, strict=True)]  # pyright: ignore
    assert moved[0] == [True, True, True, not fixed, True, not fixed]
    assert all(moved[1])  # their lemmas are learned


def test_whoever_loads_the_model_knows_which_vectors_are_fixed() -> None:
    saved = with_vectors(fixed=True).state_dict()
    loaded = TokenEmbedding((6, 6, 6), (3, 2, 0), torch.ones(6), 0.0, fixed=True)
    assert loaded.learned is not None
    assert loaded.learned.all()
    loaded.load_state_dict(saved)
    assert loaded.learned.tolist() == [True, True, True, False, True, False]
    assert "learned" not in with_vectors(fixed=False).state_dict()


def test_a_fixed_vector_is_never_dropped_but_what_was_learned_is() -> None:
    """Word 3 has a vector, word 4 has none: both lose their lemma, and word 4 its own vector too."""
    vectors = torch.zeros(6, 3)
    vectors[3] = torch.tensor([1.0, 2.0, 3.0])
    embed = TokenEmbedding((6, 6, 6), (3, 2, 1), torch.zeros(6), alpha=1.0, vectors=vectors, fixed=True)
    ids, seeds = torch.tensor([[ROOT, 3, 4, END]]), torch.tensor([7])
    kept, dropped = embed(ids, ids, ids)[0], embed(ids, ids, ids, seeds)[0]  # all of them: no word was ever seen
    assert torch.equal(dropped[1, :3], vectors[3])
    assert torch.equal(dropped[2, :3], embed.tables[0].weight[0])  # pyright: ignore
    assert torch.equal(dropped[1:3, 3:5], embed.tables[1].weight[[0, 0]])  # pyright: ignore
    assert torch.equal(dropped[:, 5], kept[:, 5])  # tags stay
    assert torch.equal(dropped[[0, 3]], kept[[0, 3]])
