"""The tagger: what it scores, what counts in its loss, what it refuses."""

from typing import Any

import pytest
import torch

import spigot
from spigot_nlp.annotations import Tags
from spigot_nlp.batches import Batch, collate, encode
from spigot_nlp.config import make_config
from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders import BiLSTMSettings
from spigot_nlp.models.build import fresh
from spigot_nlp.stages import Surroundings, TagStage
from spigot_nlp.stages.stage import stage_settings
from tests.spigot_nlp.parsing import sentences

TEXT = [*sentences(5), Sentence(("cat",), tags=("NN",))]
VOCAB = Vocab.of(TEXT)
TAGS = Tags.learn("tags", TEXT, None)
SIZES = {"encoder": {"word_dim": 8, "hidden": 8}, "mlp": 8}


def tagger(annotation: Tags = TAGS, **overrides: Any) -> TagStage:
    settings: Any = stage_settings({"annotation": "tags", **SIZES, **overrides})
    stage = TagStage("tagger", settings, annotation, Surroundings(VOCAB)).double()
    for parameter in stage.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return stage


def batch_of(chosen: list[Sentence], seeds: list[int] | None = None) -> Batch:
    own = {"tagger": TAGS}
    return collate([encode(sentence, VOCAB, own) for sentence in chosen], own, seeds)


def test_the_loss_is_the_cross_entropy_of_each_word_summed() -> None:
    stage, batch = tagger(), batch_of(TEXT)
    scores, losses = stage.evidence(batch).scores, stage.loss(batch)
    assert losses.shape == (len(TEXT),)
    assert len(set(batch.lengths.tolist())) > 2
    for row, loss, sentence in zip(scores, losses, TEXT, strict=True):
        expected = torch.zeros(()).double()
        for word, tag in enumerate(sentence.tags or (), 1):
            expected += row[word].exp().sum().log() - row[word, TAGS.tags.index(tag)]
        torch.testing.assert_close(loss, expected)


def test_a_tag_that_training_never_saw_does_not_count() -> None:
    stage = tagger()
    words = ("cat", "sees", "dog")
    known, strange = Sentence(words, tags=("NN", "VBZ", "NN")), Sentence(words, tags=("NN", "??", "NN"))
    batch = batch_of([known, strange])
    scores = stage.evidence(batch).scores
    whole, without = stage.loss(batch)
    middle = scores[0, 2].exp().sum().log() - scores[0, 2, TAGS.tags.index("VBZ")]
    torch.testing.assert_close(whole - without, middle)
    assert stage.loss(batch_of([Sentence(words, tags=("?",) * 3)])).item() == 0


def test_only_words_can_be_tagged() -> None:
    stage, batch = tagger(), batch_of(TEXT)
    mask = stage.evidence(batch).mask
    for row, length in zip(mask, batch.lengths.tolist(), strict=True):
        assert row[1 : length + 1].all()
        assert not row[0].any()
        assert not row[length + 1 :].any()


def test_each_word_gets_its_best_tag() -> None:
    stage, batch = tagger(), batch_of(TEXT)
    evidence = stage.evidence(batch)
    z = stage.structure.argmax(*evidence)
    assert stage.structure == spigot.OneOf()
    for row, found, sentence in zip(
        evidence.scores, stage.found(z, evidence, batch.lengths.tolist()), TEXT, strict=True
    ):
        best = tuple(TAGS.tags[int(row[word].argmax())] for word in range(1, len(sentence) + 1))
        assert found == {"tags": best}
    assert stage.choices == len(TAGS.tags)
    assert stage.arc_labels is None
    assert stage.part((2, 1)) == Arc(2, 2, TAGS.tags[1])


@pytest.mark.parametrize("noisy", [False, True])
def test_padding_does_not_matter(noisy: bool) -> None:
    stage = tagger(encoder={**SIZES["encoder"], "word_dropout": 2.0, "dropout": 0.3})
    seeds = list(range(len(TEXT)))
    together = stage.loss(batch_of(TEXT, seeds if noisy else None))
    alone = torch.cat([stage.loss(batch_of([s], [k] if noisy else None)) for k, s in enumerate(TEXT)])
    torch.testing.assert_close(together, alone)
    if noisy:
        assert not torch.allclose(together, stage.loss(batch_of(TEXT)))


def test_it_reads_words_alone() -> None:
    """The tags of a sentence are what is to be found; its lemmas come from them."""
    settings = stage_settings({"annotation": "tags"}).encoder
    assert isinstance(settings, BiLSTMSettings)
    assert (settings.tag_dim, settings.lemma_dim) == (0, 0)
    stage = tagger()
    bare = [Sentence(sentence.forms) for sentence in TEXT]
    torch.testing.assert_close(stage.evidence(batch_of(bare)).scores, stage.evidence(batch_of(TEXT)).scores)


def test_what_it_cannot_learn_from_is_refused() -> None:
    with pytest.raises(ValueError, match="The training sentences of tagger have no tags, so there is nothing"):
        tagger(Tags())
    with pytest.raises(ValueError, match="The loss of tagger needs tags, and this batch has none"):
        tagger().loss(batch_of([Sentence(("cat",))]))


def test_a_system_that_tags_does_not_look_at_tags() -> None:
    config = make_config({"stages": {"tagger": {"annotation": "tags", **SIZES}}})
    whole = fresh(config, {"trees": TEXT})
    wrong = [sentence.put("tags", ("NN",) * len(sentence)) for sentence in TEXT]
    found = list(whole.pipe(TEXT))
    assert [s.tags for s in whole.pipe(wrong)] == [s.tags for s in found]
    assert [s.forms for s in found] == [s.forms for s in TEXT]
    assert {tag for s in found for tag in s.tags or ()} <= set(TAGS.tags)
    assert whole.finds == ("tags",)


def test_tags_may_stand_elsewhere() -> None:
    text = [sentence.put("supertags", tuple(tag.lower() for tag in sentence.tags or ())) for sentence in TEXT]
    config = make_config({"stages": {"super": {"annotation": "tags", "field": "supertags", **SIZES}}})
    whole = fresh(config, {"trees": text})
    for sentence, found in zip(text, whole.pipe(text), strict=True):
        assert len(found.get("supertags")) == len(sentence)
        assert set(found.get("supertags")) <= {tag.lower() for tag in TAGS.tags}
        assert found.tags is None  # nobody looks at those
