"""What trainings on the same text keep for each other."""

import json

import pytest

from spigot_nlp.config import make_config
from spigot_nlp.corpora import prepared as module
from spigot_nlp.corpora.corpus import load_corpus
from spigot_nlp.corpora.prepared import CACHE_VARIABLE, prepared
from spigot_nlp.data.sentence import Sentence

TEXT = [
    Sentence(("dogs", "bark"), tags=("NNS", "VBP"), heads=(2, 0)),
    Sentence(("a", "dog", "barks"), tags=("DT", "NN", "VBZ")),
    Sentence(("cats", "sleep"), tags=("NNS", "VBP")),
    Sentence(("the", "cat", "sleeps"), tags=("DT", "NN", "VBZ")),
]


@pytest.fixture
def worked(monkeypatch):
    """How often something was worked out."""
    found, work_out = [], module._work_out
    monkeypatch.setattr(module, "_work_out", lambda known, folds: (found.append(folds), work_out(known, folds))[-1])
    return found


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_without_a_folder_nothing_is_kept(worked, monkeypatch):
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    assert prepared(TEXT, 2)[1] == prepared(TEXT, 2)[1]
    assert worked == [2, 2]


def test_the_same_corpus_with_and_without(cache, worked, monkeypatch):
    data = make_config({"data": {"source": "synthetic", "synthetic": {"train": 12, "dev": 3, "test": 2}}}).data
    assert data.tags == "predicted"
    first, second = load_corpus(data), load_corpus(data)
    assert len(worked) == 1
    assert len(list(cache.iterdir())) == 2
    monkeypatch.delenv(CACHE_VARIABLE)
    alone = load_corpus(data)
    for corpus in (first, second):
        assert corpus.sets == alone.sets
        assert corpus.tagger is not None
        assert alone.tagger is not None
        assert list(corpus.tagger.tag(TEXT)) == list(alone.tagger.tag(TEXT))


def test_what_differs_is_worked_out(cache, worked):
    prepared(TEXT, 2)
    prepared(TEXT, 3)  # other folds
    prepared(TEXT[:3], 2)
    prepared([*TEXT[:3], Sentence(TEXT[3].forms, tags=("DT", "NN", "NN"))], 2)
    assert worked == [2, 3, 2, 2]
    # What is no matter for tags is as it was given, and not as it was when they were kept.
    other = [Sentence(sentence.forms, tags=sentence.tags, heads=(0,) * len(sentence)) for sentence in TEXT]
    assert [sentence.heads for sentence in prepared(other, 2)[1]] == [sentence.heads for sentence in other]
    assert len(worked) == 4


@pytest.mark.parametrize("pattern", ["tags-*.json", "tagger-*.safetensors"])
@pytest.mark.parametrize("content", [b"", b"{", b"null", b'{"kind": "spigot tags 1", "tags": [], "lemmas": []}', None])
def test_what_is_damaged_is_worked_out_again(pattern, content, cache, worked):
    tagger, sentences = prepared(TEXT, 2)
    (path,) = cache.glob(pattern)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    again, found = prepared(TEXT, 2)
    assert (worked, found) == ([2, 2], sentences)
    assert list(again.tag(TEXT)) == list(tagger.tag(TEXT))
    assert path.read_bytes() == whole


def test_tags_of_other_lengths_are_no_tags(cache, worked):
    _, sentences = prepared(TEXT, 2)
    (path,) = cache.glob("tags-*.json")
    kept = json.loads(path.read_bytes())
    kept["tags"][0] = ["NN"]
    path.write_text(json.dumps(kept))
    assert prepared(TEXT, 2)[1] == sentences


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch, worked):
    (tmp_path / "file").touch()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file" / "cache"))
    assert len(prepared(TEXT, 2)[1]) == 4
