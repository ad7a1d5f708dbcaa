r"""How good answers from plain text are, where sentences and words were found as well: the measures of CoNLL 2018.

Every measure is precision, recall and F1 of something that both sides have any number of. With the words aligned, a
word is right if it is aligned with one that says the same. So an error in the division of a text costs on both sides,
and where there is none, UAS and LAS are the ordinary ones.

Whoever parses plain text may find other sentences and words than the treebank has. What can be compared is what covers
the same characters, white space left aside: a token or a sentence of one side is found by the other if it begins and
ends at the same ones. Words are aligned in the same way, but those of multiword tokens have no characters of their own
(`don't` may be spelt out as `do not`). So wherever either side has a multiword token, all words of both sides in the
stretch that it covers, with those that overlap it, are compared by their spelling: a longest common subsequence of
them is aligned, upper and lower case being the same.

References:
    Zeman et al. (2018), CoNLL 2018 shared task: multilingual parsing from raw text to Universal Dependencies, §4.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from spigot_nlp.data.formats.conll import ConllSource
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.surface import tokens_of, without_space
from spigot_nlp.data.text.tokens import words
from spigot_nlp.data.text.treebank import first_difference
from spigot_nlp.evaluation.counts import Score
from spigot_nlp.evaluation.metrics import known_value

Span = tuple[int, int]
"""Where something begins and ends among the characters of a text that are not white space."""

_SHOWN = 30  # characters of a text in a message
CONTENT = words(
    """acl advcl advmod amod appos ccomp compound conj csubj dep discourse dislocated expl fixed flat goeswith iobj list
    nmod nsubj nummod obj obl orphan parataxis reparandum root vocative xcomp"""
)
"""The relations of content words; the others are those of function words and punctuation."""
_UNIVERSAL = words("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X")
_NONE = "_"
_ROOT, _STRANGE = -1, -2  # as heads: no word; a word that is aligned with none


@dataclass(frozen=True)
class Surface:
    """Sentences laid out over the characters of their text.

    Attributes:
        text: All characters but white space.
        forms: The words of all sentences, one after another.
        sentences: Where each sentence is.
        tokens: Where each token is.
        words: Where each word is; the words of a multiword token are all where the token is.
        multiword: Which of the words belong to a multiword token.

    Example:
        >>> surface = Surface.of([Sentence(("It", "rained")), Sentence(("Why", "?"))])
        >>> surface.text, surface.sentences, surface.words
        ('ItrainedWhy?', [(0, 8), (8, 12)], [(0, 2), (2, 8), (8, 11), (11, 12)])
    """

    text: str
    forms: list[str]
    sentences: list[Span]
    tokens: list[Span]
    words: list[Span]
    multiword: list[bool]

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> "Surface":
        """Lays out sentences.

        Args:
            sentences: The sentences of a text, in order.
        """
        pieces: list[str] = []
        forms: list[str] = []
        places: list[Span] = []
        tokens: list[Span] = []
        words: list[Span] = []
        multiword: list[bool] = []
        end = 0
        for sentence in sentences:
            first = end
            for token in tokens_of(sentence):
                piece = without_space(token.text)
                span = (end, end + len(piece))
                end = span[1]
                pieces.append(piece)
                tokens.append(span)
                words += [span] * token.size
                multiword += [token.size > 1] * token.size
            places.append((first, end))
            forms += sentence.forms
        return cls("".join(pieces), forms, places, tokens, words, multiword)


def align(gold: Surface, predicted: Surface) -> list[tuple[int, int]]:
    """The words of one side that are words of the other.

    The time grows with the text, and with the square of the number of words under one multiword token.

    Args:
        gold: A text.
        predicted: The same text, divided otherwise.

    Returns:
        Pairs of a word of the first and one of the second, counted from 0 through the whole text, in order.

    Raises:
        ValueError: If the texts differ.

    Example:
        >>> left, right = Sentence(("New", "York's")), Sentence(("New", "York", "'s"))
        >>> align(Surface.of([left]), Surface.of([right]))
        [(0, 0)]
    """
    _check_same(gold, predicted)
    stretches = _stretches([span for side in (gold, predicted) for span, many in _words(side) if many])
    starts = [start for start, _ in stretches]
    alone: list[dict[Span, int]] = [{}, {}]
    inside: list[dict[int, list[int]]] = [{}, {}]
    for mine, within, side in zip(alone, inside, (gold, predicted), strict=True):
        for word, (start, end) in enumerate(side.words):
            k = bisect_right(starts, start) - 1
            if k >= 0 and end <= stretches[k][1] and start < end:
                within.setdefault(k, []).append(word)
            elif start < end:  # there is nothing to tell one word without characters from another by
                mine[start, end] = word
    pairs = [(word, alone[1][span]) for span, word in alone[0].items() if span in alone[1]]
    for k, left in inside[0].items():
        others = inside[1].get(k, [])
        spelt = ([side.forms[word].lower() for word in some] for side, some in ((gold, left), (predicted, others)))
        pairs += [(left[a], others[b]) for a, b in _common(*spelt)]
    return sorted(pairs)


def _words(side: Surface) -> Iterable[tuple[Span, bool]]:
    return zip(side.words, side.multiword, strict=True)


def _stretches(spans: Sequence[Span]) -> list[Span]:
    """What the multiword tokens of both sides cover: those that share a character are one stretch."""
    found: list[Span] = []
    for start, end in sorted(span for span in set(spans) if span[0] < span[1]):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _common(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """A longest common subsequence: the places of its members on either side."""
    longest = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]  # of what begins at each pair of places
    for a in reversed(range(len(left))):
        row, below = longest[a], longest[a + 1]
        for b in reversed(range(len(right))):
            row[b] = 1 + below[b + 1] if left[a] == right[b] else max(below[b], row[b + 1])
    found, a, b = [], 0, 0
    while a < len(left) and b < len(right):
        if left[a] == right[b]:
            found.append((a, b))
            a, b = a + 1, b + 1
        elif longest[a][b] == longest[a + 1][b]:
            a += 1
        else:
            b += 1
    return found


def _check_same(gold: Surface, predicted: Surface) -> None:
    if gold.text == predicted.text:
        return
    place = first_difference(gold.text, predicted.text)
    number = 1 + next((k for k, (_, end) in enumerate(gold.sentences) if place < end), len(gold.sentences) - 1)
    after = repr(gold.text[max(0, place - _SHOWN) : place]) if place else "its beginning"
    here, there = (
        repr(rest) if (rest := side.text[place : place + _SHOWN]) else "nothing" for side in (gold, predicted)
    )
    raise ValueError(
        f"the texts differ from character {place + 1} on, white space left aside: after {after}, in sentence {number}, "
        f"the gold text goes on with {here}, and the other with {there}; give answers about the same text."
    )


@dataclass(frozen=True)
class RawScores:
    """How well plain text was divided and annotated. What either side does not have is `None`.

    Attributes:
        aligned: How many words of both sides are aligned.
        tokens: Tokens as they are written, contractions being one.
        sentences: Sentences.
        words: Words of the trees.
        upos: Words with the right universal tag.
        xpos: Words with the right tag of the treebank's own.
        lemmas: Words with the right lemma; where the gold side has none, any is right.
        uas: Words whose head is aligned with the right one.
        las: The same with the right relation, its subtype left out.
        clas: The same among content words, those whose relation is none of function words or punctuation.
        blex: The same with the right lemma.

    Example:
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), relations=("nsubj", "root"))
        >>> scores = score_raw([rain], [rain])
        >>> list(scores.named), scores.las.f1
        (['Tokens', 'Sentences', 'Words', 'UAS', 'LAS', 'CLAS'], 1.0)
    """

    aligned: int
    tokens: Score
    sentences: Score
    words: Score
    upos: Score | None
    xpos: Score | None
    lemmas: Score | None
    uas: Score | None
    las: Score | None
    clas: Score | None
    blex: Score | None

    @property
    def named(self) -> dict[str, Score]:
        """What there is, by the name that the shared task gave it."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "aligned"}
        return {
            name.capitalize() if name in ("tokens", "sentences", "words", "lemmas") else name.upper(): value
            for name, value in values.items()
            if value is not None
        }


