"""The tagger: its kernel against numpy, what it learns, its files, and jackknifing."""

import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import numpy as safetensors

from spigot import kernels
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging import tagger as perceptron
from spigot_nlp.data.tagging import tagger as tag_features
from spigot_nlp.data.tagging.tagger import PROPERTIES, Features, TagFeatures, Tagger, jackknife, properties

compiled = pytest.mark.skipif(kernels.compiled is None, reason="there is no kernel to compare")

NOUNS = ("river", "stone", "lamp", "otter", "violin", "harbour", "ladder", "comet")
VERBS = ("sees", "lifts", "paints", "follows", "hears", "mends")


def corpus(size: int, seed: int = 0) -> list[Sentence]:
    """Determiners, nouns and verbs; "saw" is a noun after a determiner and a verb after a noun."""
    generator = np.random.default_rng(seed)

    def phrase() -> list[tuple[str, str]]:
        noun = "saw" if generator.random() < 0.2 else str(generator.choice(NOUNS))
        return [(str(generator.choice(["the", "a"])), "DT"), (noun, "NN")]

    sentences = []
    for number in range(size):
        verb = ("saw", "VBD") if generator.random() < 0.3 else (str(generator.choice(VERBS)), "VBZ")
        words = [*phrase(), verb, *phrase(), (".", ".")]
        forms, tags = zip(*words, strict=True)
        sentences.append(Sentence(forms, tags=tags, id=f"s{number}"))
    return sentences


def accuracy(predicted: list[Sentence], gold: list[Sentence]) -> float:
    right = [
        mine == theirs
        for a, b in zip(predicted, gold, strict=True)
        for mine, theirs in zip(a.tags or (), b.tags or (), strict=True)
    ]
    return sum(right) / len(right)


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return Tagger.train(corpus(60))


@pytest.fixture
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spigot._runtime.native.kernels", None)


def problem(seed: int) -> tuple[Features, np.ndarray, int]:
    """Random features, gold tags and the number of rows; small enough that scores tie often."""
    generator = np.random.default_rng(seed)
    tags, plain, paired = (int(generator.integers(1, 6)) for _ in range(3))
    lengths = generator.integers(0, 7, size=5)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    tokens, low = int(starts[-1]), 12
    features = Features(
        generator.integers(-3, low, size=(tokens, plain), dtype=np.int32),
        generator.choice(np.array([-1, low, low + tags + 1], dtype=np.int32), size=(tokens, paired)),
        np.where(generator.random(tokens) < 0.2, generator.integers(0, tags, size=tokens), -1).astype(np.int32),
        starts,
        low + 2 * (tags + 1),
        tags,
    )
    gold = generator.integers(0, tags, size=tokens, dtype=np.int32)
    return features, gold, features.history + (tags + 1) ** 2


class TestKernel:
    @compiled
    @given(seed=st.integers(0, 100_000))
    def test_tags_as_numpy_does(self, seed: int) -> None:
        features, _, rows = problem(seed)
        weights = np.random.default_rng(seed).integers(-2, 3, size=(rows, 8), dtype=np.int32)
        assert np.array_equal(perceptron.tag(features, weights), perceptron.tag_reference(features, weights))

    @compiled
    @given(seed=st.integers(0, 100_000))
    def test_learns_as_numpy_does(self, seed: int) -> None:
        features, gold, rows = problem(seed)
        order = np.random.default_rng(seed).permutation(5)
        results = []
        for train in (perceptron.train, perceptron.train_reference):
            weights, totals = np.zeros((rows, 8), dtype=np.int32), np.zeros((rows, 8), dtype=np.int64)
            step = 1
            for _ in range(3):
                step = train(features, order, gold, weights, totals, step)
            results.append((step, weights, totals))
        (fast_step, *fast), (slow_step, *slow) = results
        assert fast_step == slow_step == 1 + 3 * int((features.fixed < 0).sum())
        assert all(np.array_equal(a, b) for a, b in zip(fast, slow, strict=True))

    def test_an_update_by_hand(self) -> None:
        # One word, one plain row, one paired row; the first guess is tag 0 by the tie, the gold tag is 1.
        features = Features(
            np.array([[0, -1]], dtype=np.int32),
            np.array([[1]], dtype=np.int32),
            np.array([-1], dtype=np.int32),
            np.array([0, 1]),
            4,
            2,
        )
        weights, totals = np.zeros((13, 2), dtype=np.int32), np.zeros((13, 2), dtype=np.int64)
        step = perceptron.train(features, np.array([0]), np.array([1], dtype=np.int32), weights, totals, 5)
        changed = [0, 1 + 2, 4 + 2 * 3 + 2]  # the plain row, the pair with "before the first word", and the history
        expected = np.zeros_like(weights)
        expected[changed] = [-1, 1]
        assert step == 6
        assert np.array_equal(weights, expected)
        assert np.array_equal(totals, 5 * expected)

    def test_totals_give_the_average(self) -> None:
        features, gold, rows = problem(3)
        weights, totals = np.zeros((rows, 8), dtype=np.int32), np.zeros((rows, 8), dtype=np.int64)
        summed, step = np.zeros((rows, 8), dtype=np.int64), 1
        one = np.array([0, 1])
        for i in range(len(gold)):  # every token as a sentence of its own, so that each call is one step
            token = Features(
                features.plain[i : i + 1],
                features.paired[i : i + 1],
                np.array([-1], dtype=np.int32),
                one,
                *features[4:],
            )
            step = perceptron.train(token, np.array([0]), gold[i : i + 1], weights, totals, step)
            summed += weights
        # The update of step t is in the weights after that step and after every later one.
        assert step == len(gold) + 1
        assert np.abs(summed).sum() > 0
        assert np.array_equal(summed, weights.astype(np.int64) * step - totals)


