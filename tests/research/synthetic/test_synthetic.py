"""The generator of the built-in corpus: valid trees and graphs, labels that need structure, every construction."""

import gzip
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import spigot
import spigot_nlp.corpora
from research.synthetic import formalisms, polarity, splits, synthetic
from research.synthetic.__main__ import main, write_package
from research.synthetic.lexicon import SENTIMENTS
from spigot_nlp.data import Sentence, read

CORE = {"ARG1", "ARG2", "ARG3"}
KNOWN = synthetic(1000, seed=1)
OTHER = synthetic(1000, seed=1, domain="out")
BOTH = pytest.mark.parametrize("corpus", [KNOWN, OTHER], ids=["in", "out"])


def head(sentence: Sentence, word: int) -> int:
    assert sentence.heads is not None
    return sentence.heads[word - 1]


def depth(sentence: Sentence) -> int:
    def above(word: int) -> int:
        return 0 if word == 0 else 1 + above(head(sentence, word))

    return max(above(word) for word in range(1, len(sentence) + 1))


@BOTH
def test_every_tree_is_projective_with_a_single_root(corpus: list[Sentence]) -> None:
    lengths = torch.tensor([len(sentence) for sentence in corpus])
    trees = spigot.ProjectiveTrees()
    mask = trees.mask(lengths)
    z = torch.zeros(mask.shape)
    for number, sentence in enumerate(corpus):
        z[number, list(sentence.heads or ()), range(1, len(sentence) + 1)] = 1
    assert trees.contains(z, mask).all()


@BOTH
def test_every_graph_is_valid(corpus: list[Sentence]) -> None:
    for sentence in corpus:
        graph = sentence.graph
        assert graph is not None
        words = range(1, len(sentence) + 1)
        assert all(arc.predicate in words and arc.argument in words for arc in graph.arcs)
        assert all(arc.predicate != arc.argument for arc in graph.arcs)
        assert len({(arc.predicate, arc.argument) for arc in graph.arcs}) == len(graph.arcs), sentence
        core = Counter((arc.predicate, arc.role) for arc in graph.arcs if arc.role in CORE)
        assert max(core.values(), default=1) == 1, sentence
        assert 1 <= len(graph.tops) <= 2
        assert all(top in words for top in graph.tops)
        assert head(sentence, graph.tops[0]) == 0
    assert sum(len(sentence.graph.tops) == 1 for sentence in corpus if sentence.graph) > 0.9 * len(corpus)


@BOTH
def test_graphs_share_arguments_leave_words_out_and_repeat_modifiers(corpus: list[Sentence]) -> None:
    shared = outside = repeated = 0
    for sentence in corpus:
        assert sentence.graph is not None
        arcs = sentence.graph.arcs
        shared += max(Counter(arc.argument for arc in arcs if arc.role in CORE).values(), default=0) > 1
        touched = {word for arc in arcs for word in arc[:2]} | set(sentence.graph.tops)
        outside += len(touched) < len(sentence)
        roles = Counter((arc.predicate, arc.role) for arc in arcs if arc.role not in CORE)
        repeated += max(roles.values(), default=0) > 1
    assert shared > 0.3 * len(corpus)
    assert outside == len(corpus)
    assert repeated > 0


@BOTH
def test_words_tags_and_lengths(corpus: list[Sentence]) -> None:
    for sentence in corpus:
        assert sentence.tags is not None
        assert sentence.forms[-1] in ".?!"
        assert sentence.forms[0][0].isupper() or not sentence.forms[0][0].isalpha()
        assert len(sentence) <= 40
        for form, following in zip(sentence.forms, sentence.forms[1:], strict=False):
            assert not (form == "a" and following[0] in "aei"), sentence.forms
            assert not (form == "," and following in ",.?!;")
    tags = {tag for sentence in corpus for tag in sentence.tags or ()}
    wanted = "DT NN NNS NNP PRP PRP$ JJ RB IN TO MD VB VBD VBG VBN VBP VBZ CC CD POS WDT WP RP EX , ."
    assert tags >= set(wanted.split())
    ids = [sentence.id for sentence in corpus]
    assert len(set(ids)) == len(ids)


