"""The component of spaCy's pipelines: spaCy's words, a system's trees and graphs."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spigot_nlp.models import Parser
from spigot_nlp.parallel import can_fork
from spigot_nlp.spacy import SpacyComponent
from tests.spigot_nlp.parsing import classifier, parser

spacy: Any = pytest.importorskip("spacy")


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Parser:
    nlp = parser()
    monkeypatch.setattr(Parser, "load", lambda run: nlp)
    return nlp


@pytest.fixture
def nlp(system: Parser) -> Any:
    made = spacy.blank("en")
    made.add_pipe("spigot", config={"model": "anywhere"})
    return made


def test_it_finds_what_the_system_finds_in_spacys_words(nlp: Any, system: Parser) -> None:
    doc = nlp("The cat sees it. The dog hides")
    first, second = system("The cat sees it . The dog hides", tokenised=True)
    assert first.tree is not None
    assert second.tree is not None
    assert first.graph is not None
    assert second.graph is not None
    assert [sentence.text for sentence in doc.sents] == ["The cat sees it.", "The dog hides"]
    heads = [head - 1 if head else k for k, head in enumerate(first.tree)]
    heads += [5 + (head - 1 if head else k) for k, head in enumerate(second.tree)]
    assert [token.head.i for token in doc] == heads
    assert [token.dep_ for token in doc].count("ROOT") == 2
    arcs = [[arc.predicate - 1, arc.argument - 1, arc.role] for arc in first.graph.arcs]
    arcs += [[arc.predicate + 4, arc.argument + 4, arc.role] for arc in second.graph.arcs]
    assert doc._.spigot_graph["arcs"] == arcs
    assert doc._.spigot_graphs == {"graph": doc._.spigot_graph}


def test_white_space_hangs_on_words_and_changes_no_tree(nlp: Any) -> None:
    plain, wide = nlp("The cat sees it."), nlp("  The cat  sees\n\n it.")
    words = [token for token in wide if not token.is_space]
    assert wide.text == "  The cat  sees\n\n it."
    assert all(token.dep_ == "dep" and not token.head.is_space for token in wide if token.is_space)
    assert [t.text for t in words] == [t.text for t in plain]
    assert len(nlp("")) == 0
    assert [token.dep_ for token in nlp(" ")] == [""]


def test_what_a_document_has_stays(system: Parser) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer", config={"punct_chars": [","]})
    component = nlp.add_pipe("spigot", config={"model": "anywhere"})
    assert [sentence.text for sentence in nlp("the cat, the dog. the gate").sents] == ["the cat,", "the dog. the gate"]
    doc = spacy.tokens.Doc(nlp.vocab, words=["Cat", "sees"], heads=[1, 1], deps=["own", "ROOT"], tags=["X", "Y"])
    component(doc)
    assert [(token.dep_, token.tag_) for token in doc] == [("own", "X"), ("ROOT", "Y")]
    assert doc._.spigot_graph is not None


def test_a_pipeline_is_saved_and_loaded_again(nlp: Any, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    assert again.config["components"]["spigot"] == {"factory": "spigot", "model": "anywhere"}
    texts = ["The cat sees it.", "", "The dog hides.", "Cats."]
    assert [doc.to_json() for doc in again.pipe(texts, batch_size=3)] == [nlp(text).to_json() for text in texts]
    component = nlp.get_pipe("spigot")
    assert component.parser is not None
    assert len(pickle.dumps(component)) < 300  # which loads the system anew
    assert pickle.loads(pickle.dumps(component)) == SpacyComponent("anywhere")


@pytest.mark.parametrize("sign", ["\u200b", "\x00", "\u2060", "\ufeff", "\x85", "\u061c"])
def test_signs_that_print_nothing_are_no_words(sign: str) -> None:
    """Where sentences end is looked for in text, of which no word may be lost."""
    nlp = spacy.blank("en")
    nlp.add_pipe("spigot")
    for text in (
        f"She bought apples {sign} today. It rained. They slept.",
        f"{sign} It rain{sign}ed. They slept. {sign}",
    ):
        doc = nlp(text)
        assert [str(sentence[0]) for sentence in doc.sents][-1] == "They"
        assert [token.dep_ for token in doc if token.text == "slept"] == ["ROOT"]
        assert doc.text == text


def test_classes_stand_at_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    system = classifier(data__source="synthetic")
    monkeypatch.setattr(Parser, "load", lambda run: system)
    nlp = spacy.blank("en")
    nlp.add_pipe("spigot", config={"model": "anywhere"})
    doc = nlp("The cat sees it. The dog hides")
    assert [sentence._.spigot_label for sentence in doc.sents] == [
        s.label for s in system("The cat sees it. The dog hides")
    ]


def test_without_a_model_it_is_the_english_one() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("spigot")
    assert [token.dep_ for token in nlp("The poet slept.")] == ["det", "nsubj", "ROOT", "punct"]


@pytest.mark.skipif(not can_fork(), reason="processes cannot be copied here")
def test_several_processes_do_not_wait_for_threads_they_lack() -> None:
    """A pipeline that has used two threads of torch, to be loaded or to parse, is copied without them."""
    script = (
        "import spacy, spigot_nlp, torch; torch.set_num_threads(2); nlp = spacy.blank('en')\n"
        "vars(nlp.add_pipe('spigot'))['parser'] = spigot_nlp.load(precision='float32')\n"
        "for _ in range(2):\n"
        "    found = nlp.pipe(['It rained. ' * 300] * 2, n_process=2)\n"
        "    print({token.dep_ for doc in found for token in doc} >= {'nsubj', 'ROOT', 'punct'})\n"
        "    nlp('The poet slept. ' * 200)\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert (said.stdout, said.returncode) == ("True\nTrue\n", 0), said.stderr


def test_a_document_needs_a_vocabulary() -> None:
    """spaCy would take whatever it is given, and end the process."""
    with pytest.raises(TypeError, match=r"vocab is 'NoneType'; it must be the vocabulary of a pipeline, nlp\.vocab\."):
        parser()("Rain fell.").to_spacy(None)  # pyright: ignore[reportArgumentType] # what is tested
