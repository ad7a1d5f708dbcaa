"""The syntactic parser: scores, losses and trees, against brute force over all trees."""

from typing import Any

import pytest
import torch

import spigot
from spigot import AbstractTrees
from spigot_nlp.annotations.trees import tree_heads, tree_parts
from spigot_nlp.stages import TreeStage
from tests.spigot import brute
from tests.spigot_nlp.parsing import batch_of, of_lengths, parser, sentences, syntax


def syntactic(**overrides: Any) -> tuple[TreeStage, AbstractTrees]:
    model = syntax(parser(**overrides))
    return model.double(), model.trees


WHOLE = parser()
BATCH = batch_of(of_lengths([3, 1, 4, 2]), WHOLE)
HEADS = BATCH.gold["syntax"]


@pytest.mark.parametrize("trees", ["projective", "nonprojective"])
@pytest.mark.parametrize("single_root", [True, False])
def test_hinge_is_the_margin_of_one_a_wrong_head(trees: str, single_root: bool) -> None:
    model, _ = syntactic(syntax__trees=trees, syntax__single_root=single_root)
    scores, _ = model.evidence(BATCH)
    losses = model.loss(BATCH)
    for k, length in enumerate(BATCH.lengths.tolist()):
        s, heads = scores[k, : length + 1, : length + 1], HEADS[k]
        mask = ~torch.eye(length + 1, dtype=torch.bool)
        mask[:, 0] = False
        values = []
        for z in brute.trees(mask, projective=trees == "projective", single_root=single_root):
            wrong = sum(int(z[:, j].argmax()) != int(heads[j]) for j in range(1, length + 1))
            values.append((s * z).sum() + wrong)
        gold = sum(s[heads[j], j] for j in range(1, length + 1))
        torch.testing.assert_close(losses[k], torch.stack(values).max() - gold)


def test_crf_loss_is_the_negative_log_likelihood() -> None:
    model, _ = syntactic(syntax__loss="crf")
    scores, _ = model.evidence(BATCH)
    losses = model.loss(BATCH)
    for k, length in enumerate(BATCH.lengths.tolist()):
        s = scores[k, : length + 1, : length + 1]
        mask = ~torch.eye(length + 1, dtype=torch.bool)
        mask[:, 0] = False
        log_z = brute.log_partition(brute.trees(mask, projective=True, single_root=True), s)
        gold = sum(s[HEADS[k, j], j] for j in range(1, length + 1))
        torch.testing.assert_close(losses[k], log_z - gold)


@pytest.mark.parametrize("loss", ["hinge", "crf"])
@pytest.mark.parametrize("learned", [False, True])
def test_losses_and_gradients_do_not_depend_on_the_batch(loss: str, learned: bool) -> None:
    model, _ = syntactic(syntax__loss=loss, syntax__pruning__learned=learned, syntax__pruning__top_heads=2)
    chosen = of_lengths([3, 1, 6, 2])
    seeds = [4, 5, 6, 7]
    together = model.loss(batch_of(chosen, WHOLE, seeds))
    parameters = [value for name, value in model.named_parameters() if not name.startswith("pruner.")]
    expected = torch.autograd.grad(together.sum(), parameters)
    alone = torch.cat([model.loss(batch_of([chosen[k]], WHOLE, [seeds[k]])) for k in range(4)])
    torch.testing.assert_close(together, alone)
    found = torch.autograd.grad(alone.sum(), parameters)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.to_dense(), other.to_dense())


def test_heads_and_arcs_are_two_ways_to_write_a_tree() -> None:
    heads, lengths = torch.tensor([[0, 2, 0, 2], [0, 0, 0, 0]]), torch.tensor([3, 1])
    z = tree_parts(heads, lengths, torch.float64)
    assert z.sum((-1, -2)).tolist() == [3, 1]
    assert torch.equal(tree_heads(z), heads)
    assert spigot.ProjectiveTrees().contains(z).tolist() == [True, False]  # of another length
    assert spigot.ProjectiveTrees().contains(z, spigot.ProjectiveTrees().mask(lengths, 4)).all()


def test_words_are_dropped_in_the_parsers_own_training_only() -> None:
    model, _ = syntactic(syntax__encoder__word_dropout=1000.0)
    chosen = sentences(2)
    quiet, noisy = batch_of(chosen, WHOLE), batch_of(chosen, WHOLE, [1, 2])
    assert torch.equal(model.evidence(noisy).scores, model.evidence(quiet).scores)
    assert not torch.equal(model.loss(noisy), model.loss(quiet))


def test_a_batch_without_trees_is_refused() -> None:
    model, _ = syntactic()
    batch = batch_of([s.without_annotation() for s in sentences(1)], WHOLE)
    with pytest.raises(ValueError, match="needs trees"):
        model.loss(batch)


def test_settings_choose_the_structure() -> None:
    assert syntactic(syntax__trees="nonprojective", syntax__single_root=False)[1] == spigot.NonProjectiveTrees(
        single_root=False
    )
    assert syntactic()[1] == spigot.ProjectiveTrees(single_root=True)
