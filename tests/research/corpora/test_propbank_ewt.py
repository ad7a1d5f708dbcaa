"""Documents of a treebank and of PropBank, put together; the sentences are of our own."""

from pathlib import Path

import pytest

from research.corpora.propbank_ewt import Skeleton, Span, build, read_skeletons
from spigot_nlp.data import Arc, FormatError, Graph, Sentence, merge, read, write
from spigot_nlp.data.formats.conll import ConllSource

FALL = (
    ("Rain", "rain", "NOUN", "NN", 2, "nsubj"),
    ("fell", "fall", "VERB", "VBD", 0, "root"),
    (".", ".", "PUNCT", ".", 2, "punct"),
)
WET = (
    ("The", "the", "DET", "DT", 2, "det"),
    ("frogs", "frog", "NOUN", "NNS", 3, "nsubj"),
    ("sang", "sing", "VERB", "VBD", 0, "root"),
    (",", ",", "PUNCT", ",", 6, "punct"),
    ("and", "and", "CCONJ", "CC", 6, "cc"),
    ("swam", "swim", "VERB", "VBD", 3, "conj"),
)


def sentence(rows: tuple[tuple[str, str, str, str, int, str], ...], name: str, *comments: str) -> Sentence:
    """A sentence as a treebank has it, the enhanced graph the same as the tree."""
    forms, lemmas, coarse, tags, heads, relations = zip(*rows, strict=True)
    arcs = [Arc(head, word, relation) for word, (head, relation) in enumerate(zip(heads, relations, strict=True), 1)]
    graph = Graph.of([arc for arc in arcs if arc.predicate], tops=[arc.argument for arc in arcs if not arc.predicate])
    source = ConllSource(universal=True, size=len(forms), comments=(*comments, f"# sent_id = {name}"))
    return Sentence(
        forms, lemmas, tags, heads=heads, relations=relations, graph=graph, id=name, source=source, upos=coarse
    )


def document(name: str, *bodies: tuple[tuple[str, str, str, str, int, str], ...]) -> list[Sentence]:
    """Sentences with the comment that begins a document."""
    return [
        sentence(rows, f"{name}-{number:04}", *([f"# newdoc id = {name}"] if number == 1 else []))
        for number, rows in enumerate(bodies, 1)
    ]


