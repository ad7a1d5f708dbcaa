"""Small folders that look like the repositories corpora are built from. The sentences are of our own."""

from pathlib import Path

from spigot_nlp.data.formats import write
from spigot_nlp.data.formats.conll import ConllSource
from spigot_nlp.data.sentence import Arc, Graph, Sentence

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
