"""Whether a sentence says good or bad, read off its tree."""

from research.synthetic.lexicon import DEGREES, SENTIMENTS, SHIFTERS
from spigot_nlp.data.sentence import Sentence

_WEIGHTS = {"J": (4.0, 6.0), "N": (4.0, 6.0), "V": (5.0, 7.0), "R": (3.0, 3.0)}
_OUTSIDE = ("nsubj", "nsubj:pass", "csubj", "acl", "acl:relcl", "advcl", "appos", "nmod:poss")
_CONCESSIONS = ("although", "though")
_DENIALS = ("not", "never")


def polarity(sentence: Sentence) -> float:
    """How good a sentence of the built-in corpus sounds: the sign is its label.

    The value of a word is its own sentiment, times that of its adverb of degree, and the values of its dependents.
    A negation or a verb such as *fail* turns round the word and its complements. It leaves alone what lies outside its
    scope (subjects, relative and adverbial clauses, further conjuncts), which counts half. Behind *but* a conjunct
    outweighs what comes before it, and a clause with *although* counts only where there is nothing else.

    Args:
        sentence: With lemmas, tags, heads and relations.

    Returns:
        Positive if good, negative if bad, 0 if neither.

    Example:
        >>> film = Sentence(
        ...     forms=("The", "film", "was", "not", "funny"), lemmas=("the", "film", "be", "not", "funny"),
        ...     tags=("DT", "NN", "VBD", "RB", "JJ"), heads=(2, 5, 5, 5, 0),
        ...     relations=("det", "nsubj", "cop", "advmod", "root"))
        >>> polarity(film)
        -4.0
    """
    lemmas, tags, heads, relations = sentence.lemmas, sentence.tags, sentence.heads, sentence.relations
    if lemmas is None or tags is None or heads is None or relations is None:
        raise ValueError(
            f"sentence {sentence.id or sentence.forms} lacks lemmas, tags or a tree; polarity needs all three."
        )
    children: list[list[int]] = [[] for _ in range(len(sentence) + 1)]
    for word, head in enumerate(heads, start=1):
        children[head].append(word)

    def value(word: int) -> float:
        lemma, initial = lemmas[word - 1], tags[word - 1][0]
        sentiment = SENTIMENTS.get((lemma, initial), 0)
        own = 0.0
        if sentiment:
            weight = _WEIGHTS[initial][abs(sentiment) - 1]
            own = weight if sentiment > 0 else -weight
        shifts = lemma in SHIFTERS and initial == "V"
        within = outside = aside = 0.0
        later: list[tuple[str, float]] = []
        denials = 0
        for child in children[word]:
            relation, name = relations[child - 1], lemmas[child - 1]
            if name in _DENIALS or (relation == "det" and name == "no") or (relation == "nsubj" and name == "nobody"):
                denials += 1
            elif relation == "advmod" and name in DEGREES:
                own *= DEGREES[name]
            elif relation == "conj":
                later.append((_coordinator(child), value(child)))
            elif relation == "parataxis":
                outside += value(child)
            elif relation == "advcl" and any(lemmas[mark - 1] in _CONCESSIONS for mark in children[child]):
                aside += value(child)
            elif relation in _OUTSIDE:
                outside += value(child) / 2
            else:
                within += value(child)
        if shifts and any(relations[child - 1] in ("obj", "xcomp", "ccomp") for child in children[word]):
            own, within = 0.0, -within
        total = own + within
        total = (-total if denials % 2 else total) + outside
        for coordinator, conjunct in later:
            total = conjunct if coordinator == "but" and conjunct else total + conjunct
        return total or aside

    def _coordinator(word: int) -> str:
        return next((lemmas[child - 1] for child in children[word] if relations[child - 1] == "cc"), "and")

    return value(children[0][0])