def score_raw(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> RawScores:
    """Everything about answers from plain text.

    Args:
        gold: The sentences of a text, from CoNLL-U.
        predicted: The same text as somebody else divided and annotated it: from a `Parser`, or from CoNLL-U.

    Raises:
        ValueError: If the texts differ, or some sentences of a side have trees and others not.

    Example:
        >>> left = [Sentence(("It", "rained", "."), heads=(2, 0, 2)), Sentence(("Why", "?"), heads=(0, 1))]
        >>> right = [Sentence(("It", "rained", ".", "Why", "?"), heads=(2, 0, 2, 2, 4))]
        >>> scores = score_raw(left, right)
        >>> scores.words.f1, scores.sentences.f1, scores.uas.f1
        (1.0, 0.0, 0.8)
    """
    left, right = _Side.of(list(gold), "gold data"), _Side.of(list(predicted), "prediction")
    pairs = align(left.surface, right.surface)
    mine, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    partner = dict(zip(theirs, mine, strict=True)) | {_ROOT: _ROOT}

    def both(name: str) -> tuple[list[str], list[str]] | None:
        """What aligned words have in a column."""
        columns = left.columns.get(name), right.columns.get(name)
        if columns[0] is None or columns[1] is None:
            return None
        return [columns[0][word] for word in mine], [columns[1][word] for word in theirs]

    def score(hits: list[bool] | None) -> Score | None:
        return None if hits is None else Score.of(sum(hits), len(right.surface.words), len(left.surface.words))

    def content(hits: list[bool] | None) -> Score | None:
        if hits is None or relations is None:
            return None
        correct = sum(hit and name in CONTENT for hit, name in zip(hits, relations[0], strict=True))
        return Score.of(correct, *(sum(map(CONTENT.__contains__, side.columns["relations"])) for side in (right, left)))

    lemmas, relations = both("lemmas"), both("relations")
    attached = None
    if left.heads is not None and right.heads is not None:
        attached = [left.heads[a] == partner.get(right.heads[b], _STRANGE) for a, b in pairs]
    labelled = _all(attached, _same(relations))
    known = None if lemmas is None else [one in (_NONE, other) for one, other in zip(*lemmas, strict=True)]
    return RawScores(
        aligned=len(pairs),
        tokens=_spans(left.surface.tokens, right.surface.tokens),
        sentences=_spans(left.surface.sentences, right.surface.sentences),
        words=Score.of(len(pairs), len(right.surface.words), len(left.surface.words)),
        upos=score(_same(both("upos"))),
        xpos=score(_same(both("xpos"))),
        lemmas=score(known),
        uas=score(attached),
        las=score(labelled),
        clas=content(labelled),
        blex=content(_all(labelled, known)),
    )


@dataclass(frozen=True)
class _Side:
    """One side's words, through the whole text: where they are, their heads, and their columns by name."""

    surface: Surface
    heads: list[int] | None
    columns: dict[str, list[str]]

    @classmethod
    def of(cls, sentences: Sequence[Sentence], side: str) -> "_Side":
        has_trees, has_relations = (any(s.get(name) is not None for s in sentences) for name in ("heads", "relations"))
        columns: dict[str, list[str]] = {}
        heads: list[int] = []
        count = 0
        for number, sentence in enumerate(sentences, 1):
            name = f"sentence {sentence.id or number}"
            if has_trees:
                known = known_value(sentence.heads, name, side, "heads")
                heads += [count + head - 1 if head else _ROOT for head in known]
            if has_relations:
                known_value(sentence.relations, name, side, "relations")
            for column, values in _values(sentence).items():
                # Sentences before this one may not have had this column.
                mine = columns.setdefault(column, [])
                mine += [_NONE] * (count - len(mine))
                mine += values
            count += len(sentence)
        for values in columns.values():
            values += [_NONE] * (count - len(values))
        if "upos" not in columns and _UNIVERSAL.issuperset(columns.get("xpos", [_NONE])):
            columns["upos"] = columns.pop("xpos")
        if has_relations:
            columns["relations"] = [relation.partition(":")[0] for relation in columns["relations"]]
        return cls(Surface.of(sentences), heads if has_trees else None, columns)


def _values(sentence: Sentence) -> dict[str, tuple[str, ...]]:
    """The columns that a sentence has, by name."""
    coarse = isinstance(sentence.source, ConllSource) and not sentence.source.fine and sentence.upos is None
    columns = {
        "upos": sentence.tags if coarse else sentence.upos,
        "xpos": None if coarse else sentence.tags,
        "lemmas": sentence.lemmas,
        "relations": sentence.relations,
    }
    return {name: values for name, values in columns.items() if values is not None}


def _same(columns: tuple[list[str], list[str]] | None) -> list[bool] | None:
    return None if columns is None else [one == other for one, other in zip(*columns, strict=True)]


def _all(*judgements: list[bool] | None) -> list[bool] | None:
    """What all of some judgements say is right; `None` if one of them cannot say."""
    known = [hits for hits in judgements if hits is not None]
    return [all(hits) for hits in zip(*known, strict=True)] if len(known) == len(judgements) else None


def _spans(gold: Sequence[Span], predicted: Sequence[Span]) -> Score:
    return Score.of(len(set(gold) & set(predicted)), len(predicted), len(gold))
