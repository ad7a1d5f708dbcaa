"""`spigot convert`: treebanks of Universal Dependencies, with their enhanced dependencies as graphs."""

from pathlib import Path
from typing import Annotated, Literal

import cyclopts

from spigot_nlp.cli.console import AsJson, Flag, print_json, print_table


def convert(
    source: Path,
    /,
    *,
    out: Annotated[Path, cyclopts.Parameter(name=("--out", "-o"))],
    labels: Literal["whole", "subtypes", "universal"] = "whole",
    replace: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Convert a treebank of Universal Dependencies: trees as they are, enhanced dependencies as graphs.

    Parameters
    ----------
    source
        A clone of a treebank, such as https://github.com/UniversalDependencies/UD_English-EWT, or a CoNLL-U file.
    out
        The folder for train.conllu, train.sdp and so on; for a file, the file to write, such as mine.sdp.
    labels
        Labels as they are (nmod:of), with the subtypes of the basic trees (nsubj:pass), or universal (nmod, nsubj).
    replace
        Let files that are there go; without it they are an error, and nothing changes.
    as_json
        Print what was written as JSON.
    """
    from spigot_nlp.corpora.treebank import convert_treebank

    found = convert_treebank(source, out, labels=labels, overwrite=replace)
    if as_json:
        print_json({str(path): one for path, one in found.items()})
        return
    columns = ["", "sentences", "words", "arcs", "of empty nodes", "second labels"]
    rows = [[str(path), *(f"{number:,}" for number in vars(one).values())] for path, one in found.items()]
    print_table("Graphs, and arcs that these leave out", columns, rows)
