"""Vocabularies and pretrained vectors."""

import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot.data.files import FormatError
from spigot.data.sentence import Arc, Graph, Sentence
from spigot.data.vocab import RARE, SPECIAL, TOP, Vectors, Vocab, read_vectors
from tests.parsing import reviews, sentences

ROLES = st.sampled_from(["A", "B", "C", "D"])
ARCS = st.dictionaries(st.tuples(st.integers(1, 4), st.integers(1, 4)).filter(lambda p: p[0] != p[1]), ROLES)


def graph_of(arcs: dict[tuple[int, int], str], tops: list[int]) -> Sentence:
    return Sentence(("w",) * 4, graph=Graph.of([Arc(i, j, role) for (i, j), role in arcs.items()], tops))


def test_words_are_counted_in_lower_case() -> None:
    text = sentences(20)
    vocab = Vocab.of(text)
    counts = Counter(form.lower() for sentence in text for form in sentence.forms)
    assert dict(zip(vocab.words[3:], vocab.counts[3:], strict=True)) == counts
    assert vocab.words[:3] == vocab.lemmas[:3] == vocab.tags[:3] == SPECIAL
    assert vocab.counts[:3] == (0, 0, 0)
    assert set(vocab.tags[3:]) == {tag for sentence in text for tag in sentence.tags or ()}
    assert [vocab.word_index[word] for word in vocab.words] == list(range(len(vocab.words)))
    assert [vocab.lemma_index[word] for word in vocab.lemmas] == list(range(len(vocab.lemmas)))
    assert [vocab.tag_index[word] for word in vocab.tags] == list(range(len(vocab.tags)))


def test_words_with_a_vector_follow_without_a_count() -> None:
    vocab = Vocab.of([Sentence(("Rain", "rain"))], also=["snow", "rain", "hail", "snow"])
    assert vocab.words[3:] == ("rain", "hail", "snow")
    assert vocab.counts[3:] == (2, 0, 0)


def test_sentences_without_lemmas_use_their_forms() -> None:
    assert Vocab.of([Sentence(("Rain", "fell"))]).lemmas[3:] == ("fell", "rain")
    assert Vocab.of([Sentence(("Rain", "fell"))]).roles == ()


@given(st.lists(st.tuples(ARCS, st.lists(st.integers(1, 4), max_size=2, unique=True)), max_size=5), st.integers(0, 4))
def test_roles_and_determinism_follow_their_definition(graphs: list[tuple[dict, list[int]]], rare: int) -> None:
    text = [graph_of(arcs, tops) for arcs, tops in graphs]
    vocab = Vocab.of(text, rare_role=rare)
    counts = Counter(role for arcs, _ in graphs for role in arcs.values())
    frequent = sorted(role for role, count in counts.items() if count >= rare)
    some = bool(counts) or any(tops for _, tops in graphs)
    assert vocab.roles == (TOP,) * some + (*frequent,) + (RARE,) * (len(frequent) < len(counts))
    repeated = {TOP for _, tops in graphs if len(tops) > 1}
    for arcs, _ in graphs:
        uses = Counter((i, role if role in frequent else RARE) for (i, _), role in arcs.items())
        repeated |= {role for (_, role), count in uses.items() if count > 1}
    assert {vocab.roles[k] for k in vocab.deterministic} == set(vocab.roles) - repeated


def test_a_role_that_is_called_like_the_rare_ones_joins_them() -> None:
    text = [graph_of({(1, 2): RARE, (2, 3): "A", (3, 4): "A", (1, 4): RARE}, [1])]
    vocab = Vocab.of(text, rare_role=2)
    assert vocab.roles == (TOP, "A", RARE)
    assert RARE not in {vocab.roles[k] for k in vocab.deterministic}


def test_json_gives_the_same_vocabulary() -> None:
    vocab = Vocab.of([*sentences(5), Sentence(("Zoë", "\u2028", '"'))], rare_role=3)
    assert Vocab.from_json(vocab.to_json()) == vocab
    with pytest.raises(TypeError):
        Vocab.from_json('{"words": []}')


@given(st.lists(st.one_of(st.none(), st.integers(-3, 9)), max_size=6))
def test_classes_are_the_labels_in_ascending_order(labels: list[int | None]) -> None:
    vocab = Vocab.of([Sentence(("rain",), label=label) for label in labels])
    assert vocab.classes == tuple(sorted({label for label in labels if label is not None}))
    assert [vocab.class_index[label] for label in vocab.classes] == list(range(len(vocab.classes)))
    assert Vocab.from_json(vocab.to_json()) == vocab


def test_a_vocabulary_written_before_there_were_classes_can_be_read() -> None:
    vocab = Vocab.of(sentences(5))
    before = {name: value for name, value in json.loads(vocab.to_json()).items() if name != "classes"}
    assert Vocab.from_json(json.dumps(before)) == vocab


def test_classes_bring_no_roles_along() -> None:
    vocab = Vocab.of(reviews(5))
    assert (vocab.roles, vocab.deterministic) == ((), ())


LINES = "rain 0.5 1 -2\nsnow -1e-1 2 3.25\n, 1 2 3\n"


def test_vectors_are_read_plain_and_compressed(tmp_path: Path) -> None:
    plain, packed = tmp_path / "v.txt", tmp_path / "v.txt.gz"
    plain.write_text(LINES)
    packed.write_bytes(gzip.compress(LINES.encode()))
    expected = np.array([[float(x) for x in line.split()[1:]] for line in LINES.splitlines()], dtype=np.float32)
    for path in (plain, packed):
        vectors = read_vectors(path)
        assert vectors.words == ("rain", "snow", ",")
        assert np.array_equal(vectors.values, expected)


def test_a_table_follows_the_words_asked_for() -> None:
    vectors = Vectors(("rain", "snow"), np.array([[1, 2], [3, 4]], dtype=np.float32))
    assert vectors.table(["snow", "hail", "rain", "snow"]).tolist() == [[3, 4], [0, 0], [1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("rain 1 2\nsnow 1\n", 2),
        ("rain 1 2\nsnow 1 x\n", 2),
        ("rain 1 2\nsnow 1 nan\n", 2),
        ("rain 1 2\n\nsnow 1 2\n", 2),
        ("rain\n", 1),
        ("rain one two\n", 1),
        ("rain 1 2\nnew york 1 2\n", 2),
        ("", 1),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "v.txt"
    path.write_text(text)
    with pytest.raises(FormatError, match=rf"v\.txt:{line}: ") as caught:
        read_vectors(path)
    assert caught.value.line == line


@pytest.mark.parametrize("content", [gzip.compress(LINES.encode() * 50, mtime=0)[:40], b"no gzip at all"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "v.txt.gz"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"v\.txt\.gz:\d+: the file is damaged"):
        read_vectors(path)
    plain = tmp_path / "v.txt"
    plain.write_bytes(b"rain 1 2\n\xff\xfe 1 2\n")
    with pytest.raises(FormatError, match=r"v\.txt:\d+: the file is damaged"):
        read_vectors(plain)
