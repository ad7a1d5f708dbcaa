"""The sentence classifier: what it adds up, what it drops, what it refuses."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spigot_nlp.annotations import Classes
from spigot_nlp.batches import Batch, collate, encode
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders import BiLSTMEncoder, BiLSTMSettings
from spigot_nlp.stages import ClassStage, Surroundings
from spigot_nlp.stages.classes import ClassSettings
from spigot_nlp.toml import merged
from spigot_nlp.training.optimiser import ModelOptimiser
from spigot_nlp.values import Optimiser
from spigot_nlp.wires.readers import HeadReader, Roles, RoundReader, Rounds
from tests.spigot_nlp.parsing import classification, reviews, sentences

TEXT = [*reviews(5), replace(sentences(1)[0].without_annotation(), forms=("cat",), lemmas=None, tags=None, label=1)]
VOCAB = Vocab.of([*TEXT, *sentences(4)])
LABELS = Classes.learn("label", TEXT, None)
ROLES = 5
SETTINGS = classification("bilstm").stages["classifier"]
assert isinstance(SETTINGS, ClassSettings)


class Given:
    """A stage whose graphs the test gives: unlabelled arcs first, then one channel for each role."""

    name, arc_labels, choices = "inside", ROLES, None

    def arcs(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return z[..., 0], z[..., 1:]


def fresh(reader: str = "", labels: Classes = LABELS, vectors: Tensor | None = None, **overrides: Any) -> ClassStage:
    """A classifier with parameters as training starts with; without a reader it reads words alone."""
    wire = {"stage": "inside", "as": {"name": reader, **overrides.pop("options", {})}}
    table = merged(SETTINGS.model_dump(), overrides)
    settings = ClassSettings.model_validate({**table, "reads": (wire,) if reader else ()})
    stages: Any = {"inside": Given()}
    return ClassStage(
        "classifier", settings, labels, Surroundings(VOCAB, None if vectors is None else {"": vectors}, stages=stages)
    )


def model(reader: str = "", **overrides: Any) -> ClassStage:
    found = fresh(reader, **overrides).double()
    for parameter in found.parameters():  # biases too, which start at zero
        nn.init.normal_(parameter, std=0.5)
    return found


def batch_of(chosen: list[Sentence], seeds: list[int] | None = None, labels: Classes = LABELS) -> Batch:
    own = {"classifier": labels}
    return collate([encode(sentence, VOCAB, own) for sentence in chosen], own, seeds)


def scores(classifier: ClassStage, batch: Batch, *read: Tensor) -> Tensor:
    """The scores of the classes, with dropout if the batch has seeds."""
    return classifier._scores(batch, read, noisy=True)


def head_reader(classifier: ClassStage) -> HeadReader:
    (reader,) = classifier.readers
    assert isinstance(reader, Roles)
    return reader.read


def graphs(batch: Batch, roles: int = ROLES, seed: int = 0) -> Tensor:
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
    return torch.cat((arcs.unsqueeze(-1), labelled), -1)


def decide(classifier: ClassStage, sentence: Tensor) -> Tensor:
    """logits = W2 ReLU(W1 sentence + b1) + b2."""
    hidden = (classifier.hidden.weight @ sentence + classifier.hidden.bias).clamp(min=0)
    return classifier.out.weight @ hidden + classifier.out.bias


def test_the_baseline_adds_up_the_states_of_root_and_words() -> None:
    classifier, batch = model(), batch_of(TEXT)
    states, found = classifier.encoder(batch), scores(classifier, batch)
    for b, length in enumerate(batch.lengths.tolist()):
        total = sum((states[b, i] for i in range(length + 1)), torch.zeros(classifier.encoder.outputs))
        torch.testing.assert_close(found[b], decide(classifier, total))
    assert len(classifier.readers) == 0


def test_the_end_symbol_is_read_by_the_lstm_but_not_added() -> None:
    classifier, batch = model(), batch_of(TEXT[:1])
    assert batch.words[0, -1] == 2
    other = replace(batch, words=batch.words.clone())
    other.words[0, -1] = 0
    assert not torch.allclose(scores(classifier, batch), scores(classifier, other))
    alone = model(encoder={"layers": 0})
    torch.testing.assert_close(scores(alone, batch), scores(alone, other))


def test_with_a_graph_it_adds_up_features_of_root_and_words() -> None:
    """Section 4.6 of the facts, from states to logits, in loops."""
    classifier, batch = model("roles"), batch_of(TEXT)
    reader = head_reader(classifier)
    assert reader.roles is not None
    assert reader.role is not None
    states, z = classifier.encoder(batch), graphs(batch)
    arcs, labelled = z[..., 0], z[..., 1:]
    found = scores(classifier, batch, z)
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
    classifier, batch = model("rounds", options={"rounds": 3}), batch_of(TEXT)
    z = graphs(batch)
    (reader,) = classifier.readers
    assert isinstance(reader, Rounds)
    assert isinstance(reader.read, RoundReader)
    assert reader.read.rounds == 3
    read = reader.read(classifier.encoder(batch), z[..., 0])[:, 0]
    found = scores(classifier, batch, z)
    for row, state in zip(found, read, strict=True):
        torch.testing.assert_close(row, decide(classifier, state))


@pytest.mark.parametrize("layers", [0, 1, 2])
@pytest.mark.parametrize("reader", ["", "roles", "rounds"])
@pytest.mark.parametrize("noisy", [False, True])
def test_padding_does_not_matter(reader: str, layers: int, noisy: bool) -> None:
    """Alone or in a batch with longer ones, with dropout of words, inputs, features and hidden units or without."""
    encoder = {"layers": layers, "word_dropout": 2.0, "dropout": 0.2}
    classifier = model(reader, encoder=encoder, dropout=0.4)
    seeds = [11, 12, 13, 14, 15, 16]
    batch = batch_of(TEXT, seeds if noisy else None)
    together = scores(classifier, batch, *([graphs(batch)] if reader else ()))
    assert len(set(batch.lengths.tolist())) > 2
    for k, sentence in enumerate(TEXT):
        alone = batch_of([sentence], seeds[k : k + 1] if noisy else None)
        torch.testing.assert_close(scores(classifier, alone, *([graphs(alone)] if reader else ()))[0], together[k])


def test_padding_gets_no_gradient() -> None:
    classifier, batch = model("roles"), batch_of(TEXT)
    z = graphs(batch).requires_grad_()
    scores(classifier, batch, z).sum().backward()
    assert z.grad is not None
    for b, length in enumerate(batch.lengths.tolist()):
        assert not z.grad[b, :, length + 1 :].any()
        inside = z.grad[b, : length + 1, : length + 1]
        assert inside[..., 0].any()
        assert inside[..., 1:].any()


def rates(classifier: ClassStage, batch: Batch) -> dict[str, float]:
    """The share of zeros in what the reader's features and the hidden units become."""
    seen: dict[str, Tensor] = {}
    hooks = [
        classifier.hidden.register_forward_pre_hook(lambda _, given: seen.update(sentence=given[0])),
        classifier.out.register_forward_pre_hook(lambda _, given: seen.update(hidden=given[0])),
    ]
    scores(classifier, batch, graphs(batch))
    for hook in hooks:
        hook.remove()
    return {name: float((value == 0).double().mean()) for name, value in seen.items()}


