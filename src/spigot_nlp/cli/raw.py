"""`--raw`: answers from plain text, where sentences and words had to be found as well."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spigot_nlp.cli.answers import read_gold
from spigot_nlp.cli.console import Skipped, listed, percent, progress, say, show_table
from spigot_nlp.data.formats import guess

if TYPE_CHECKING:
    from spigot_nlp.evaluation import RawScores
    from spigot_nlp.models.parser import Parser

FORMAT = "conllu"
"""What says how words were written: all other formats have spaces between them."""
_OF_WORDS = ("UPOS", "XPOS", "Lemmas", "UAS", "LAS")
"""What every aligned word is judged by."""


def check_raw(files: Iterable[Path], format: str | None, others: dict[str, bool]) -> None:
    """Complain before the work about files that do not say what their text is, and about what has no meaning with it.

    Args:
        files: The files.
        format: Their format, if their names do not tell.
        others: Which other options were given, by name.

    Raises:
        ValueError: If there is anything to complain about.

    Example:
        >>> check_raw([Path("gold.sdp")], None, {})
        Traceback (most recent call last):
        ValueError: --raw needs the text of gold.sdp, and the format sdp does not say what it is; give a CoNLL-U file.
    """
    if given := [name for name, is_given in others.items() if is_given]:
        raise ValueError(f"--raw scores words, tags, lemmas and trees; leave out {listed(given)}, or leave out --raw.")
    for file in files:
        if (known := format or guess(file)) != FORMAT:
            raise ValueError(
                f"--raw needs the text of {file}, and the format {known} does not say what it is; give a CoNLL-U file."
            )


def evaluate_raw(parser: "Parser", run: Path, file: Path, format: str | None, skipped: Skipped | None) -> "RawScores":
    """Have a system parse the text of a gold file, as `spigot parse` would, and score what it finds.

    Args:
        parser: The system.
        run: What it is called.
        file: A CoNLL-U file.
        format: Its format, if its name does not tell.
        skipped: Told of malformed sentences, which are then left out.

    Raises:
        ValueError: If the file says two things about its text, or the system cannot read plain text.
    """
    from spigot_nlp.data.text.treebank import treebank_text
    from spigot_nlp.evaluation import score_raw

    if parser.reads_gold:
        raise ValueError(f"{run} reads the right trees of sentences, and plain text has none; leave out --raw.")
    gold = read_gold(file, format, enhanced=False, skip_bad=skipped)
    try:
        text = "".join(treebank_text(gold))
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    if parser.misses_tags:
        say(f"{run} was trained on the tags of its files, and has no tagger for plain text, so it does without tags.")
    made = [name for name in parser.gives if name not in parser.finds]
    found = []
    for sentence in progress(parser.pipe(parser.conventions.sentences(text), plain=True), "parsing"):
        for name in made:
            sentence = sentence.put(name, None)
        found.append(sentence)
    return score_raw(gold, found)


def plain_raw(scores: "RawScores") -> dict[str, Any]:
    """The scores for JSON: what there is, and nothing else.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.evaluation import score_raw
        >>> list(plain_raw(score_raw([Sentence(("Rain",))], [Sentence(("Rain",))])))
        ['aligned', 'tokens', 'sentences', 'words']
    """
    from dataclasses import asdict

    return {name: value for name, value in asdict(scores).items() if value is not None}


def print_raw(scores: "RawScores") -> None:
    """Print the table of the shared task.

    Args:
        scores: The numbers.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.evaluation import score_raw
        >>> print_raw(score_raw([Sentence(("Rain",))], [Sentence(("Rain",))]))  # doctest: +ELLIPSIS
        Plain text: 1 sentences and 1 words, per cent
        ...
    """
    from spigot_nlp.tables import plain_table

    rows = []
    for name, one in scores.named.items():
        share = percent(one.correct / max(scores.aligned, 1)) if name in _OF_WORDS else ""
        rows.append([name, *map(percent, (one.precision, one.recall, one.f1)), share])
    title = f"Plain text: {scores.sentences.gold} sentences and {scores.words.gold} words, per cent"
    note = (
        "Sentences and words were found in the text, and are aligned with the right ones by their characters; the "
        "measures are those of CoNLL 2018. The last column is the share of aligned words."
    )
    show_table(plain_table(title, ["", "precision", "recall", "F1", "of aligned"], rows, note))
