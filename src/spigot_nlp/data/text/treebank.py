r"""The plain text of a treebank: what its sentences were before anybody divided them.

A CoNLL-U file has the text of each sentence (`# text`), or else the words and where no space follows them
(`SpaceAfter=No`), and marks where documents and paragraphs begin (`# newdoc`, `# newpar`). Paragraphs are put back with
a blank line between them. Other line breaks are lost, unless the file has them (`SpacesAfter=\n`), so that a heading or
a salutation that stood on a line of its own may stand in the middle of one.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate

from spigot_nlp.data.formats.conll import ConllSource
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.spacing import spacing_of
from spigot_nlp.data.text.surface import tokens_of, without_space

_PARAGRAPH = re.compile(r"#\s*new(?:par|doc)\b")
_TEXT = re.compile(r"#\s*text\s*=\s*(.*)")
_PLAIN = frozenset(("", " "))
_SHOWN = 30  # characters of a text in a message


def treebank_text(sentences: Iterable[Sentence]) -> Iterator[str]:
    r"""The text of the sentences of a CoNLL-U file, as it comes: a piece for each of them.

    The pieces are what `Conventions.sentences` takes.

    Args:
        sentences: The sentences, in order.

    Raises:
        ValueError: If the text of a sentence is not that of its words, or nothing is known about its white space.

    Example:
        >>> from spigot_nlp.data.formats.conll import parse_conllu
        >>> from spigot_nlp.data.formats.files import Block
        >>> lines = ["1-2\tIt's", "1\tIt", "2\t's", "3\tlate"], ["# newpar", "1\tGo"]
        >>> blocks = ([line + "\t_" * 8 if line[0] != "#" else line for line in block] for block in lines)
        >>> "".join(treebank_text(parse_conllu(Block(block)) for block in blocks))
        "It's late \n\nGo "
    """
    for number, sentence in enumerate(sentences, 1):
        comments = sentence.source.comments if isinstance(sentence.source, ConllSource) else ()
        if number > 1 and any(map(_PARAGRAPH.match, comments)):
            yield "\n\n"
        yield _text(sentence, number, comments)


def first_difference(one: str, other: str) -> int:
    """Where two texts begin to differ: the number of characters that they have in common.

    Example:
        >>> first_difference("rain", "rail"), first_difference("rain", "rainy")
        (3, 4)
    """
    return next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _text(sentence: Sentence, number: int, comments: Iterable[str]) -> str:
    spacing, tokens = spacing_of(sentence), list(tokens_of(sentence))
    ends = accumulate(token.size for token in tokens)
    pieces = (token.text + spacing.after[end - 1] for token, end in zip(tokens, ends, strict=True))
    rebuilt = spacing.before + "".join(pieces)
    written = next((match[1] for match in map(_TEXT.match, comments) if match), None)
    if written is None:
        return rebuilt
    known, words = without_space(written), without_space(rebuilt)
    if known != words:
        k = first_difference(known, words)
        raise ValueError(
            f"the text of sentence {sentence.id or number} goes on with {known[k : k + _SHOWN]!r} where its words "
            f"go on with {words[k : k + _SHOWN]!r}; mend its `# text`, or leave it out."
        )
    # Where the file has more than spaces between words, it knows better.
    return written + spacing.after[-1] if not spacing.before and _PLAIN.issuperset(spacing.after) else rebuilt