def test_dropout_acts_on_features_and_on_hidden_units_in_training_only() -> None:
    classifier = model("roles", mlp=200, dropout=0.4, encoder={"input_dropout": 0.0})
    reader = head_reader(classifier)
    with torch.no_grad():  # so that no ReLU is closed, and a feature is zero only where it was dropped
        reader.itself.bias.fill_(100.0)
        classifier.hidden.weight.fill_(0.01)
        classifier.hidden.bias.fill_(1.0)
    one = [Sentence((), label=0)] * 50  # of the root alone: one position, so a dropped feature leaves a zero sum
    assert rates(classifier, batch_of(one)) == {"sentence": 0, "hidden": 0}
    found = rates(classifier, batch_of(one, list(range(50))))
    assert found["sentence"] == pytest.approx(0.4, abs=0.02)
    assert found["hidden"] == pytest.approx(0.4, abs=0.02)


def test_every_position_drops_its_own_features() -> None:
    classifier = model("roles", mlp=200, dropout=0.4, encoder={"input_dropout": 0.0})
    reader = head_reader(classifier)
    with torch.no_grad():
        reader.itself.bias.fill_(100.0)
    length = 2
    batch = batch_of([Sentence(("cat",) * length, label=0)] * 20, list(range(20)))
    # A unit of the sum is zero where all positions dropped it; a mask for the whole sentence would leave 0.4.
    assert rates(classifier, batch)["sentence"] == pytest.approx(0.4 ** (length + 1), abs=0.02)


def test_input_dropout_is_that_of_tokens_and_only_in_training() -> None:
    classifier = model(dropout=0.0)
    assert isinstance(classifier.settings.encoder, BiLSTMSettings)
    assert classifier.settings.encoder.input_dropout == 0.5
    quiet, noisy = batch_of(TEXT), batch_of(TEXT, [1, 2, 3, 4, 5, 6])
    assert torch.equal(scores(classifier, quiet), scores(classifier, quiet))
    assert torch.equal(scores(classifier, noisy), scores(classifier, noisy))
    assert not torch.allclose(scores(classifier, quiet), scores(classifier, noisy))
    assert torch.equal(classifier.evidence(noisy).scores, scores(classifier, quiet))


