"""`spigot tag`: tags and lemmas for a file."""

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import Annotated

import cyclopts

from spigot_nlp.cli.answers import format_beside
from spigot_nlp.cli.console import AsJson, Flag, FormatName, Skipped, print_json, print_table, progress
from spigot_nlp.data.formats import guess, read, write
from spigot_nlp.data.sentence import Sentence

_TAGGED = ("conllx", "conllu", "sdp", "sdp2014", "jsonl")  # formats with a place for tags
_EQUAL = {"tags": operator.eq, "lemmas": lambda wanted, got: wanted.lower() == got.lower()}


@dataclass
class TagReport:
    """What was tagged, and how well; `None` where the file had nothing to compare with.

    Attributes:
        sentences: How many.
        words: How many.
        tags: Share of the words that had a tag and got the same.
        lemmas: Share of the words that had a lemma and got the same, whatever their case.
        skipped: Malformed sentences left out.
    """

    sentences: int = 0
    words: int = 0
    tags: float | None = None
    lemmas: float | None = None
    skipped: int = 0


def tag(
    file: Path,
    /,
    *,
    out: Annotated[Path, cyclopts.Parameter(name=("--out", "-o"))],
    model: Path | None = None,
    train: Path | None = None,
    jackknife: Flag = False,
    save: Path | None = None,
    folds: int = 5,
    seed: int = 0,
    format: FormatName = None,
    skip_bad: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Give every word of a file a part-of-speech tag and a lemma.

    The tagger is one that was saved (--model), one trained on another file (--train), or, for training text, several
    that each tag the part they have not seen (--jackknife). If FILE had tags or lemmas they are replaced, and the
    share of equal ones is printed.

    Parameters
    ----------
    file
        What to tag.
    out
        Where to write the result. The file appears when it is complete.
    model
        A tagger that --save wrote.
    train
        A tagged file to train a tagger on.
    jackknife
        Tag FILE, which must have tags, by taggers trained on the rest of it: as noisy as new text will be.
    save
        Where to keep the tagger; with --jackknife, one trained on all of FILE.
    folds
        How many parts --jackknife makes.
    seed
        Where the random numbers of training start.
    skip_bad
        Leave out malformed sentences and say how many; without it they are an error.
    as_json
        Print the report as JSON.
    """
    from spigot_nlp.data.formats.files import check_target
    from spigot_nlp.data.tagging.lemmas import Lemmatiser, annotate
    from spigot_nlp.data.tagging.tagger import Tagger
    from spigot_nlp.data.tagging.tagger import jackknife as tag_by_folds

    _check_choice(model=model is not None, train=train is not None, jackknife=jackknife)
    if model is not None and save is not None:
        raise ValueError(
            f"--save {save} has nothing to save: --model {model} is a saved tagger already. Leave one out."
        )
    style = format_beside(out, file, format)
    if (style or guess(out)) not in _TAGGED:
        raise ValueError(f"{style or guess(out)} has no place for tags; name an --out like {out.stem}.conllu.")
    for path in (out, save):
        if path is not None:
            check_target(path)

    skipped = Skipped()
    hook = skipped if skip_bad else None
    originals: Iterable[Sentence] = read(file, format, skip_bad=hook)
    if jackknife:
        originals = list(originals)
        tagged = Lemmatiser().lemmatise(tag_by_folds(originals, folds=folds, seed=seed))
        if save is not None:
            Tagger.train(originals, seed=seed).save(save)
    else:
        if model is not None:
            tagger = Tagger.load(model)
        else:
            assert train is not None  # _check_choice has seen to it
            tagger = Tagger.train(read(train, format_beside(train, file, format), skip_bad=hook), seed=seed)
        if save is not None:
            tagger.save(save)
        # The tagger runs ahead by one chunk: that is all the two streams hold.
        originals, copies = tee(originals)
        tagged = annotate(copies, tagger)

    report = TagReport()
    write(progress(_compared(originals, tagged, report), "tagging"), out, style)
    report.skipped = skipped.count
    if as_json:
        print_json(report)
    else:
        _print_report(report)
    skipped.report()


def _check_choice(**given: bool) -> None:
    """One source of tags, no more and no less."""
    chosen = [f"--{name}" for name, value in given.items() if value]
    if len(chosen) != 1:
        what = f"{' and '.join(chosen)} exclude each other" if chosen else "there is no tagger"
        raise ValueError(f"{what}; give one of --model (a saved one), --train (a tagged file) and --jackknife.")


def _compared(originals: Iterable[Sentence], tagged: Iterable[Sentence], report: TagReport) -> Iterator[Sentence]:
    """Pass the tagged sentences on; the report is complete when they end."""
    right, known = {"tags": 0, "lemmas": 0}, {"tags": 0, "lemmas": 0}
    for before, after in zip(originals, tagged, strict=True):
        report.sentences += 1
        report.words += len(after)
        for field in right:
            wanted, got = getattr(before, field), getattr(after, field)
            if wanted is not None:
                known[field] += len(wanted)
                right[field] += sum(map(_EQUAL[field], wanted, got))
        yield after
    report.tags, report.lemmas = (right[field] / known[field] if known[field] else None for field in right)


def _print_report(report: TagReport) -> None:
    title = f"Tagged {report.sentences:,} sentences, {report.words:,} words"
    shares = {"tags": report.tags, "lemmas": report.lemmas}
    rows = [[name, f"{100 * share:.2f}"] for name, share in shares.items() if share is not None]
    if rows:
        print_table(f"{title}; as in the file, per cent", ["", "equal"], rows)
    else:
        print(f"{title}.")
