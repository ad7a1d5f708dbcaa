"""`spigot corpus`: the corpora that configurations name, from clones of public repositories."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import cyclopts

from spigot_nlp.cli.console import AsJson, print_json, print_table, progress, say

if TYPE_CHECKING:
    from spigot_nlp.corpora.builders import Built

corpus = cyclopts.App(
    name="corpus",
    help="Build the corpora that the configurations name, from clones of public repositories.",
)

Out: TypeAlias = Annotated[
    Path,
    cyclopts.Parameter(name=("--out", "-o"), help="The folder that holds your corpora; each gets a folder in it."),
]
"""`--out`: what SPIGOT_DATA names afterwards."""

Replace: TypeAlias = Annotated[
    bool,
    cyclopts.Parameter(
        negative="", help="Let other files in the place of these go; without it they are an error and nothing changes."
    ),
]
"""`--replace`: whether files that differ may go."""


@corpus.command
def propbank_ewt(*, ud: Path, propbank: Path, out: Out, replace: Replace = False, as_json: AsJson = False) -> None:
    """Build PropBank's graphs and the trees of the English Web Treebank: propbank-ewt.

    Parameters
    ----------
    ud
        A clone of https://github.com/UniversalDependencies/UD_English-EWT.
    propbank
        A clone of https://github.com/propbank/propbank-release.
    as_json
        Print what was built as JSON.
    """
    from spigot_nlp.corpora.builders import propbank_ewt

    _print_built(propbank_ewt(ud, propbank, out, replace=replace, watch=progress), as_json=as_json)


@corpus.command
def redwoods_dm(*, erg: Path, out: Out, replace: Replace = False, as_json: AsJson = False) -> None:
    """Build the DM graphs and trees of the Redwoods treebank: redwoods-dm. Needs torch-spigot[corpora].

    Parameters
    ----------
    erg
        A clone of https://github.com/delph-in/erg.
    as_json
        Print what was built as JSON.
    """
    from spigot_nlp.corpora.builders import redwoods_dm

    _print_built(redwoods_dm(erg, out, replace=replace, watch=progress), as_json=as_json)


@corpus.command
def open_sdp(
    folder: Path,
    /,
    *,
    out: Out,
    graphs: Literal["dm", "psd", "pas"] = "dm",
    replace: Replace = False,
    as_json: AsJson = False,
) -> None:
    """Divide the graphs of the shared task of 2015 into training, development and test data: sdp2015.

    Parameters
    ----------
    folder
        What osdp-12.tgz of http://hdl.handle.net/11234/1-1956 unpacks to; for PSD and PAS, LDC2016T10.
    graphs
        Which graphs to take.
    as_json
        Print what was built as JSON.
    """
    from spigot_nlp.corpora.builders import open_sdp

    _print_built(open_sdp(folder, out, graphs=graphs, replace=replace, watch=progress), as_json=as_json)


@corpus.command
def enhanced_ud(
    folder: Path,
    /,
    *,
    out: Out,
    name: str = "",
    labels: Literal["whole", "subtypes", "universal"] = "whole",
    replace: Replace = False,
    as_json: AsJson = False,
) -> None:
    """Build the trees of a UD treebank and its enhanced dependencies as graphs: ud-ewt, ud-pud.

    Parameters
    ----------
    folder
        A clone of a treebank, such as https://github.com/UniversalDependencies/UD_English-EWT.
    name
        What to call it; by default after the treebank, ud-ewt for UD_English-EWT.
    labels
        Labels as they are (nmod:of), with the subtypes of the basic trees (nsubj:pass), or universal (nmod, nsubj).
    as_json
        Print what was built as JSON.
    """
    from spigot_nlp.corpora.builders import enhanced_ud

    built = enhanced_ud(folder, out, name=name, labels=labels, replace=replace, watch=progress)
    _print_built(built, as_json=as_json)


@corpus.command
def sst(folder: Path, /, *, out: Out, replace: Replace = False, as_json: AsJson = False) -> None:
    """Build the Stanford Sentiment Treebank: sst.

    Parameters
    ----------
    folder
        What https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip unpacks to, or a clone of
        https://github.com/munikarmanish/RNTN: train.txt, dev.txt and test.txt, with a tree on each line.
    as_json
        Print what was built as JSON.
    """
    from spigot_nlp.corpora.builders import sst

    _print_built(sst(folder, out, replace=replace, watch=progress), as_json=as_json)


@corpus.command
def rt_polarity(folder: Path, /, *, out: Out, replace: Replace = False, as_json: AsJson = False) -> None:
    """Build the sentence polarity data of film reviews: rt-polarity.

    Parameters
    ----------
    folder
        What https://www.cs.cornell.edu/people/pabo/movie-review-data/rt-polaritydata.tar.gz unpacks to: rt-polarity.pos
        and rt-polarity.neg, with a snippet on each line.
    as_json
        Print what was built as JSON.
    """
    from spigot_nlp.corpora.builders import rt_polarity

    _print_built(rt_polarity(folder, out, replace=replace, watch=progress), as_json=as_json)


@corpus.command
def glove(
    file: Path,
    /,
    *,
    words_of: Annotated[tuple[Path, ...], cyclopts.Parameter(consume_multiple=True)],
    out: Out,
    dimensions: int = 100,
    replace: Replace = False,
    as_json: AsJson = False,
) -> None:
    """Cut word vectors down to the words that occur in the corpora: glove.

    Parameters
    ----------
    file
        glove.6B.zip of https://nlp.stanford.edu/projects/glove, or vectors as text, plain or gzipped.
    words_of
        The folder of the corpora, or several folders and files.
    dimensions
        Which of the files of a zip file to take.
    as_json
        Print what was built as JSON.
    """
    from spigot_nlp.corpora.builders import glove

    built = glove(file, words_of, out, dimensions=dimensions, replace=replace, watch=progress)
    _print_built(built, as_json=as_json)


def _print_built(built: "Built", *, as_json: bool) -> None:
    if as_json:
        print_json({"folder": built.folder, "unchanged": built.unchanged, **built.manifest()})
        return
    rows = [
        [name, f"{part.sentences:,}", f"{part.words:,}" if part.words else "", _number(part.arcs)]
        for name, part in built.parts.items()
    ]
    print_table(f"{built.corpus} ({built.licence})", ["", "sentences", "words", "arcs"], rows)
    if said := [f"{what}: {number:,}" for what, number in built.counts.items()]:
        print("; ".join(said))
    where = "was there already, the same, in" if built.unchanged else "is in"
    say(f"{built.corpus} {where} {built.folder}")
    say(f"For the configurations: export SPIGOT_DATA={built.folder.parent.resolve()}")


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
