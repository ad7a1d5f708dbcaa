"""The sentence classifier: what it adds up, what it drops, what it refuses."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spigot import config
from spigot.data.batch import Batch
from spigot.data.sentence import Sentence
from spigot.data.vocab import Vocab
from spigot.models.classifier import Classifier
from spigot.nn.readers import HeadReader, RoundReader
from spigot.training.optimiser import ModelOptimiser
from tests.parsing import batch_of, classification, reviews, sentences

TEXT = [*reviews(5), replace(sentences(1)[0].without_annotation(), forms=("cat",), lemmas=None, tags=None, label=1)]
VOCAB = Vocab.of([*TEXT, *sentences(4)])
ROLES = len(VOCAB.roles)


def model(roles: int | None = None, **overrides: Any) -> Classifier:
    settings = classification(**{f"classifier__{name}": value for name, value in overrides.items()}).classifier
    found = Classifier(settings, VOCAB, roles=roles).double()
    for parameter in found.parameters():  # biases too, which start at zero
        nn.init.normal_(parameter, std=0.5)
    return found


def graphs(batch: Batch, roles: int = ROLES, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Arcs and labelled arcs between any positions of each sentence, the root among the heads; same in any batch."""
    n = batch.size
    arcs, labelled = torch.zeros(len(batch), n, n).double(), torch.zeros(len(batch), n, n, roles).double()
    for b, length in enumerate(batch.lengths.tolist()):
        noise = torch.Generator().manual_seed(seed + length)
        inside = slice(0, length + 1)
        on = torch.rand(length + 1, length + 1, generator=noise) < 0.5
        on[:, 0] = False
        arcs[b, inside, inside] = on.double()
        role = torch.randint(roles, on.shape, generator=noise)
        labelled[b, inside, inside] = torch.eye(roles).double()[role] * on.unsqueeze(-1)
    return arcs, labelled


def decide(classifier: Classifier, sentence: Tensor) -> Tensor:
    """logits = W2 ReLU(W1 sentence + b1) + b2."""
    hidden = (classifier.hidden.weight @ sentence + classifier.hidden.bias).clamp(min=0)
    return classifier.out.weight @ hidden + classifier.out.bias


def test_the_baseline_adds_up_the_states_of_root_and_words() -> None:
    classifier, batch = model(), batch_of(TEXT, VOCAB)
    states, found = classifier.encoder(batch), classifier(batch)
    for b, length in enumerate(batch.lengths.tolist()):
        total = sum((states[b, i] for i in range(length + 1)), torch.zeros(classifier.encoder.outputs))
        torch.testing.assert_close(found[b], decide(classifier, total))
    assert classifier.reader is None


def test_the_end_symbol_is_read_by_the_lstm_but_not_added() -> None:
    classifier, batch = model(), batch_of(TEXT[:1], VOCAB)
    assert batch.words[0, -1] == 2
    other = replace(batch, words=batch.words.clone())
    other.words[0, -1] = 0
    assert not torch.allclose(classifier(batch), classifier(other))
    alone = model(encoder={**classification().classifier.encoder.model_dump(), "layers": 0})
    torch.testing.assert_close(alone(batch), alone(other))


def test_with_a_graph_it_adds_up_features_of_root_and_words() -> None:
    """Section 4.6 of the facts, from states to logits, in loops."""
    classifier, batch = model(ROLES), batch_of(TEXT, VOCAB)
    reader = classifier.reader
    assert isinstance(reader, HeadReader)
    assert reader.roles is not None
    assert reader.role is not None
    states, (arcs, labelled) = classifier.encoder(batch), graphs(batch)
    found = classifier(batch, arcs, labelled)
    for b, length in enumerate(batch.lengths.tolist()):
        total = torch.zeros(classifier.settings.mlp).double()
        for i in range(length + 1):
            heads = [p for p in range(length + 1) if arcs[b, p, i]]
            inside = torch.zeros(classifier.settings.mlp).double()
            for p in heads:
                inside += reader.head.weight @ states[b, p]
                (role,) = (l for l in range(ROLES) if labelled[b, p, i, l])
                inside += reader.role.weight @ reader.roles[role]
            itself = reader.itself.bias + reader.itself.weight @ states[b, i]
            total += (itself + inside / max(1, len(heads))).clamp(min=0)
        torch.testing.assert_close(found[b], decide(classifier, total))
    assert arcs[:, 0].any()