@BOTH
def test_labels_are_balanced_and_follow_the_structure(corpus: list[Sentence]) -> None:
    good = sum(sentence.label or 0 for sentence in corpus) / len(corpus)
    assert 0.4 < good < 0.6
    assert all(sentence.label == (polarity(sentence) > 0) for sentence in corpus)


@BOTH
def test_counting_good_and_bad_words_does_not_give_the_label(corpus: list[Sentence]) -> None:
    right = 0.0
    for sentence in corpus:
        pairs = zip(sentence.lemmas or (), sentence.tags or (), strict=True)
        count = sum(SENTIMENTS.get((word, tag[0]), 0) for word, tag in pairs)
        right += 0.5 if count == 0 else (count > 0) == bool(sentence.label)
    assert 0.55 < right / len(corpus) < 0.8


def test_same_seed_same_sentences_and_size_only_adds() -> None:
    assert synthetic(40, seed=9) == synthetic(80, seed=9)[:40]
    assert synthetic(20, seed=9) != synthetic(20, seed=10)
    assert synthetic(20, seed=9, domain="out") != synthetic(20, seed=9)
    assert synthetic(0) == []


def test_it_makes_the_files_of_the_package_to_the_byte(tmp_path: Path) -> None:
    """Of what is compressed, that is: libraries of gzip differ."""
    write_package(tmp_path)
    for file in tmp_path.iterdir():
        ours = Path(spigot_nlp.corpora.__file__).with_name(file.name).read_bytes()
        assert gzip.decompress(file.read_bytes()) == gzip.decompress(ours), file.name
        assert ours[4:8] == bytes(4)  # no time


def test_another_corpus_is_written_as_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"seed": 3, "train": 12, "dev": 3, "test": 0, "ood": 2}
    words = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    monkeypatch.setattr(sys, "argv", ["synthetic", "--out", str(tmp_path / "made"), *words])
    main()
    made = splits(**sizes)
    assert list(read(tmp_path / "made" / "train.jsonl.gz")) == list(map(formalisms, made.train))
    assert [s.forms for s in read(tmp_path / "made" / "ood.jsonl.gz")] == [s.forms for s in made.ood]


@given(st.integers(0, 2**63))
def test_any_seed_gives_whole_sentences(seed: int) -> None:
    for sentence in synthetic(2, seed=seed, domain="out"):
        assert sentence.label in (0, 1)
        assert sentence.heads is not None
        assert sentence.heads.count(0) == 1


def test_splits_are_disjoint_and_of_the_sizes_asked_for() -> None:
    parts = splits(seed=2, train=600, dev=150, test=150, ood=150)
    sets = [{sentence.forms for sentence in part} for part in (parts.train, parts.dev, parts.test, parts.ood)]
    assert [len(part) for part in sets] == [600, 150, 150, 150]
    assert len(set.union(*sets)) == 1050
    assert {sentence.id.split("-")[0] for sentence in parts.ood} == {"out"}


def test_out_of_domain_has_new_words_deeper_trees_and_other_frequencies() -> None:
    known = {word for sentence in KNOWN for word in sentence.lemmas or ()}
    new = [word for sentence in OTHER for word in sentence.lemmas or () if word not in known]
    assert len(new) > 0.1 * sum(map(len, OTHER))
    assert sum(map(depth, OTHER)) / len(OTHER) > 0.5 + sum(map(depth, KNOWN)) / len(KNOWN)

    def share(corpus: list[Sentence], name: str) -> float:
        return sum((sentence.relations or ()).count(name) for sentence in corpus) / len(corpus)

    for name in ("acl:relcl", "conj", "nsubj:pass", "xcomp"):
        assert share(OTHER, name) > 1.2 * share(KNOWN, name), name


def test_new_words_have_no_sentiment_to_guess() -> None:
    """Hardly any: a label out of domain must be decidable from what training showed."""
    known = {word for sentence in KNOWN for word in sentence.lemmas or ()}
    pairs = [pair for sentence in OTHER for pair in zip(sentence.lemmas or (), sentence.tags or (), strict=True)]
    loud = [word for word, tag in pairs if (word, tag[0]) in SENTIMENTS]
    assert sum(word not in known for word in loud) < 0.2 * len(loud)


