"""Several files with graphs of the same sentences."""

import pytest

from spigot_nlp.corpora.corpus import load_corpus
from spigot_nlp.corpora.settings import Data, Files
from spigot_nlp.data import Arc, Graph, Sentence, join, write

RAIN, SNOW = ("Rain", "fell"), ("Snow", "fell", "fast")


def one(forms: tuple[str, ...], role: str, id: str = "") -> Sentence:
    return Sentence(forms, tags=("NN", "VBD", "RB")[: len(forms)], graph=Graph.of([Arc(2, 1, role)], tops=[2]), id=id)


def test_ids_match_sentences_and_some_may_be_missing() -> None:
    joined = join({"dm": [one(RAIN, "ARG1", "a")], "psd": [one(SNOW, "ACT", "b"), one(RAIN, "ACT", "a")]})
    assert [(s.id, sorted(s.annotations)) for s in joined] == [("a", ["dm", "psd"]), ("b", ["psd"])]
    assert joined[0].get("psd").arcs[0].role == "ACT"
    assert joined[0].graph is None


def test_without_ids_the_place_decides() -> None:
    joined = join({"dm": [one(RAIN, "ARG1"), one(SNOW, "ARG1")], "psd": [one(RAIN, "ACT"), one(SNOW, "ACT")]})
    assert [sorted(s.annotations) for s in joined] == [["dm", "psd"]] * 2
    with pytest.raises(ValueError, match=r"psd\.sdp has 1 sentences and dm\.sdp 2, and no ids"):
        join({"dm": joined, "psd": joined[:1]}, {"dm": "dm.sdp", "psd": "psd.sdp"})


def test_other_words_are_an_error_that_names_both_files_and_the_sentence() -> None:
    other = Sentence(("Rain", "fell!"), graph=Graph(), id="a")
    with pytest.raises(ValueError, match=r"^x\.sdp and y\.sdp: sentence a: word 2 is 'fell' in the first and 'fell!'"):
        join({"dm": [one(RAIN, "ARG1", "a")], "psd": [other]}, {"dm": "x.sdp", "psd": "y.sdp"})


def test_a_configuration_joins_files_and_cuts_enhanced_relations(tmp_path) -> None:
    write([one(RAIN, "ARG1", "a")], tmp_path / "dm.sdp")
    rows = ["# sent_id = a", "1 Rain _ _ NN _ 2 nsubj 2:nsubj:pass|2.1:nsubj _", "2 fell _ _ VBD _ 0 root 0:root _"]
    rows.append("2.1 it _ _ _ _ _ _ 2:conj:and _")
    text = "\n".join(row if row.startswith("#") else row.replace(" ", "\t") for row in rows)
    (tmp_path / "ud.conllu").write_text(f"{text}\n\n")
    pieces = {"dm": {"train": "dm.sdp"}, "enhanced": {"train": "ud.conllu"}}
    for relations, role in (("universal", "nsubj"), ("whole", "nsubj:pass")):
        pieces["enhanced"]["relations"] = relations
        data = Data.model_validate({"root": str(tmp_path), "tags": "columns", "graphs": {"join": pieces}})
        (sentence,) = load_corpus(data)["graphs"].train
        assert sentence.get("enhanced") == Graph.of([Arc(2, 1, role)], tops=[2])
        assert sentence.get("dm").arcs == (Arc(2, 1, "ARG1"),)


def test_a_data_set_has_files_or_parts_and_not_both() -> None:
    with pytest.raises(ValueError, match="either files of its own or `join`"):
        Files.model_validate({"train": "a.sdp", "join": {"dm": {"train": "b.sdp"}}})
    with pytest.raises(ValueError, match=r"join\.dm is a part"):
        Files.model_validate({"join": {"dm": {"train": "b.sdp", "limit": 3}}})