def treebank(folder: Path, **splits: list[Sentence]) -> Path:
    """A clone of UD_English-EWT with these sentences."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        write(splits.get(split, []), folder / f"en_ewt-ud-{split}.conllu")
    (folder / "LICENSE.txt").write_text("Share alike.\n", encoding="utf-8")
    return folder


def skeletons(folder: Path, **documents: list[list[str]]) -> Path:
    """A clone of propbank-release: lines `TAG ROLESET ARGUMENTS...` for the sentences of each document `genre_name`."""
    for name, sentences in documents.items():
        genre, _, rest = name.partition("_")
        place = folder / "data/google/ewt" / genre / "00" / f"{rest}.xml.gold_skel"
        place.parent.mkdir(parents=True, exist_ok=True)
        blocks = []
        for number, rows in enumerate(sentences):
            lines = []
            for token, row in enumerate(rows):
                tag, roleset, *arguments = row.split()
                lines.append(f"{name} {number} {token} [WORD] {tag} * - {roleset} {' '.join(arguments)} ")
            blocks.append("\n".join(lines))
        place.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return folder


FELL = ["NN - (ARG1*)", "VBD fall.01 (V*)", ". - *"]
SANG = [
    "DT - (ARG0* (ARG0*",
    "NNS - *) *)",
    "VBD sing.01 (V*) *",
    ", - (ARGM-ADV* *",
    "CC - * *",
    "VBD swim.01 *) (V*)",
]


@pytest.fixture
def ud(tmp_path: Path) -> Path:
    weblogs = [f"weblog-storm{k}" for k in range(4)]
    return treebank(
        tmp_path / "ud",
        train=[*document("email-frogs", WET, FALL), *document(weblogs[0], FALL), *document(weblogs[1], FALL)],
        dev=[*document("answers-rain", FALL), *document(weblogs[2], WET)],
        test=[*document("reviews-unread", FALL), *document("reviews-rain", FALL), *document(weblogs[3], FALL)],
    )


@pytest.fixture
def propbank(tmp_path: Path) -> Path:
    weblogs = {f"weblog_storm{k}": [SANG if k == 2 else FELL] for k in range(4)}
    return skeletons(tmp_path / "pb", email_frogs=[SANG, FELL], answers_rain=[FELL], reviews_rain=[FELL], **weblogs)


def test_spans_become_the_words_that_head_them(ud: Path, propbank: Path, tmp_path: Path) -> None:
    build(ud, propbank, tmp_path)
    frogs, rain = read(tmp_path / "propbank-ewt" / "train.sdp")
    assert frogs.graph is not None
    # Of ", and swam" the comma and the conjunction hang on the verb; nothing but the verb has its head outside.
    assert frogs.graph.arcs == (Arc(3, 2, "ARG0"), Arc(3, 6, "ARGM-ADV"), Arc(6, 2, "ARG0"))
    assert (frogs.graph.tops, frogs.graph.predicates) == ((3,), (3, 6))
    assert frogs.graph.frames == ("_", "_", "sing.01", "_", "_", "swim.01")
    assert (frogs.id, frogs.lemmas and frogs.lemmas[1]) == ("email-frogs-0001", "frog")
    assert rain.graph is not None
    assert rain.graph.arcs == (Arc(2, 1, "ARG1"),)


def test_weblogs_are_out_of_domain_and_every_second_is_held_back(ud: Path, propbank: Path, tmp_path: Path) -> None:
    counts = build(ud, propbank, tmp_path)
    names = {
        part: [s.id for s in read(tmp_path / "propbank-ewt" / f"{part}.conllu")]
        for part in ("train", "dev", "test", "ood")
    }
    assert names == {
        "train": ["email-frogs-0001", "email-frogs-0002"],
        "dev": ["answers-rain-0001"],
        "test": ["reviews-rain-0001"],
        "ood": ["weblog-storm0-0001", "weblog-storm2-0001"],
    }
    assert counts["weblog sentences held back"] == 2
    assert counts["documents without PropBank"] == 1


def test_trees_are_as_the_treebank_has_them(ud: Path, propbank: Path, tmp_path: Path) -> None:
    path = ud / "en_ewt-ud-dev.conllu"
    text = path.read_text(encoding="utf-8")
    first = text.index("1\tRain")
    path.write_text(f"{text[:first]}1-2\tRainfell\t{chr(9).join('_' * 8)}\n{text[first:]}", encoding="utf-8")
    build(ud, propbank, tmp_path)
    made = (tmp_path / "propbank-ewt" / "dev.conllu").read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8").startswith(made)
    assert "1-2\tRainfell" in made
    both = list(merge(read(tmp_path / "propbank-ewt" / "dev.conllu"), read(tmp_path / "propbank-ewt" / "dev.sdp")))
    assert both[0].graph is not None
    assert both[0].heads == (2, 0, 2)


def test_the_two_may_be_tokenised_and_divided_otherwise(tmp_path: Path) -> None:
    ud = treebank(tmp_path / "ud", train=document("email-frogs", FALL, WET))
    # One sentence there, two here; and a token that the treebank does not have, with an argument on it alone.
    joined = [
        *(f"{row} * * *" for row in FELL[:2]),
        "XX - (ARG2*) * * *",
        f"{FELL[2]} * * *",
        *(f"{row.split()[0]} {row.split()[1]} * {' '.join(row.split()[2:])} *" for row in SANG[:5]),
        "VBD swim.01 * *) (V*) (ARG3*)",
    ]
    propbank = skeletons(tmp_path / "pb", email_frogs=[joined])
    counts = build(ud, propbank, tmp_path)
    rain, frogs = read(tmp_path / "propbank-ewt" / "train.sdp")
    assert rain.graph is not None
    assert frogs.graph is not None
    assert rain.graph.arcs == (Arc(2, 1, "ARG1"),)
    assert Arc(3, 2, "ARG0") in frogs.graph.arcs
    assert counts["arguments not aligned"] == 1
    assert (counts["tokens"], counts["tokens aligned"]) == (10, 9)


def test_an_argument_that_is_headed_by_its_predicate_is_none(tmp_path: Path) -> None:
    ud = treebank(tmp_path / "ud", train=document("email-rain", FALL))
    rows = ["NN - (ARG1(ARG0*)", "VBD fall.01 (V*)", ". - *)"]
    counts = build(ud, skeletons(tmp_path / "pb", email_rain=[rows]), tmp_path)
    (rain,) = read(tmp_path / "propbank-ewt" / "train.sdp")
    assert rain.graph is not None
    assert rain.graph.arcs == (Arc(2, 1, "ARG0"),)
    assert counts["arguments of themselves"] == 1


def written(folder: Path, *rows: str) -> Path:
    path = folder / "storm.gold_skel"
    path.write_text("\n".join(f"d 0 {k} [WORD] {row}" if row else "" for k, row in enumerate(rows)), encoding="utf-8")
    return path


def test_nested_and_continued_arguments(tmp_path: Path) -> None:
    rows = ["NN * - - (ARG0(ARG1*)", "NN * - - *)", "VBD * blow blow.01 (V*)", "RP * - - (C-V*)", "", "UH * - -"]
    first, second = read_skeletons(written(tmp_path, *rows))
    assert first.propositions == ((2, "blow.01", (Span(0, 0, "ARG1"), Span(0, 1, "ARG0"))),)
    assert first.tags == ("NN", "NN", "VBD", "RP")
    assert second == Skeleton(("UH",), ())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["NN * - - *", "VBD * - - (ARG1*"], r"storm.gold_skel:2: the argument 'ARG1' is never closed\."),
        (["NN * - - *", "VBD * - - *)"], r":2: '\*\)' closes an argument that was never opened\."),
        (["NN * - - *", "VBD * - -"], r":2: 8 columns where there should be 9, as in the first line"),
        (["NN * -"], r":1: 7 columns where there should be at least 8\."),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, rows: list[str], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        list(read_skeletons(written(tmp_path, *rows)))