@BOTH
def test_every_construction_occurs(corpus: list[Sentence]) -> None:
    relations = Counter(name for sentence in corpus for name in sentence.relations or ())
    wanted = """nsubj nsubj:pass obj iobj obl obl:agent nmod nmod:poss amod advmod det nummod compound compound:prt flat
        case mark aux aux:pass cop cc conj punct xcomp ccomp csubj advcl acl acl:relcl appos parataxis expl dep root"""
    assert set(wanted.split()) == set(relations)
    roles = Counter(arc.role for sentence in corpus if sentence.graph for arc in sentence.graph.arcs)
    expected = """ARG1 ARG2 ARG3 BV conj neg compound poss loc temp manner instr with part source author quant appos
        concession reason condition"""
    assert set(expected.split()) == set(roles)
    assert {sentence.forms[-1] for sentence in corpus} == {".", "?", "!"}


# Labels of sentences put together by hand.


def made(text: str) -> Sentence:
    """A sentence from lemma/tag/head/relation."""
    rows = [word.split("/") for word in text.split()]
    lemmas, tags, heads, relations = zip(*rows, strict=True)
    return Sentence(lemmas, lemmas, tags, tuple(map(int, heads)), relations)


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("film/NN/3/nsubj be/VBD/3/cop funny/JJ/0/root", 1),
        ("film/NN/4/nsubj be/VBD/4/cop not/RB/4/advmod funny/JJ/0/root", -1),
        # The subject's adjective lies outside the scope of the negation.
        ("funny/JJ/2/amod film/NN/5/nsubj be/VBD/5/cop not/RB/5/advmod long/JJ/0/root", 1),
        # What is said to be thought lies inside it.
        ("he/PRP/4/nsubj do/VBD/4/aux not/RB/4/advmod think/VB/0/root it/PRP/7/nsubj be/VBD/7/cop dull/JJ/4/ccomp", 1),
        ("he/PRP/2/nsubj deny/VBD/0/root it/PRP/5/nsubj be/VBD/5/cop dull/JJ/2/ccomp", 1),
        ("she/PRP/2/nsubj fail/VBD/0/root to/TO/4/mark please/VB/2/xcomp him/PRP/4/obj", -1),
        ("nobody/NN/2/nsubj admire/VBD/0/root it/PRP/2/obj", -1),
        ("it/PRP/2/nsubj have/VBD/0/root no/DT/4/det charm/NN/2/obj", -1),
        ("it/PRP/2/nsubj lack/VBD/0/root charm/NN/2/obj", -1),
        ("it/PRP/3/nsubj be/VBD/3/cop dull/JJ/0/root but/CC/5/cc funny/JJ/3/conj", 1),
        ("it/PRP/3/nsubj be/VBD/3/cop funny/JJ/0/root but/CC/5/cc dull/JJ/3/conj", -1),
        (
            "though/IN/4/mark it/PRP/4/nsubj be/VBD/4/cop funny/JJ/7/advcl he/PRP/7/nsubj be/VBD/7/cop rude/JJ/0/root",
            -1,
        ),
        ("though/IN/4/mark it/PRP/4/nsubj be/VBD/4/cop funny/JJ/7/advcl he/PRP/7/nsubj be/VBD/7/cop tall/JJ/0/root", 1),
        ("he/PRP/4/nsubj be/VBD/4/cop very/RB/4/advmod rude/JJ/0/root and/CC/6/cc kind/JJ/4/conj", -1),
        ("he/PRP/4/nsubj be/VBD/4/cop slightly/RB/4/advmod rude/JJ/0/root and/CC/6/cc kind/JJ/4/conj", 1),
        ("he/PRP/2/nsubj sleep/VBD/0/root", 0),
    ],
)
def test_polarity(text: str, sign: int) -> None:
    value = polarity(made(text))
    assert (value > 0) - (value < 0) == sign


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="size is -1; ask for 0"):
        synthetic(-1)
    with pytest.raises(ValueError, match="domain is 'web'; there are 'in' and 'out'"):
        synthetic(1, domain="web")
    with pytest.raises(ValueError, match="dev is -3"):
        splits(dev=-3)
    with pytest.raises(ValueError, match="lacks lemmas, tags or a tree"):
        polarity(Sentence(("Rain",)))