def test_in_rounds_the_root_decides() -> None:
    classifier, batch = model(ROLES, reader="rounds", rounds=3), batch_of(TEXT, VOCAB)
    arcs, labelled = graphs(batch)
    assert isinstance(classifier.reader, RoundReader)
    assert classifier.reader.rounds == 3
    read = classifier.reader(classifier.encoder(batch), arcs)[:, 0]
    found = classifier(batch, arcs, labelled)
    for row, state in zip(found, read, strict=True):
        torch.testing.assert_close(row, decide(classifier, state))


@pytest.mark.parametrize("layers", [0, 1, 2])
@pytest.mark.parametrize("reader", ["none", "heads", "rounds"])
@pytest.mark.parametrize("noisy", [False, True])
def test_padding_does_not_matter(reader: str, layers: int, noisy: bool) -> None:
    """Alone or in a batch with longer ones, with dropout of words, inputs, features and hidden units or without."""
    encoder = {
        **classification().classifier.encoder.model_dump(),
        "layers": layers,
        "word_dropout": 2.0,
        "dropout": 0.2,
    }
    roles = None if reader == "none" else ROLES
    classifier = model(roles, encoder=encoder, dropout=0.4, **({} if reader == "none" else {"reader": reader}))
    seeds = [11, 12, 13, 14, 15, 16]
    batch = batch_of(TEXT, VOCAB, seeds if noisy else None)
    together = classifier(batch, *(graphs(batch) if roles else ()))
    assert len(set(batch.lengths.tolist())) > 2
    for k, sentence in enumerate(TEXT):
        alone = batch_of([sentence], VOCAB, seeds[k : k + 1] if noisy else None)
        torch.testing.assert_close(classifier(alone, *(graphs(alone) if roles else ()))[0], together[k])


def test_padding_gets_no_gradient() -> None:
    classifier, batch = model(ROLES), batch_of(TEXT, VOCAB)
    arcs, labelled = (part.requires_grad_() for part in graphs(batch))
    classifier(batch, arcs, labelled).sum().backward()
    assert arcs.grad is not None
    assert labelled.grad is not None
    for b, length in enumerate(batch.lengths.tolist()):
        assert not arcs.grad[b, :, length + 1 :].any()
        assert not labelled.grad[b, :, length + 1 :].any()
        assert arcs.grad[b, : length + 1, : length + 1].any()


def rates(classifier: Classifier, batch: Batch) -> dict[str, float]:
    """The share of zeros in what the reader's features and the hidden units become."""
    seen: dict[str, Tensor] = {}
    hooks = [
        classifier.hidden.register_forward_pre_hook(lambda _, given: seen.update(sentence=given[0])),
        classifier.out.register_forward_pre_hook(lambda _, given: seen.update(hidden=given[0])),
    ]
    classifier(batch, *graphs(batch))
    for hook in hooks:
        hook.remove()
    return {name: float((value == 0).double().mean()) for name, value in seen.items()}


def test_dropout_acts_on_features_and_on_hidden_units_in_training_only() -> None:
    quiet = {**classification().classifier.encoder.model_dump(), "input_dropout": 0.0}
    classifier = model(ROLES, mlp=200, dropout=0.4, encoder=quiet)
    reader = classifier.reader
    assert isinstance(reader, HeadReader)
    with torch.no_grad():  # so that no ReLU is closed, and a feature is zero only where it was dropped
        reader.itself.bias.fill_(100.0)
        classifier.hidden.weight.fill_(0.01)
        classifier.hidden.bias.fill_(1.0)
    one = [Sentence((), label=0)] * 50  # of the root alone: one position, so a dropped feature leaves a zero sum
    assert rates(classifier, batch_of(one, VOCAB)) == {"sentence": 0, "hidden": 0}
    found = rates(classifier, batch_of(one, VOCAB, list(range(50))))
    assert found["sentence"] == pytest.approx(0.4, abs=0.02)
    assert found["hidden"] == pytest.approx(0.4, abs=0.02)


def test_every_position_drops_its_own_features() -> None:
    quiet = {**classification().classifier.encoder.model_dump(), "input_dropout": 0.0}
    classifier = model(ROLES, mlp=200, dropout=0.4, encoder=quiet)
    reader = classifier.reader
    assert isinstance(reader, HeadReader)
    with torch.no_grad():
        reader.itself.bias.fill_(100.0)
    length = 2
    batch = batch_of([Sentence(("cat",) * length, label=0)] * 20, VOCAB, list(range(20)))
    # A unit of the sum is zero where all positions dropped it; a mask for the whole sentence would leave 0.4.
    assert rates(classifier, batch)["sentence"] == pytest.approx(0.4 ** (length + 1), abs=0.02)