def test_an_empty_sentence_is_the_root_alone() -> None:
    empty = Sentence((), label=0)
    for chosen in ([empty], [empty, TEXT[0]]):
        batch = batch_of(chosen)
        plain, reading, rounds = model(), model("roles"), model("rounds")
        torch.testing.assert_close(scores(plain, batch)[0], decide(plain, plain.encoder(batch)[0, 0]))
        for classifier in (reading, rounds):
            assert scores(classifier, batch, graphs(batch)).isfinite().all()
            classifier.loss(batch, [graphs(batch)]).sum().backward()


def test_the_loss_is_the_cross_entropy_of_each_sentence() -> None:
    chosen = reviews(12, classes=(4, 9, 5, 8, 6))
    labels = Classes.learn("label", chosen, None)
    classifier, batch = model(labels=labels), batch_of(chosen, labels=labels)
    found = classifier.evidence(batch)
    assert found.scores.shape == (12, len(labels.classes))
    assert found.mask.all()
    for row, value, sentence in zip(found.scores, classifier.loss(batch), chosen, strict=True):
        assert sentence.label is not None
        expected = row.exp().sum().log() - row[labels.classes.index(sentence.label)]
        torch.testing.assert_close(value, expected)


def test_what_it_cannot_learn_from_is_refused() -> None:
    for labels in ((), (3,)):
        with pytest.raises(ValueError, match=rf"have {len(labels)} different labels; .* needs two or more"):
            fresh(labels=Classes("label", labels))
    classifier, bare = model(), batch_of([TEXT[0].without_annotation()])
    with pytest.raises(ValueError, match="The loss of classifier needs classes, and this batch has none"):
        classifier.loss(bare)


@pytest.mark.parametrize("reader", ["", "roles"])
def test_fixed_vectors_never_move_while_other_words_do(reader: str) -> None:
    """Three updates: rows with a vector are as given, those without one that were read are not."""
    vectors = torch.zeros(len(VOCAB.words), 8)
    known = [VOCAB.word_index[word] for word in ("cat", "sees", "the")]
    vectors[known] = torch.randn(3, 8)
    torch.manual_seed(1)
    classifier = fresh(reader, vectors=vectors)
    assert isinstance(classifier.encoder, BiLSTMEncoder)
    batch = batch_of(TEXT)
    table = classifier.encoder.embedding.tables[0].weight
    assert isinstance(table, Tensor)
    before = table.detach().clone()
    assert torch.equal(before[known], vectors[known])
    optimiser = ModelOptimiser(classifier, Optimiser(learning_rate=0.05))
    optimiser.set_epoch(0)
    for step in range(3):
        optimiser.zero_grad()
        noisy = replace(batch, seeds=torch.arange(6) + 10 * step)
        classifier.loss(noisy, [graphs(batch).float()] if reader else []).sum().backward()
        optimiser.step()
    read = set(batch.words.flatten().tolist())
    moved = {k for k in range(len(before)) if not torch.equal(table[k], before[k])}
    assert moved >= {k for k in read if k not in known and k != 0}
    assert not moved & set(known)
    assert set(known) & read


def test_vectors_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"have 5 dimensions and encoder\.word_dim is 8"):
        fresh(vectors=torch.ones(len(VOCAB.words), 5))


def test_it_starts_as_the_parsers_do() -> None:
    classifier = fresh("roles", mlp=50)
    for layer in (classifier.hidden, classifier.out):
        bound = (6 / sum(layer.weight.shape)) ** 0.5
        assert 0.8 * bound < float(layer.weight.detach().abs().max()) <= bound
        assert not layer.bias.any()


def test_probabilities_stand_beside_the_class_under_its_name() -> None:
    for name, beside in (("label", "probabilities"), ("mood", "mood.probabilities")):
        classifier = model(labels=Classes(name, (0, 1)))
        evidence = classifier.evidence(batch_of(TEXT))
        z = classifier.structure.argmax(*evidence)
        for row, found in zip(evidence.scores, classifier.found(z, evidence, [1] * len(TEXT)), strict=True):
            assert set(found) == {name, beside}
            assert found[name] == int(row.argmax())
            assert found[beside] == pytest.approx(row.softmax(-1).tolist())
        assert classifier.found(z, None, [1] * len(TEXT))[0].keys() == {name}