class TestFeatures:
    @pytest.mark.parametrize(
        ("form", "shape"), [("Otter", "Xxx"), ("e-mail", "x-xx"), ("3,000", "d,dd"), ("II", "XX"), ("", ""), ("É", "X")]
    )
    def test_shape(self, form: str, shape: str) -> None:
        assert dict(zip(PROPERTIES, properties(form), strict=True))["shape"] == shape

    def test_a_batch_is_its_sentences_side_by_side(self) -> None:
        texts = [sentence.forms for sentence in corpus(20)] + [(), ("a", "zebra"), ("saw",)]
        known = TagFeatures.collect(texts[:15], [sentence.tags or () for sentence in corpus(15)])
        whole = known.encode(texts)
        alone = [known.encode([text]) for text in texts]
        assert np.array_equal(whole.plain, np.concatenate([each.plain for each in alone]))
        assert np.array_equal(whole.paired, np.concatenate([each.paired for each in alone]))
        assert np.diff(whole.starts).tolist() == [len(text) for text in texts]

    def test_rows_of_different_features_differ(self) -> None:
        sentences = corpus(60)
        texts = [sentence.forms for sentence in sentences]
        known = TagFeatures.collect(texts, [sentence.tags or () for sentence in sentences])
        features = known.encode(texts)
        columns = [set(column[column >= 0].tolist()) for column in features.plain.T]
        for column in features.paired.T:
            columns.append({row + tag for row in column[column >= 0].tolist() for tag in range(len(known.tags) + 1)})
        columns.append(set(range(features.history, known.rows)))
        assert sum(map(len, columns)) == len(set().union(*columns))
        assert all(columns), "a template that never fires"
        assert max(map(max, columns)) == known.rows - 1

    def test_frequent_words_with_one_tag_are_fixed(self) -> None:
        known = Tagger.train(corpus(60)).features
        assert known.fixed["the"] == "DT"
        assert "saw" not in known.fixed

    def test_forgets_words_rather_than_grow_for_ever(self, monkeypatch: pytest.MonkeyPatch, tagger: Tagger) -> None:
        monkeypatch.setattr(tag_features, "_REMEMBERED", 3)
        expected = [sentence.tags for sentence in tagger.tag(corpus(10, seed=4))]
        again = [next(tagger.tag([sentence])).tags for sentence in corpus(10, seed=4)]
        assert again == expected
        assert len(tagger.features._types.table) <= 12