def test_input_dropout_is_that_of_tokens_and_only_in_training() -> None:
    classifier = model(dropout=0.0)
    assert classifier.settings.encoder.input_dropout == 0.5
    quiet, noisy = batch_of(TEXT, VOCAB), batch_of(TEXT, VOCAB, [1, 2, 3, 4, 5, 6])
    assert torch.equal(classifier(quiet), classifier(quiet))
    assert torch.equal(classifier(noisy), classifier(noisy))
    assert not torch.allclose(classifier(quiet), classifier(noisy))


def test_an_empty_sentence_is_the_root_alone() -> None:
    empty = Sentence((), label=0)
    for chosen in ([empty], [empty, TEXT[0]]):
        batch = batch_of(chosen, VOCAB)
        plain, reading, rounds = model(), model(ROLES), model(ROLES, reader="rounds")
        torch.testing.assert_close(plain(batch)[0], decide(plain, plain.encoder(batch)[0, 0]))
        for classifier in (reading, rounds):
            found = classifier(batch, *graphs(batch))
            assert found.isfinite().all()
            classifier.loss(batch, found).sum().backward()


def test_the_loss_is_the_cross_entropy_of_each_sentence() -> None:
    vocab = Vocab.of(reviews(12, classes=(4, 9, 5, 8, 6)))
    chosen = reviews(12, classes=(4, 9, 5, 8, 6))
    classifier = Classifier(classification().classifier, vocab).double()
    batch = batch_of(chosen, vocab)
    scores = classifier(batch)
    assert scores.shape == (12, len(vocab.classes))
    for row, value, sentence in zip(scores, classifier.loss(batch, scores), chosen, strict=True):
        assert sentence.label is not None
        expected = row.exp().sum().log() - row[vocab.classes.index(sentence.label)]
        torch.testing.assert_close(value, expected)


def test_what_it_cannot_learn_from_is_refused() -> None:
    for labels in ([], [3, 3]):
        vocab = Vocab.of([Sentence(("cat",), label=label) for label in labels])
        with pytest.raises(ValueError, match=rf"have {len(set(labels))} different labels; .* needs two or more"):
            Classifier(classification().classifier, vocab)
    classifier, bare = model(), batch_of([TEXT[0].without_annotation()], VOCAB)
    with pytest.raises(ValueError, match="needs labels, and this batch has none"):
        classifier.loss(bare, classifier(bare))


@pytest.mark.parametrize("roles", [None, ROLES])
def test_fixed_vectors_never_move_while_other_words_do(roles: int | None) -> None:
    """Three updates: rows with a vector are as given, those without one that were read are not."""
    vectors = torch.zeros(len(VOCAB.words), 8)
    known = [VOCAB.word_index[word] for word in ("cat", "sees", "the")]
    vectors[known] = torch.randn(3, 8)
    torch.manual_seed(1)
    settings = classification().classifier
    classifier = Classifier(settings, VOCAB, vectors, roles=roles)
    batch = batch_of(TEXT, VOCAB)
    table = classifier.encoder.embedding.tables[0].weight
    assert isinstance(table, Tensor)
    before = table.detach().clone()
    assert torch.equal(before[known], vectors[known])
    optimiser = ModelOptimiser(classifier, config.Optimiser(learning_rate=0.05))
    optimiser.set_epoch(0)
    for step in range(3):
        optimiser.zero_grad()
        noisy = replace(batch, seeds=torch.arange(6) + 10 * step)
        arcs = (part.float() for part in graphs(batch)) if roles else ()
        classifier.loss(noisy, classifier(noisy, *arcs)).sum().backward()
        optimiser.step()
    read = set(batch.words.flatten().tolist())
    moved = {k for k in range(len(before)) if not torch.equal(table[k], before[k])}
    assert moved >= {k for k in read if k not in known and k != 0}
    assert not moved & set(known)
    assert set(known) & read


def test_vectors_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"have 5 dimensions and encoder\.word_dim is 8"):
        Classifier(classification().classifier, VOCAB, torch.ones(len(VOCAB.words), 5))


def test_it_starts_as_the_parsers_do() -> None:
    classifier = Classifier(classification(classifier__mlp=50).classifier, VOCAB, roles=3)
    for layer in (classifier.hidden, classifier.out):
        bound = (6 / sum(layer.weight.shape)) ** 0.5
        assert 0.8 * bound < float(layer.weight.detach().abs().max()) <= bound
        assert not layer.bias.any()