class TestTagger:
    def test_learns_a_rule_of_context(self, tagger: Tagger) -> None:
        held_out = corpus(200, seed=1)
        tagged = list(tagger.tag(held_out))
        assert accuracy(tagged, held_out) > 0.99
        both = [
            (mine, theirs)
            for a, b in zip(tagged, held_out, strict=True)
            for form, mine, theirs in zip(b.forms, a.tags or (), b.tags or (), strict=True)
            if form == "saw"
        ]
        assert {theirs for _, theirs in both} == {"NN", "VBD"}
        assert sum(mine == theirs for mine, theirs in both) > 0.95 * len(both)
        # Words never seen: by their place and their neighbours.
        new = Sentence(("the", "wombat", "saw", "a", "glacier", "."))
        assert next(tagger.tag([new])).tags == ("DT", "NN", "VBD", "DT", "NN", ".")

    @pytest.mark.usefixtures("without_kernels")
    def test_is_the_same_without_kernels(self, tagger: Tagger) -> None:
        again = Tagger.train(corpus(60))
        assert np.array_equal(again.weights, tagger.weights)
        text = corpus(20, seed=2)
        assert [sentence.tags for sentence in again.tag(text)] == [sentence.tags for sentence in tagger.tag(text)]

    def test_is_decided_by_its_seed(self, tagger: Tagger) -> None:
        assert np.array_equal(Tagger.train(corpus(60), seed=0).weights, tagger.weights)
        assert not np.array_equal(Tagger.train(corpus(60), seed=1).weights, tagger.weights)

    def test_streams_in_order(self, tagger: Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("spigot_nlp.data.tagging.tagger._CHUNK", 4)
        drawn = 0

        def source() -> Iterator[Sentence]:
            nonlocal drawn
            for number in range(10_000):
                drawn += 1
                yield Sentence(("a", "comet") * (number % 3), id=str(number))

        first = list(islice(tagger.tag(source()), 10))
        assert [sentence.id for sentence in first] == [str(number) for number in range(10)]
        assert [len(sentence.tags or ()) for sentence in first] == [2 * (number % 3) for number in range(10)]
        assert drawn == 12

    @given(texts=st.lists(st.lists(st.text(max_size=6), max_size=8), max_size=6))
    def test_any_text_gets_known_tags(self, tagger: Tagger, texts: list[list[str]]) -> None:
        sentences = [Sentence(tuple(text)) for text in texts]
        tagged = list(tagger.tag(sentences))
        assert [sentence.forms for sentence in tagged] == [sentence.forms for sentence in sentences]
        assert {tag for sentence in tagged for tag in sentence.tags or ()} <= set(tagger.tags)

    def test_keeps_the_rest_of_a_sentence(self, tagger: Tagger) -> None:
        sentence = Sentence(("a", "lamp"), lemmas=("a", "lamp"), tags=("X", "X"), heads=(2, 0), label=1, id="k")
        tagged = next(tagger.tag([sentence]))
        assert (tagged.tags, tagged.heads, tagged.lemmas, tagged.label, tagged.id) == (
            ("DT", "NN"),
            (2, 0),
            ("a", "lamp"),
            1,
            "k",
        )

    def test_one_tag_and_no_sentences(self) -> None:
        tagger = Tagger.train([Sentence(("one",), tags=("CD",))])
        assert list(tagger.tag([])) == []
        assert next(tagger.tag([Sentence(("two", "three"))])).tags == ("CD", "CD")

    def test_refuses_what_it_cannot_learn_from(self) -> None:
        tagged = Sentence(("one",), tags=("CD",))
        with pytest.raises(ValueError, match=r"sentence 2 \(a lamp\) has no tags"):
            Tagger.train([tagged, Sentence(("a", "lamp"))])
        with pytest.raises(ValueError, match="sentence doc-7 has no tags"):
            Tagger.train([Sentence(("a", "lamp"), id="doc-7")])
        with pytest.raises(ValueError, match="no words in these 1 sentences"):
            Tagger.train([Sentence((), tags=())])
        with pytest.raises(ValueError, match="epochs is 0"):
            Tagger.train([tagged], epochs=0)

    def test_refuses_weights_of_another_shape(self, tagger: Tagger) -> None:
        with pytest.raises(ValueError, match="these features need contiguous int32"):
            Tagger(tagger.features, tagger.weights[:-1])


class TestFiles:
    def test_round_trip(self, tagger: Tagger, tmp_path: Path) -> None:
        path = tmp_path / "tagger.safetensors"
        tagger.save(path)
        loaded = Tagger.load(path)
        assert np.array_equal(loaded.weights, tagger.weights)
        assert (loaded.tags, loaded.features.fixed) == (tagger.tags, tagger.features.fixed)
        text = corpus(30, seed=3)
        assert list(loaded.tag(text)) == list(tagger.tag(text))
        loaded.save(tmp_path / "again.safetensors")
        assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()
        assert sorted(os.listdir(tmp_path)) == ["again.safetensors", "tagger.safetensors"]

    def test_odd_words_survive(self, tmp_path: Path) -> None:
        words = ("naïve", "日本", "\udc80", '"', "")
        tagger = Tagger.train([Sentence(words, tags=("A", "B", "C", "D", "E"))])
        tagger.save(tmp_path / "tagger")
        assert next(Tagger.load(tmp_path / "tagger").tag([Sentence(words)])).tags == ("A", "B", "C", "D", "E")

    @given(share=st.floats(0, 0.999))
    def test_part_of_a_file(self, tagger: Tagger, tmp_path_factory: pytest.TempPathFactory, share: float) -> None:
        path = tmp_path_factory.mktemp("part") / "tagger.safetensors"
        tagger.save(path)
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(ValueError, match=r"tagger\.safetensors is not a whole tagger file"):
            Tagger.load(path)

    @pytest.mark.parametrize("change", ["kind", "places", "tags", "fixed", "paired", "weights", "values"])
    def test_a_file_that_contradicts_itself(self, tagger: Tagger, tmp_path: Path, change: str) -> None:
        path = tmp_path / "tagger.safetensors"
        tagger.save(path)
        arrays = safetensors.load(path.read_bytes())
        strings = json.loads(arrays["strings"].tobytes())
        if change == "places":
            arrays["places"] = arrays["places"] + tagger.weights.size
        elif change == "weights":
            arrays["weights"] = arrays["weights"][:1]
        else:
            strings[change] = {"kind": "other", "tags": [], "fixed": {"a": "?"}, "paired": 10**6, "values": {}}[change]
        arrays["strings"] = np.frombuffer(json.dumps(strings).encode(), dtype=np.uint8)
        path.write_bytes(safetensors.save(arrays))
        with pytest.raises(ValueError, match="is not a whole tagger file"):
            Tagger.load(path)

    def test_foreign_and_missing_files(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("not a tagger")
        (tmp_path / "model").write_bytes(safetensors.save({"weight": np.zeros(3)}))
        for name in ("text", "model"):
            with pytest.raises(ValueError, match=r"give one that Tagger\.save wrote"):
                Tagger.load(tmp_path / name)
        with pytest.raises(FileNotFoundError):
            Tagger.load(tmp_path / "nothing")


class TestJackknife:
    @pytest.mark.parametrize("folds", [2, 3, 7])
    def test_no_tagger_tags_what_it_saw(self, folds: int) -> None:
        # Each sentence ends in a word with a tag of its own: only a tagger that saw the sentence can give it.
        text = [Sentence(("a", "lamp", f"q{n}"), tags=("DT", "NN", f"Q{n}"), id=str(n)) for n in range(7)]
        seen = next(Tagger.train(text).tag(text[:1]))
        assert seen.tags == ("DT", "NN", "Q0")
        tagged = jackknife(text, folds=folds)
        assert [sentence.id for sentence in tagged] == [str(n) for n in range(7)]
        assert all(f"Q{n}" not in (sentence.tags or ()) for n, sentence in enumerate(tagged))
        assert all((sentence.tags or ())[:2] == ("DT", "NN") for sentence in tagged)

    def test_folds_are_blocks(self) -> None:
        # Neighbours share a word, as the sentences of a document do; it must not help.
        text = [Sentence((f"q{n // 2}",), tags=(f"Q{n // 2}",)) for n in range(8)]
        assert all(before.tags != after.tags for before, after in zip(text, jackknife(text, folds=4), strict=True))

    def test_is_as_good_as_new_text(self) -> None:
        text = corpus(60)
        assert accuracy(jackknife(iter(text)), text) > 0.98

    @pytest.mark.parametrize("folds", [1, 4])
    def test_refuses_folds_that_cannot_be(self, folds: int) -> None:
        with pytest.raises(ValueError, match=f"folds is {folds} for 3 sentences"):
            jackknife(corpus(3), folds=folds)


@pytest.mark.slow
@pytest.mark.skipif(kernels.compiled is None, reason="takes a minute without the kernel")
def test_accuracy_on_web_text() -> None:
    folder = os.environ.get("SPIGOT_DATA")
    if not folder or not (path := Path(folder, "ud-ewt")).is_dir():
        pytest.skip("SPIGOT_DATA does not name a folder that holds ud-ewt")
    from spigot_nlp.data.formats import read

    test = list(read(path / "test.conllu"))
    tagger = Tagger.train(read(path / "train.conllu"))
    assert accuracy(list(tagger.tag(test)), test) > 0.94
